package replica

import (
	"context"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// TestLease checks that one replica holds the lease, and that a free lease goes only to the
// replica that asked for it.
func TestLease(t *testing.T) {
	db := dial(t, redistest.Start(t))
	a, b, c := New(db, 100, 1<<20), New(db, 100, 1<<20), New(db, 100, 1<<20)
	ctx := context.Background()
	is := func(what string, want bool) func(bool, error) {
		return func(got bool, err error) {
			t.Helper()
			if got != want || err != nil {
				t.Errorf("%s: got %v, %v, want %v, no error", what, got, err, want)
			}
		}
	}
	keeps := func(name string, l *Queue, held, wanted bool) {
		t.Helper()
		if h, w, err := l.KeepLease(ctx); h != held || w != wanted || err != nil {
			t.Errorf("%s keeps it: %v, wanted %v, %v", name, h, w, err)
		}
	}
	is("a takes what nobody has", true)(a.TakeLease(ctx))
	is("a takes it again", true)(a.TakeLease(ctx))
	is("b takes what a has", false)(b.TakeLease(ctx))
	keeps("a", a, true, false)
	keeps("b", b, false, false)
	is("b wants what a has", false)(b.AskForLease(ctx))
	keeps("a", a, true, true) // and learns of the request
	if err := b.LeaveLease(ctx); err != nil {
		t.Error(err) // b does not hold it
	}
	keeps("a", a, true, true)
	if err := a.LeaveLease(ctx); err != nil {
		t.Error(err)
	}
	is("c takes what b wants", false)(c.TakeLease(ctx))
	is("a takes what b wants", false)(a.TakeLease(ctx))
	is("b gets it", true)(b.AskForLease(ctx))
	keeps("b", b, true, false)
	keeps("a", a, false, false)
}

// TestWhatAnotherReplicaReadIsTakenOver checks that a new deliverer takes over the entries
// that the former one has read, even after the change. Sent entries are in doubt, and no
// entry is queued twice.
func TestWhatAnotherReplicaReadIsTakenOver(t *testing.T) {
	server := redistest.Start(t)
	db := dial(t, server)
	a, b := New(db, 100, 1<<20), New(db, 100, 1<<20)
	ctx := context.Background()
	put := func(id string) {
		t.Helper()
		if _, err := add(t, a, []ledger.Turn{turn(id, "g")}); err != nil {
			t.Fatal(err)
		}
	}
	found := func(string, bool) {}
	names := func(s *Queue) (list []string) {
		t.Helper()
		all, err := s.Next(ctx, "g", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			list = append(list, e.Turn.ID)
		}
		return list
	}
	if ok, err := a.TakeLease(ctx); !ok || err != nil {
		t.Fatalf("the lease was not taken: %v, %v", ok, err)
	}
	if _, err := a.takeOver(ctx); err != nil {
		t.Fatal(err)
	}
	put("1")
	put("2")
	if err := a.Follow(ctx, 10*time.Millisecond, found); err != nil {
		t.Fatal(err)
	}
	entries, err := a.Next(ctx, "g", 1)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v, want no error, 1 of them", entries, err)
	}
	if err := a.MarkSent(entries); err != nil {
		t.Fatal(err)
	}

	if err := a.LeaveLease(ctx); err != nil {
		t.Fatal(err)
	}
	if ok, err := b.TakeLease(ctx); !ok || err != nil {
		t.Fatalf("the lease was not taken: %v, %v", ok, err)
	}
	doubts, err := b.takeOver(ctx)
	if err != nil || len(doubts) != 1 || doubts[0].Turn.ID != "1" {
		t.Fatalf("got %+v, %v, want no error, 1 of them, ID \"1\"", doubts, err)
	}
	if got := names(b); len(got) != 1 || got[0] != "2" {
		t.Errorf("waiting: %q", got)
	}
	put("3")
	if err := a.Follow(ctx, 10*time.Millisecond, found); err != nil { // a does not know of the change yet
		t.Fatal(err)
	}
	if _, err := a.MarkDelivered(entries, true, time.Now()); err == nil {
		t.Error("who has lost the lease notes a delivery")
	}
	if err := b.Follow(ctx, 10*time.Millisecond, found); err != nil {
		t.Fatal(err)
	}
	if got := names(b); len(got) != 2 || got[1] != "3" {
		t.Errorf("waiting: %q", got)
	}
	if _, err := b.MarkDelivered([]ledger.Entry{doubts[0].Entry}, true, time.Now()); err != nil {
		t.Error(err)
	}
	if n, err := b.Sizes(ctx); n.Pending.Turns != 2 || err != nil {
		t.Errorf("got %+v, %v, want Turns 2, no error", n, err)
	}
}

// TestDatabaseThatWasEmptied checks that new entries are found after Redis was emptied,
// although their numbers start at 1 again.
func TestDatabaseThatWasEmptied(t *testing.T) {
	server := redistest.Start(t)
	q, ctx := New(dial(t, server), 100, 1<<20), t.Context()
	if ok, err := q.TakeLease(ctx); !ok || err != nil {
		t.Fatalf("the lease was not taken: %v, %v", ok, err)
	}
	put := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if _, err := add(t, q, []ledger.Turn{turn(id, "g")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	follow := func(want int) {
		t.Helper()
		n := 0
		if err := q.Follow(ctx, 10*time.Millisecond, func(string, bool) { n++ }); n != want || err != nil {
			t.Errorf("found %d times, want %d: %v", n, want, err)
		}
	}
	if _, err := q.takeOver(ctx); err != nil {
		t.Fatal(err)
	}
	put("1", "2", "3")
	follow(3)
	follow(0)
	direct := server.Client()
	defer direct.Close()
	if err := direct.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if ok, err := q.TakeLease(ctx); !ok || err != nil {
		t.Fatalf("the lease was not taken: %v, %v", ok, err)
	}
	put("4")
	follow(1)
	if entries, err := q.Next(ctx, "g", 10); err != nil || len(entries) != 1 || entries[0].Turn.ID != "4" {
		t.Errorf("got %+v, %v, want no error, 1 of them, ID \"4\"", entries, err)
	}
}
