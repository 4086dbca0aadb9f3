package replica

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

//go:embed lua/*.lua
var programs embed.FS

// script reads one of the programs, each of which begins with what all know.
func script(name string) *redis.Script {
	common, err := programs.ReadFile("lua/common.lua")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	own, err := programs.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return redis.NewScript(string(common) + string(own))
}

var (
	addScript      = script("add")
	markScript     = script("mark")
	doneScript     = script("done")
	deadScript     = script("dead")
	retryScript    = script("retry")
	dropScript     = script("drop")
	dropDeadScript = script("drop_dead")
	forgetScript   = script("forget")
	reportScript   = script("report")
)

// page is how many entries are read in one call.
const page = 200

// Queue is the spool of several replicas. Its turns are entries of a stream;
// one replica at a time, which holds the lease, delivers them. It keeps in
// memory which of them wait, by group.
//
//	spool           the stream; the number of an entry is the first half of its id
//	marks           what became of entries until now, by number
//	dead            entries that were put aside, by number
//	dead-order      their numbers, the lowest first
//	counts          turns and bytes of those, and totals
//	last            the number that was given last
//	turn:<id>:<group>, said:<group>:<what>   what a group has had, or waits for
//	floor:<scope>   the generation of a group, or of a session, that was forgotten (package cache)
//	talk:<session>  the groups in which it left something lately
//	groups          whose the groups are
//	promoted        groups into which something was promoted
type Queue struct {
	db    *redis.DB
	token string // of this process

	mu       sync.Mutex // guards what follows
	maxTurns int
	maxBytes int
	lines    map[string]*line
	known    ledger.Sizes // after what was added last
	sent     int64        // the place in the order of sending that was given last
	newest   int64        // the number of the entry that was read last
}

// line holds the numbers of a group's entries that wait, in their order.
type line struct{ fresh, older []int64 }

// mark is what became of an entry until now.
type mark struct {
	Sent     int64        `json:"s,omitempty"` // order of sending; 0: it waits
	Attempts int          `json:"a,omitempty"`
	Have     ledger.Sides `json:"h,omitempty"`
	Losses   int          `json:"l,omitempty"`
	Reason   string       `json:"r,omitempty"`
}

// New shares a queue over db.
func New(db *redis.DB, maxTurns, maxBytes int) *Queue {
	return &Queue{db: db, token: rand.Text(), maxTurns: maxTurns, maxBytes: maxBytes, lines: make(map[string]*line)}
}

func (s *Queue) Close() error { return nil }

// run runs a script; a fenced one does nothing unless this process holds the
// lease.
func (s *Queue) run(ctx context.Context, what string, script *redis.Script, fenced bool, keys []string, args ...any) (reply []int64, err error) {
	token := ""
	if fenced {
		token = s.token
	}
	all := append([]string{leaseName, redis.Key("spool"), redis.Key("marks"), redis.Key("counts"), redis.Key("dead"), redis.Key("last"), redis.Key("dead-order")}, keys...)
	do := s.db.Ease
	if script == addScript { // all others make room, or need none
		do = s.db.Do
	}
	err = do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		v, err := script.Run(ctx, c, all, append([]any{token}, args...)...).Result()
		if err != nil {
			return err
		}
		switch v := v.(type) {
		case int64:
			reply = []int64{v}
		case []any:
			for _, n := range v {
				i, _ := n.(int64)
				reply = append(reply, i)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return reply, nil
}

func (s *Queue) Add(ctx context.Context, turns []ledger.Turn, now time.Time) (all []ledger.Added, err error) {
	for i := range turns {
		var a ledger.Added
		for _, target := range turns[i].Targets {
			bytes, err := s.Append(ctx, &turns[i], turns[i].Digest(), target, now)
			if err != nil {
				return nil, err
			}
			if bytes > 0 {
				a.Groups = append(a.Groups, target.Group)
				a.Size = a.Size.Plus(ledger.Size{Turns: 1, Bytes: bytes})
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// Append stores for one group what it does not have of a turn, and returns the
// bytes it takes there; 0 when the group has had it. said is of the whole turn,
// of which t may be a part.
func (s *Queue) Append(ctx context.Context, t *ledger.Turn, said string, target graphiti.Target, now time.Time) (int, error) {
	for part := t; ; part = part.Rest() {
		bytes, err := s.addPart(ctx, part, said, target, now)
		if bytes >= 0 || err != nil {
			return bytes, err
		}
	}
}

// addPart stores a turn, or a part of one. It returns -1 when the group has the
// part's beginning only.
func (s *Queue) addPart(ctx context.Context, t *ledger.Turn, said string, target graphiti.Target, now time.Time) (int, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return 0, err
	}
	whose, err := json.Marshal(ledger.Owned{Scope: string(target.Scope), Key: t.KeyOf(target.Scope)})
	if err != nil {
		return 0, err
	}
	about, err := json.Marshal(map[string]any{
		"grp": target.Group, "scope": string(target.Scope), "born": strconv.FormatInt(now.UnixMilli(), 10), "talk": graphiti.SessionHash(t.Session),
		"generation": strconv.FormatInt(t.Generation, 10), "again": t.Standalone,
		"later": digit(t.Backfill), "open": digit(t.Open), "owner": t.Owner, "whose": string(whose), "promoted": slices.Contains(graphiti.Kinds, t.Kind),
		"said": said, "ends": t.Assistant != "",
	})
	if err != nil {
		return 0, err
	}
	keys := []string{
		redis.Key("groups"), redis.Key("promoted"), redis.Key("talk", graphiti.SessionHash(t.Session)),
		redis.Key("turn", t.ID, target.Group), redis.Key("said", target.Group, said), redis.Key("turn", cutPrefix+t.ID, target.Group),
	}
	for _, scope := range t.Scopes(target.Group) {
		keys = append(keys, redis.Key("floor", scope))
	}
	reply, err := s.run(ctx, "spool turn", addScript, false, keys, string(about), string(body), ledger.SeenFor.Milliseconds())
	if err != nil {
		return 0, err
	}
	if len(reply) == 5 {
		s.mu.Lock()
		s.known = ledger.Sizes{Pending: ledger.Size{Turns: int(reply[1]), Bytes: int(reply[2])}, Dead: ledger.Size{Turns: int(reply[3]), Bytes: int(reply[4])}}
		s.mu.Unlock()
	}
	return int(reply[0]), nil
}

// Held are the sizes that were known last.
func (s *Queue) Held() ledger.Sizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// read calls f for the entries from a number on, a page at a time.
func (s *Queue) read(ctx context.Context, f func(e *entry) error) error {
	for from := "-"; from != ""; {
		var list []goredis.XMessage
		err := s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
			list, err = c.XRangeN(ctx, redis.Key("spool"), from, "+", page).Result()
			return err
		})
		if err != nil {
			return fmt.Errorf("read spool: %w", err)
		}
		from = ""
		for i := range list {
			e, err := parse(&list[i])
			if err != nil {
				return err
			}
			if err := f(e); err != nil {
				return err
			}
			if i == page-1 {
				from = "(" + list[i].ID
			}
		}
	}
	return nil
}

// entry is an entry as it stands in the stream, or among the dead.
type entry struct {
	Number int64          `json:"-"`
	Group  string         `json:"grp"`
	Scope  graphiti.Scope `json:"scope"`
	Born   string         `json:"born"` // Unix milliseconds
	Later  string         `json:"later"`
	Body   string         `json:"body"`
	Mark   string         `json:"mark"` // of the dead
}

func parse(m *goredis.XMessage) (*entry, error) {
	text := func(name string) string { v, _ := m.Values[name].(string); return v }
	number, _, _ := strings.Cut(m.ID, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read spool: entry %q: %w", m.ID, err)
	}
	return &entry{Number: n, Group: text("grp"), Scope: graphiti.Scope(text("scope")), Born: text("born"), Later: text("later"), Body: text("body")}, nil
}

// withMark is an entry as delivery knows it.
func (e *entry) withMark(m mark) (ledger.Entry, error) {
	out := ledger.Entry{Seq: e.Number, Bytes: len(e.Body), Scope: e.Scope, Have: m.Have, Losses: m.Losses, Backfill: e.Later == "1"}
	if err := json.Unmarshal([]byte(e.Body), &out.Turn); err != nil {
		return ledger.Entry{}, fmt.Errorf("entry %d: %w", e.Number, err)
	}
	return out, nil
}

func (e *entry) born() time.Time {
	ms, _ := strconv.ParseInt(e.Born, 10, 64) // ours
	return time.UnixMilli(ms)
}

// marks are those of all entries.
func (s *Queue) marks(ctx context.Context) (map[int64]mark, error) {
	out := make(map[int64]mark)
	err := s.hash(ctx, "marks", func(field, value string) error {
		n, m, err := parseMark(field, value)
		out[n] = m
		return err
	})
	return out, err
}

func parseMark(number, value string) (n int64, m mark, err error) {
	if n, err = strconv.ParseInt(number, 10, 64); err == nil && value != "" {
		err = json.Unmarshal([]byte(value), &m)
	}
	return n, m, err
}

// hash calls f for the fields of one of the hashes.
func (s *Queue) hash(ctx context.Context, name string, f func(field, value string) error) error {
	var all map[string]string
	err := s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		all, err = c.HGetAll(ctx, redis.Key(name)).Result()
		return err
	})
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	for field, value := range all {
		if err := f(field, value); err != nil {
			return fmt.Errorf("read spool: %w", err)
		}
	}
	return nil
}

func (s *Queue) Sizes(ctx context.Context) (ledger.Sizes, error) {
	sizes, _, err := s.Counts(ctx)
	return sizes, err
}

func (s *Queue) Totals() (ledger.Totals, error) {
	_, totals, err := s.Counts(context.Background())
	return totals, err
}

// Counts are the sizes and totals that replicas share.
func (s *Queue) Counts(ctx context.Context) (ledger.Sizes, ledger.Totals, error) {
	n := make(map[string]int)
	err := s.hash(ctx, "counts", func(name, value string) (err error) {
		n[name], err = strconv.Atoi(value)
		return err
	})
	return ledger.Sizes{
		Pending: ledger.Size{Turns: n["pending"], Bytes: n["pending_bytes"]},
		Dead:    ledger.Size{Turns: n["dead"], Bytes: n["dead_bytes"]},
	}, ledger.Totals{Delivered: n["delivered"], Verified: n["verified"], Dropped: n["dropped"]}, err
}

func (s *Queue) Oldest() (t time.Time, err error) {
	err = s.db.Ease(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		first, err := c.XRangeN(ctx, redis.Key("spool"), "-", "+", 1).Result()
		if err != nil || len(first) == 0 {
			return err
		}
		e, err := parse(&first[0])
		if err == nil {
			t = e.born()
		}
		return err
	})
	return t, err
}

func (s *Queue) Instance() (id string, err error) {
	name := redis.Key("instance")
	err = s.db.Ease(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		if id, err = c.Get(ctx, name).Result(); !errors.Is(err, redis.Nil) {
			return err
		}
		if err := c.SetNX(ctx, name, strings.ToLower(rand.Text()[:16]), 0).Err(); err != nil {
			return err
		}
		id, err = c.Get(ctx, name).Result()
		return err
	})
	return id, err
}

func (s *Queue) Promoted(ctx context.Context) (map[string]bool, error) {
	all := make(map[string]bool)
	err := s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		list, err := c.SMembers(ctx, redis.Key("promoted")).Result()
		for _, g := range list {
			all[g] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list promoted groups: %w", err)
	}
	return all, nil
}

func (s *Queue) Owned(ctx context.Context, owner string) (list []ledger.Owned, err error) {
	owners := make(map[string]int)
	err = s.hash(ctx, "groups", func(field, value string) error {
		var o ledger.Owned
		if err := json.Unmarshal([]byte(value), &o); err != nil {
			return err
		}
		o.Group, o.Owner, _ = strings.Cut(field, "\n")
		owners[o.Group]++
		list = append(list, o)
		return nil
	})
	list = slices.DeleteFunc(list, func(o ledger.Owned) bool { return owner != "" && o.Owner != owner })
	for i := range list {
		list[i].Shared = owners[list[i].Group] > 1
	}
	slices.SortFunc(list, func(a, b ledger.Owned) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner))
	})
	return list, err
}

// Bound changes how much may wait.
func (s *Queue) Bound(turns, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxTurns, s.maxBytes = turns, bytes
}

func (s *Queue) bounded(ctx context.Context, most int, before time.Time) (ledger.Dropped, error) {
	s.mu.Lock()
	turns, bytes := s.maxTurns, s.maxBytes
	s.mu.Unlock()
	reply, err := s.run(ctx, "drop from spool", dropScript, false, nil, most, turns, bytes, before.UnixMilli(), turns/ledger.Spare, bytes/ledger.Spare)
	return goneOf(reply), err
}

// Cut asks the store itself what is over: others change it, too.
func (s *Queue) Cut(ledger.Size) (ledger.Dropped, error) {
	return s.bounded(context.Background(), ledger.DropChunk, time.UnixMilli(0))
}

func (s *Queue) DropBefore(t time.Time) (ledger.Dropped, error) {
	return s.bounded(context.Background(), ledger.DropChunk, t)
}

func goneOf(reply []int64) (d ledger.Dropped) {
	if len(reply) == 4 {
		d.Pending, d.Dead = ledger.Size{Turns: int(reply[0]), Bytes: int(reply[1])}, ledger.Size{Turns: int(reply[2]), Bytes: int(reply[3])}
	}
	return d
}

// Report stores what the leader tells the others.
func (s *Queue) Report(ctx context.Context, text []byte) error {
	_, err := s.run(ctx, "report", reportScript, true, []string{redis.Key("report")}, string(text), (3 * LeaseFor).Milliseconds())
	return err
}

// Reported is what a leader told last; nil: nothing for a while.
func (s *Queue) Reported(ctx context.Context) (text []byte, err error) {
	err = s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		text, err = c.Get(ctx, redis.Key("report")).Bytes()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return err
	})
	return text, err
}

// Down says since when Redis is not used; nil: it is.
func (s *Queue) Down() *redis.Down { return s.db.Down() }

// Prune does nothing: what was delivered is forgotten by itself.
func (s *Queue) Prune(time.Time, int) error { return nil }
