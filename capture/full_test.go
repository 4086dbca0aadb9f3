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

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// lockedLog is a log buffer for several goroutines.
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

// TestFullRedisIsDrained checks that the turns in a full Redis are delivered, also by a
// replica that starts while it is full, and that new turns wait locally. Only the replica
// that delivers reports so in its status.
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
	m := &fakeMemory{fail: func(string, []graphiti.Row) error {
		if !up.Load() {
			return &graphiti.StatusError{Code: 503}
		}
		return nil
	}}
	var log lockedLog
	open := func(name string) *Pipeline {
		o := Options{
			Bounds:      Bounds{MaxTurns: 1000, MaxBytes: 1 << 20, MaxAge: time.Hour, MaxBatch: 10, MaxChars: 8000, Timeout: time.Second, StallAfter: time.Minute},
			Destination: withShared(destination(t, filepath.Join(t.TempDir(), "spool.db"), m), &Shared{DB: dial(t, server), Name: name}),
			Log:         slog.New(slog.NewTextHandler(&log, nil)),
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
	waitFor(t, "the counts", func() bool { s := second.Status(); return s.Delivered == 3 && s.Pending == 0 })
	if s := second.Status(); !s.Delivers {
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
