package capture

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// lockedLog takes what several goroutines log.
type lockedLog struct {
	mu sync.Mutex // guards b
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestFullRedisIsDrained: what it holds is delivered, also by a replica that
// begins then, and that is what makes room; what comes meanwhile waits here. Who
// delivers says so, and who does not any more does not.
func TestFullRedisIsDrained(t *testing.T) {
	if os.Getenv("LONG_TESTS") == "" {
		t.Skip("it waits for a lease")
	}
	server := redistest.Start(t)
	direct := server.Client()
	defer direct.Close()
	room := func(bytes string) {
		t.Helper()
		if err := direct.ConfigSet(context.Background(), "maxmemory", bytes).Err(); err != nil {
			t.Skipf("needs redis-server: %v", err)
		}
	}
	room("0")
	var up atomic.Bool
	m := &fakeMemory{fail: func(string, []graphiti.Message) error {
		if !up.Load() {
			return &graphiti.StatusError{Code: 503}
		}
		return nil
	}}
	var log lockedLog
	open := func(name string) *Pipeline {
		o := Options{
			Path: filepath.Join(t.TempDir(), "spool.db"), Memory: m, MaxTurns: 1000, MaxBytes: 1 << 20, MaxAge: time.Hour, MaxBatch: 10, MaxChars: 8000,
			Timeout: time.Second, Verify: true, StallAfter: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil)), Shared: &Shared{DB: dial(t, server), Name: name},
		}
		p, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := open("first")
	for _, id := range []string{"1", "2", "3"} {
		add(t, first, turn(id, "g"))
	}
	waitFor(t, "who delivers", func() bool { return first.Status().Delivers })
	room("1")
	add(t, first, turn("4", "g"))
	s := first.Status()
	if s.SharedDown == nil || !s.Delivers || s.Deliverer != "first" {
		t.Errorf("full: %+v", s)
	}
	waitFor(t, "the local turn", func() bool { return first.Status().Here == 1 })
	second := open("second")
	defer stop(t, second)
	stop(t, first)
	if s := first.Status(); s.Delivers || s.Deliverer == "first" {
		t.Errorf("stopped: %+v", s)
	}
	if said := log.String(); !strings.Contains(said, "data_dir") || !strings.Contains(said, "turns=1") {
		t.Errorf("the end says nothing of the turn that waits: %s", said)
	}
	up.Store(true)
	waitFor(t, "what Redis held", func() bool { return len(m.contents("g")) == 3 })
	if s := second.Status(); !s.Delivers || s.Delivered != 3 || s.Pending != 0 {
		t.Errorf("drained: %+v", s)
	}
	third := open("third")
	defer stop(t, third)
	waitFor(t, "the report", func() bool { return third.Status().Deliverer == "second" })
	if third.Status().Delivers {
		t.Error("two deliver")
	}
	room("0")
	waitFor(t, "room", func() bool { return second.Status().SharedDown == nil })
	if !errors.Is(first.Add(context.Background(), turn("5", "g")), ErrStopped) {
		t.Error("a pipeline that has ended takes turns")
	}
}

// TestFullRedisTakesWhatDeliveryWrites: the lease, taken, kept and wanted; what
// became of entries; and the report.
func TestFullRedisTakesWhatDeliveryWrites(t *testing.T) {
	server := redistest.Start(t)
	direct := server.Client()
	defer direct.Close()
	ctx := t.Context()
	db := dial(t, server)
	s := newShared(db, 100, 1<<20)
	if _, err := s.Add(ctx, []ledger.Turn{spoken("1", "g"), spoken("2", "g")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.makeGroup(ctx); err != nil {
		t.Fatal(err)
	}
	if err := direct.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Skipf("needs redis-server: %v", err)
	}
	if _, err := s.Add(ctx, []ledger.Turn{spoken("3", "g")}, time.Now()); !errors.Is(err, redis.ErrDown) {
		t.Fatalf("it has room: %v", err)
	}
	held := lease{db, s.token}
	for range 2 {
		if ok, err := held.take(ctx); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if ok, _, err := held.keep(ctx); !ok || err != nil {
		t.Error("keep", ok, err)
	}
	if ok, err := (lease{db, "another"}).want(ctx); ok || err != nil {
		t.Error("want", ok, err)
	}
	if ok, wanted, err := held.keep(ctx); !ok || !wanted || err != nil {
		t.Error("keep what is wanted", ok, wanted, err)
	}
	if _, err := s.takeOver(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.follow(ctx, 10*time.Millisecond, func(string, bool) {}); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Next(ctx, "g", 2)
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	if err := s.MarkSent("g", entries); err != nil {
		t.Error("hand over", err)
	}
	if err := s.Requeue("g", entries[:1], "not there"); err != nil {
		t.Error("take back", err)
	}
	if _, err := s.MarkDead("g", &entries[0], "refused"); err != nil {
		t.Error("bury", err)
	}
	if gone, err := s.MarkDelivered("g", entries[1:], true, time.Now()); gone.Turns != 1 || err != nil {
		t.Error("done", gone, err)
	}
	if _, err := s.Cut(ledger.Size{Turns: 1}); err != nil {
		t.Error("drop", err)
	}
	if _, err := s.run(ctx, "report", reportScript, true, []string{redis.Key("report")}, "{}", 1000); err != nil {
		t.Error("report", err)
	}
}
