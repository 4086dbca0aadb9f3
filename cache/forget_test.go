package cache

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
)

// TestWhatWasForgottenIsNotKept: neither a block for a request that came in
// before its group was forgotten, nor a snapshot of what was said before. What
// comes after is, and that nothing was shown is a decision too.
func TestWhatWasForgottenIsNotKept(t *testing.T) {
	stores := map[string]func(t *testing.T) *State{
		"file": func(t *testing.T) *State {
			s := openState(t, filepath.Join(t.TempDir(), "state.db"))
			t.Cleanup(func() { s.Close() })
			return s
		},
		"replicas": func(t *testing.T) *State { return Share(dial(t, redistest.Start(t)), time.Hour) },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), context.Background()
			keep := func(n, facts int, since time.Time, groups ...string) {
				t.Helper()
				if _, _, err := s.Blocks.Keep(ctx, key(n), "text", facts, since, groups...); err != nil {
					t.Fatal(err)
				}
			}
			before := time.Now()
			keep(0, 1, before, "g")
			if _, err := s.Blocks.Forget("g"); err != nil {
				t.Fatal(err)
			}
			if err := s.Snapshots.Forget("g"); err != nil {
				t.Fatal(err)
			}
			keep(1, 2, before, "h", "g")
			keep(2, -3, before, "g") // of a turn that is not to be kept
			keep(3, 1, before, "h")
			keep(4, 1, time.Now(), "g")
			got := lookup(t, s, key(0), key(1), key(2), key(3), key(4))
			for i, want := range []string{"/1", "/0", "/-1", "text/1", "text/1"} {
				if got[i] != want {
					t.Errorf("block %d is %q, want %q", i, got[i], want)
				}
			}
			if text, facts, err := s.Blocks.Keep(ctx, key(1), "another", 1, time.Now(), "g"); text != "" || facts != 0 || err != nil {
				t.Errorf("decided twice: %q %d %v", text, facts, err)
			}
			err := s.Blocks.Lookup(ctx, [][16]byte{key(3)}, func(_ int, _ string, _ int, since time.Time) {
				if d := since.Sub(before).Abs(); d > time.Millisecond {
					t.Errorf("decided %v before or after", d)
				}
			})
			if err != nil {
				t.Error(err)
			}

			s.Snapshots.Save("early", []byte("early"), before, "h", "g")
			s.Snapshots.Save("late", []byte("late"), time.Now(), "h", "g")
			load := func(session string) string {
				t.Helper()
				body, err := s.Snapshots.Load(ctx, session)
				if err != nil {
					t.Fatal(err)
				}
				return string(body)
			}
			within(t, "the last snapshot", func() bool { return load("late") == "late" })
			if got := load("early"); got != "" {
				t.Errorf("a snapshot of what was forgotten is kept: %q", got)
			}
		})
	}
}

// TestNewsHoldNothingForgotten: replicas are told of blocks, and a replica that
// starts later hears of none that was emptied.
func TestNewsHoldNothingForgotten(t *testing.T) {
	server := redistest.Start(t)
	db := dial(t, server)
	s, ctx := Share(db, time.Hour), context.Background()
	const fact = "- The heliport is called Foxglove"
	for i := range 1200 { // some pages of it
		group := "h"
		if i%400 == 0 {
			group = "g"
		}
		if _, _, err := s.Blocks.Keep(ctx, key(i), group+fact, 1, time.Now(), group); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Blocks.Forget("g"); n != 3 || err != nil {
		t.Errorf("%d blocks, %v", n, err)
	}
	if err := s.Blocks.Blank(key(1)); err != nil {
		t.Error(err)
	}
	left := 0
	err := db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		list, err := c.XRange(ctx, redis.Key(News), "-", "+").Result()
		for _, m := range list {
			if strings.Contains(m.Values["m"].(string), "g"+fact) {
				t.Errorf("the news still hold %v", m.Values)
			}
			left++
		}
		return err
	})
	if err != nil || left != 1200-4 {
		t.Errorf("%d news are left, %v", left, err)
	}
	other := dial(t, server)
	later := Share(other, time.Hour)
	other.Listen("later", News, later.Heard, func() {})
	within(t, "the news", func() bool { _, ok := later.Blocks.recent.get(key(1199)); return ok })
	if e, ok := later.Blocks.recent.get(key(0)); ok {
		t.Errorf("a replica that starts later has %q", e.text)
	}
}
