package capture

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// replicaOf opens a pipeline that shares its spool over the test's Redis.
func replicaOf(t *testing.T, path string, m Memory, s *redistest.Redis) *Pipeline {
	t.Helper()
	p, err := Open(Options{
		Bounds:      Bounds{MaxTurns: 1000, MaxBytes: 1 << 20, MaxAge: time.Hour, MaxBatch: 10, MaxChars: 8000, Timeout: time.Second, StallAfter: time.Minute},
		Destination: withShared(destination(t, path, m), &Shared{DB: dial(t, s), Name: "replica"}),
		Log:         slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	return p
}

// whileRedisWasDown lets f fill the local spool of a replica.
func whileRedisWasDown(t *testing.T, path string, f func(*ledger.Ledger)) {
	t.Helper()
	local := openLedger(t, path)
	f(local)
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPartsThatWaitedHere checks that a turn whose parts waited in a replica's local spool
// is recognized when a history brings the whole.
func TestPartsThatWaitedHere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	open, whole := turn("1", "g"), turn("1", "g")
	open.Open, open.Assistant, whole.Assistant = true, "I shall look.", "It is done."
	whileRedisWasDown(t, path, func(s *ledger.Ledger) {
		if _, err := s.Add(context.Background(), []ledger.Turn{open, whole}, time.Now()); err != nil {
			t.Fatal(err)
		}
	})
	m := &fakeMemory{}
	p := replicaOf(t, path, m, redistest.Start(t))
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 2 })
	again := whole
	again.ID, again.Backfill = "2", true
	if n, err := p.AddAll(context.Background(), []ledger.Turn{again}); n != 0 || err != nil {
		t.Errorf("kept again: %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{"user 1", "I shall look.", "It is done."}, m.contents("g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
