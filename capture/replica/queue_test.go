package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t testing.TB, s *redistest.Redis) *redis.DB {
	t.Helper()
	db, err := redis.Open(s.URL(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func turn(id string, groups ...string) ledger.Turn {
	tn := ledger.Turn{ID: id, User: "user " + id, Assistant: "assistant " + id, Said: time.Now(), Answered: time.Now()}
	for _, g := range groups {
		tn.Targets = append(tn.Targets, graphiti.Target{Scope: graphiti.ScopeUser, Group: g})
	}
	return tn
}

// add stores turns for their groups.
func add(t testing.TB, s *Queue, turns []ledger.Turn) (size ledger.Size, err error) {
	for i := range turns {
		for _, target := range turns[i].Targets {
			bytes, err := s.Append(t.Context(), &turns[i], turns[i].Digest(), target, time.Now())
			if err != nil {
				return size, err
			}
			if bytes > 0 {
				size = size.Plus(ledger.Size{Turns: 1, Bytes: bytes})
			}
		}
	}
	return size, nil
}

// TestFullRedisTakesWhatDeliveryWrites checks that a full Redis still accepts the writes of
// delivery: the lease, the states of entries, and the report.
func TestFullRedisTakesWhatDeliveryWrites(t *testing.T) {
	server := redistest.Start(t)
	direct := server.Client()
	defer direct.Close()
	ctx := t.Context()
	db := dial(t, server)
	s := New(db, 100, 1<<20)
	if _, err := add(t, s, []ledger.Turn{turn("1", "g"), turn("2", "g")}); err != nil {
		t.Fatal(err)
	}
	if err := direct.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Skipf("needs redis-server: %v", err)
	}
	if _, err := add(t, s, []ledger.Turn{turn("3", "g")}); !errors.Is(err, redis.ErrDown) {
		t.Fatalf("it has room: %v", err)
	}
	for range 2 {
		if ok, err := s.TakeLease(ctx); !ok || err != nil {
			t.Fatalf("the lease was not taken: %v, %v", ok, err)
		}
	}
	if ok, _, err := s.KeepLease(ctx); !ok || err != nil {
		t.Error("keep", ok, err)
	}
	if ok, err := New(db, 100, 1<<20).AskForLease(ctx); ok || err != nil {
		t.Errorf("another replica asks for a lease that is held: %v, %v; want that it is refused", ok, err)
	}
	if ok, wanted, err := s.KeepLease(ctx); !ok || !wanted || err != nil {
		t.Error("keep what is wanted", ok, wanted, err)
	}
	if _, err := s.takeOver(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Follow(ctx, 10*time.Millisecond, func(string, bool) {}); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Next(ctx, "g", 2)
	if err != nil || len(entries) != 2 {
		t.Fatalf("got %v, %v, want no error, 2 of them", entries, err)
	}
	if err := s.MarkSent(entries); err != nil {
		t.Error("sent", err)
	}
	if err := s.Requeue(entries[:1], "not there"); err != nil {
		t.Error("requeue", err)
	}
	if _, err := s.MarkDead(&entries[0], "refused"); err != nil {
		t.Error("dead", err)
	}
	if gone, err := s.MarkDelivered(entries[1:], true, time.Now()); gone.Turns != 1 || err != nil {
		t.Error("done", gone, err)
	}
	if _, err := s.Cut(ledger.Size{Turns: 1}); err != nil {
		t.Error("drop", err)
	}
	if err := s.Report(ctx, []byte("{}")); err != nil {
		t.Error("report", err)
	}
}

// TestOrderOfTheDead checks that Cut drops the dead turns that arrived first, even if they
// died last.
func TestOrderOfTheDead(t *testing.T) {
	s := New(dial(t, redistest.Start(t)), 3, 1<<20)
	ctx := context.Background()
	if ok, err := s.TakeLease(ctx); !ok || err != nil {
		t.Fatalf("the lease was not taken: %v, %v", ok, err)
	}
	for i := range 12 {
		if _, err := add(t, s, []ledger.Turn{turn(fmt.Sprint(i), "g")}); err != nil {
			t.Fatal(err)
		}
	}
	for n := int64(12); n > 0; n-- {
		if _, err := s.MarkDead(&ledger.Entry{Seq: n}, "no"); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := s.Cut(ledger.Size{})
	if err != nil || gone.Dead.Turns != 9 || gone.Pending.Turns != 0 {
		t.Fatalf("got %+v %v, want no error, Turns 9, Turns 0", gone, err)
	}
	list, _, err := s.Items(ctx, ledger.ListOptions{Limit: 10})
	if err != nil || len(list) != 3 || list[0].Number != 10 || list[2].Number != 12 {
		t.Errorf("got %+v %v, want no error, 3 of them, Number 10, Number 12", list, err)
	}
}
