package redis_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines collects log output and counts the occurrences of a text.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

// world starts a real server that can be made full or read-only. It returns a DB and a
// plain client, both connected to it, and the log of the DB.
func world(t *testing.T) (*redis.DB, *goredis.Client, *lines) {
	t.Helper()
	s := redistest.Start(t)
	direct := s.Client()
	t.Cleanup(func() { _ = direct.Close() })
	if err := direct.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Skipf("needs redis-server: %v", err)
	}
	log := &lines{}
	db, err := redis.Open(s.URL(), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, direct, log
}

func set(name string) func(context.Context, redis.Cmdable) error {
	return func(ctx context.Context, c redis.Cmdable) error { return c.Set(ctx, redis.Key(name), "x", 0).Err() }
}

var until = polltest.Until

// rejected returns the number of writes that the server has refused.
func rejected(t *testing.T, direct *goredis.Client) int {
	t.Helper()
	info, err := direct.InfoMap(t.Context(), "errorstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name := range info["Errorstats"] {
		if name == "errorstat_READONLY" || name == "errorstat_OOM" {
			for _, part := range strings.Split(info["Errorstats"][name], "=")[1:] {
				for _, r := range part {
					n = 10*n + int(r-'0')
				}
			}
		}
	}
	return n
}

// TestServerThatTakesNoWrites checks that a server that became a read-only replica counts
// as one outage until it accepts a write, although it answers pings.
func TestServerThatTakesNoWrites(t *testing.T) {
	db, direct, log := world(t)
	if err := direct.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.Do(t.Context(), set("a")); !errors.Is(err, redis.ErrDown) {
		t.Fatalf("a write to a read-only server: %v, want ErrDown", err)
	}
	since := db.Down().Since
	until(t, "attempts to write", func() bool {
		if d := db.Down(); d == nil || !d.Since.Equal(since) || d.Full {
			t.Fatalf("meanwhile the server is %+v, want it down since %v", d, since)
		}
		return rejected(t, direct) > 5
	})
	if n := log.count("\n"); n != 1 {
		t.Errorf("%d lines are logged, want 1", n)
	}
	if err := direct.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end", func() bool { return db.Down() == nil })
	if err := db.Do(t.Context(), set("a")); err != nil {
		t.Errorf("a write after the end of the outage: %v", err)
	}
}

// TestFullServer checks that a full server counts as down for calls that need memory, but
// still serves Ease calls that need none.
func TestFullServer(t *testing.T) {
	db, direct, log := world(t)
	if err := db.Do(t.Context(), set("a")); err != nil {
		t.Fatal(err)
	}
	if err := direct.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.Do(t.Context(), set("b")); !errors.Is(err, redis.ErrDown) || db.Down() == nil || !db.Down().Full {
		t.Fatalf("got error %v, state %+v; want ErrDown of a full server", err, db.Down())
	}
	since := db.Down().Since
	if err := db.Do(t.Context(), func(context.Context, redis.Cmdable) error { t.Error("it is asked"); return nil }); !errors.Is(err, redis.ErrDown) {
		t.Errorf("Do while the server is full: %v, want ErrDown", err)
	}
	err := db.Ease(t.Context(), func(ctx context.Context, c redis.Cmdable) error {
		return errors.Join(c.Get(ctx, redis.Key("a")).Err(), c.PExpire(ctx, redis.Key("a"), time.Minute).Err(), c.Del(ctx, redis.Key("a")).Err())
	})
	if err != nil {
		t.Errorf("Ease with calls that need no room: %v", err)
	}
	script := redis.NewScript(`return redis.call('SET', KEYS[1], '1')`)
	err = db.Ease(t.Context(), func(ctx context.Context, c redis.Cmdable) error {
		return script.Run(ctx, c, []string{redis.Key("a")}).Err()
	})
	if !errors.Is(err, redis.ErrDown) || !db.Down().Since.Equal(since) {
		t.Errorf("Ease with a script that needs room: %v, down %+v; want ErrDown, since %v", err, db.Down(), since)
	}
	if n := log.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings are logged, want 1", n)
	}
	if err := direct.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "room", func() bool { return db.Down() == nil })
	if err := direct.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.Do(t.Context(), set("b")); !errors.Is(err, redis.ErrDown) || !db.Down().Since.Equal(since) {
		t.Errorf("full again at once: %v, down %+v; want ErrDown, since %v as before", err, db.Down(), since)
	}
}
