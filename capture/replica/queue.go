package replica

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

//go:embed lua/*.lua
var programs embed.FS

// script loads a script and prepends the common functions.
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

// page is the most entries per call.
const page = 200

// Queue is the spool of several replicas. Its turns are entries of a stream;
// one replica at a time, the holder of the lease, delivers them. RAM holds the numbers of
// the waiting entries, by group.
//
//	spool           the stream; the number of an entry is the first half of its id
//	marks           the current states of entries, by number
//	dead            dead letters, by number
//	dead-order      their numbers, the lowest first
//	counts          turns and bytes of those, and totals
//	last            the last number in use
//	turn:<id>:<group>, said:<group>:<hash>   turns and messages of a group, stored or queued
//	floor:<scope>   the generation of a group, or of a session, that was forgotten (package cache)
//	talk:<session>  the groups with recent turns of the session
//	groups          the owners of the groups
//	promoted        the groups with promoted texts
type Queue struct {
	db    *redis.DB
	token string // identifies this process

	mu       sync.Mutex // protects the fields below
	maxTurns int
	maxBytes int
	lines    map[string]*line
	known    ledger.Sizes // sizes after the last addition
	sent     int64        // last position in the order of sending
	newest   int64        // number of the last entry read
}

// line holds the numbers of a group's waiting entries in order.
type line struct{ fresh, older []int64 }

// New returns a queue in db.
func New(db *redis.DB, maxTurns, maxBytes int) *Queue {
	return &Queue{db: db, token: rand.Text(), maxTurns: maxTurns, maxBytes: maxBytes, lines: make(map[string]*line)}
}

// Store returns the queue in all roles of a Store.
func (s *Queue) Store() ledger.Store {
	return ledger.Store{Copies: s, Dispatch: s, Bounds: s, Rows: s}
}

// run runs a script; a fenced one has no effect unless this process holds the lease.
func (s *Queue) run(ctx context.Context, what string, script *redis.Script, fenced bool, keys []string, args ...any) (reply []int64, err error) {
	token := ""
	if fenced {
		token = s.token
	}
	all := append([]string{leaseName, redis.Key("spool"), redis.Key("marks"), redis.Key("counts"), redis.Key("dead"), redis.Key("last"), redis.Key("dead-order")}, keys...)
	do := s.db.Ease
	if script == addScript { // all others free memory, or need none
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

// Append stores the part of a turn that a group lacks, and returns its size, or 0 if the
// group has the turn. said is the digest of the whole turn; t may be a part of it.
func (s *Queue) Append(ctx context.Context, t *ledger.Turn, said string, target graphiti.Target, now time.Time) (int, error) {
	for part := t; ; part = part.Rest() {
		bytes, err := s.addPart(ctx, part, said, target, now)
		if bytes >= 0 || err != nil {
			return bytes, err
		}
	}
}

// addPart stores a turn or a part of one. It returns -1 if the group has only the beginning
// of the part.
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

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// Bound sets the limits of the queue.
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

// Cut computes the excess in the store itself, because other replicas change it, too.
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
