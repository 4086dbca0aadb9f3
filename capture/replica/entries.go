package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// entryState is the state of an entry.
type entryState struct {
	Sent     int64        `json:"s,omitempty"` // position in the order of sending, or 0 if it waits
	Attempts int          `json:"a,omitempty"`
	Have     ledger.Sides `json:"h,omitempty"`
	Losses   int          `json:"l,omitempty"`
	Reason   string       `json:"r,omitempty"`
}

// read calls f for the entries from an ID on, page by page; "-" is the first ID.
func (s *Queue) read(ctx context.Context, from string, f func(e *streamEntry) error) error {
	for from != "" {
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

// streamEntry is an entry of the stream or of the dead letters.
type streamEntry struct {
	Number   int64          `json:"-"`
	Group    string         `json:"grp"`
	Scope    graphiti.Scope `json:"scope"`
	Born     string         `json:"born"` // Unix milliseconds
	Backfill string         `json:"later"`
	Body     string         `json:"body"`
	Mark     string         `json:"mark"` // only of a dead letter
}

func parse(m *goredis.XMessage) (*streamEntry, error) {
	text := func(name string) string { v, _ := m.Values[name].(string); return v }
	number, _, _ := strings.Cut(m.ID, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read spool: entry %q: %w", m.ID, err)
	}
	return &streamEntry{Number: n, Group: text("grp"), Scope: graphiti.Scope(text("scope")), Born: text("born"), Backfill: text("later"), Body: text("body")}, nil
}

// withMark converts an entry for delivery.
func (e *streamEntry) withMark(m entryState) (ledger.Entry, error) {
	out := ledger.Entry{Group: e.Group, Seq: e.Number, Bytes: len(e.Body), Scope: e.Scope, Have: m.Have, Losses: m.Losses, Backfill: e.Backfill == "1"}
	if err := json.Unmarshal([]byte(e.Body), &out.Turn); err != nil {
		return ledger.Entry{}, fmt.Errorf("entry %d: %w", e.Number, err)
	}
	return out, nil
}

func (e *streamEntry) born() time.Time {
	ms, _ := strconv.ParseInt(e.Born, 10, 64) // written by the proxy
	return time.UnixMilli(ms)
}

// marks returns the marks of all entries.
func (s *Queue) marks(ctx context.Context) (map[int64]entryState, error) {
	out := make(map[int64]entryState)
	err := s.hash(ctx, "marks", func(field, value string) error {
		n, m, err := parseMark(field, value)
		out[n] = m
		return err
	})
	return out, err
}

func parseMark(number, value string) (n int64, m entryState, err error) {
	if n, err = strconv.ParseInt(number, 10, 64); err == nil && value != "" {
		err = json.Unmarshal([]byte(value), &m)
	}
	return n, m, err
}

// hash calls f for each field of a hash.
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
