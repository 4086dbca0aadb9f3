package replica

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Held returns the last known sizes.
func (s *Queue) Held() ledger.Sizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *Queue) Sizes(ctx context.Context) (ledger.Sizes, error) {
	sizes, _, err := s.Counts(ctx)
	return sizes, err
}

func (s *Queue) Totals() (ledger.Totals, error) {
	_, totals, err := s.Counts(context.Background())
	return totals, err
}

// Counts returns the shared sizes and totals.
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

// Report publishes the leader's report to the other replicas.
func (s *Queue) Report(ctx context.Context, text []byte) error {
	_, err := s.run(ctx, "report", reportScript, true, []string{redis.Key("report")}, string(text), (3 * LeaseFor).Milliseconds())
	return err
}

// Reported returns the last report of a leader, or nil if it has expired.
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

// Down returns the current outage of Redis, or nil.
func (s *Queue) Down() *redis.Down { return s.db.Down() }
