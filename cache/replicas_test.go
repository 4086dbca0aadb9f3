package cache

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
)

func dial(t *testing.T, s *redistest.Redis) *redis.DB {
	t.Helper()
	db, err := redis.Open(s.URL(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var within = polltest.Until

// TestReplicasKeepOneDecision checks that the first decision for a key wins in all
// replicas.
func TestReplicasKeepOneDecision(t *testing.T) {
	s := redistest.Start(t)
	a, b := Share(dial(t, s), time.Hour), Share(dial(t, s), time.Hour)
	const first = "first <&> \""
	if got := keep(t, a, 1, a.made(first, 3), "g", "h"); got != first+"/3" {
		t.Fatalf("the first decision for key 1: %q, want %q", got, first+"/3")
	}
	if got := keep(t, b, 1, b.made("second", 1), "g"); got != first+"/3" {
		t.Errorf("a second decision for key 1, in another replica: %q, want %q", got, first+"/3")
	}
	keep(t, a, 2, inject.Decision{})
	if got := lookup(t, b, key(1), key(2), key(3)); len(got) != 2 || got[0] != first+"/3" || got[1] != "/0 dropped" {
		t.Errorf("decisions of keys 1 to 3 in another replica: %v, want %q, /0 dropped, none", got, first+"/3")
	}
	// A missing decision is not cached, because another replica may add it at any time.
	keep(t, a, 3, a.made("third", 1), "g")
	if got := lookup(t, b, key(3)); got[0] != "third/1" {
		t.Errorf("decision of key 3, made after a look-up: %v, want third/1", got)
	}
}

// TestForgettingEmptiesEveryReplicasBlocks checks that a forget in one replica empties the
// blocks and snapshots of the group in all replicas, and counts each block once.
func TestForgettingEmptiesEveryReplicasBlocks(t *testing.T) {
	s := redistest.Start(t)
	a, b := Share(dial(t, s), time.Hour), Share(dial(t, s), time.Hour)
	ctx := context.Background()
	for i, group := range []string{"g", "h", "g"} {
		keep(t, a, i, a.made("text", 1), group)
	}
	lookup(t, b, key(0))
	if n, err := a.Decisions.Forget(ctx, "g"); n != 2 || err != nil {
		t.Errorf("Forget emptied %d blocks, %v; want 2", n, err)
	}
	if n, err := a.Decisions.Forget(ctx, "g"); n != 0 || err != nil {
		t.Errorf("a second Forget emptied %d blocks, %v; want 0", n, err)
	}
	if _, err := a.Generations.Raise(ctx, Forget{Group: "g", Scope: "g"}); err != nil {
		t.Error(err)
	}
	if err := b.Apply(ctx, EventGeneration); err != nil {
		t.Error(err)
	}
	for _, s := range []*State{a, b} {
		if got := lookup(t, s, key(0), key(1), key(2)); got[0] != "/1" || got[1] != "text/1" || got[2] != "/1" {
			t.Errorf("decisions of keys 0 to 2: %v, want /1, text/1, /1", got)
		}
		if n, err := s.Decisions.Emptied(ctx); n != 2 || err != nil {
			t.Errorf("Emptied: %d, %v; want 2", n, err)
		}
	}
	save(t, a, "s", "note", a.Generations.Now(), "g")
	if body, err := b.Snapshots.Load(ctx, "s"); string(body) != "note" || err != nil {
		t.Errorf("a snapshot that another replica saved: %q, %v; want note", body, err)
	}
	if err := b.Snapshots.Forget(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if body, err := a.Snapshots.Load(ctx, "s"); body != nil || err != nil {
		t.Errorf("a snapshot that another replica forgot: %q, %v; want none", body, err)
	}
}

// TestReplicasKnowOneAnothersSessions checks that replicas share sessions and pending
// conversations, and that a conversation ended in one replica ends in all.
func TestReplicasKnowOneAnothersSessions(t *testing.T) {
	s := redistest.Start(t)
	a, b := Share(dial(t, s), time.Hour), Share(dial(t, s), time.Hour)
	ctx := context.Background()
	a.Sessions.SetPending(t.Context(), key(1), "session:1")
	within(t, "the conversation", func() bool { got, ok := b.Sessions.Pending(ctx, key(0), key(1)); return ok && got == "session:1" })
	if err := b.Sessions.Put(ctx, "session:1", key(2)); err != nil {
		t.Fatal(err)
	}
	b.Sessions.EndPending(key(1))
	within(t, "its end", func() bool { _, ok := a.Sessions.Pending(ctx, key(1)); return !ok })
	if got, ok, err := a.Sessions.Find(ctx, [][16]byte{key(3), key(2)}); !ok || got != "session:1" || err != nil {
		t.Errorf("Find(key 3, key 2): %q, %v, %v; want session:1", got, ok, err)
	}
}

// TestWhatReplicasAppliedOutlastsRedis checks that a replica uses the decisions and
// sessions of the others while Redis is down, even if it started after them, and makes no
// calls to Redis meanwhile.
func TestWhatReplicasAppliedOutlastsRedis(t *testing.T) {
	s := redistest.Start(t)
	a := Share(dial(t, s), time.Hour)
	ctx := context.Background()
	keep(t, a, 1, a.made("text", 1), "g")
	if err := a.Sessions.Put(ctx, "session:1", key(2)); err != nil {
		t.Fatal(err)
	}
	db := dial(t, s)
	b := Share(db, time.Hour)
	missed := 0
	db.Listen("b", func(event string) { _ = b.Apply(ctx, event) }, func() { missed++ })
	within(t, "the events", func() bool { _, ok := b.Sessions.recent.Get(key(2)); return ok })
	s.Kill()
	if got := lookup(t, b, key(1)); got[0] != "text/1" {
		t.Errorf("with Redis down, the decision of key 1: %v, want text/1", got)
	}
	if got, ok, err := b.Sessions.Find(ctx, [][16]byte{key(9), key(2)}); !ok || got != "session:1" || err != nil {
		t.Errorf("with Redis down, Find(key 9, key 2): %q, %v, %v; want session:1", got, ok, err)
	}
	if _, err := b.Decisions.Keep(ctx, key(3), b.made("text", 1)); !errors.Is(err, redis.ErrDown) {
		t.Errorf("with Redis down, Keep: %v, want ErrDown", err)
	}
	if d := db.Down(); d == nil {
		t.Error("Down is nil after a call failed")
	}
	// While Redis is down no call is made, so ErrDown wraps no other error.
	if _, err := b.Decisions.Lookup(ctx, 0, [][16]byte{key(4)}); err == nil || errors.Unwrap(err) != redis.ErrDown { //nolint:errorlint // an error of a call would be wrapped deeper
		t.Errorf("with Redis down, Lookup(key 4): %v, want ErrDown without a call", err)
	}
	s.Up()
	within(t, "redis", func() bool { return db.Down() == nil })
	if _, err := b.Decisions.Keep(ctx, key(5), b.made("text", 1)); !errors.Is(err, redis.ErrDown) {
		t.Errorf("Keep before the other replicas know that Redis is up: %v, want ErrDown", err)
	}
	within(t, "the others", db.Settled)
	if _, err := b.Decisions.Keep(ctx, key(5), b.made("text", 1)); err != nil {
		t.Errorf("Keep after they know: %v, want no error", err)
	}
	if missed > 0 {
		t.Errorf("missed was called %d times, want never", missed)
	}
}

// TestLateDecisionsAreNotKept checks that a server that hung does not store a decision
// after its caller gave up.
func TestLateDecisionsAreNotKept(t *testing.T) {
	s := redistest.Start(t)
	a := Share(dial(t, s), time.Hour)
	keep(t, a, 1, a.made("text", 1))
	if !s.Freeze() {
		t.Skip("needs a redis-server that can be stopped")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := a.Decisions.Keep(ctx, key(2), a.made("late", 1))
	s.Thaw()
	if err == nil {
		t.Fatal("Keep with a server that hangs: no error")
	}
	// The server handles the earlier call before it reads from a new connection.
	b := Share(dial(t, s), time.Hour)
	if got := lookup(t, b, key(1), key(2)); got[0] != "text/1" || got[1] != "" {
		t.Errorf("decisions of keys 1 and 2: %v, want text/1, and none that came too late", got)
	}
}

// TestReplicasDropWhatOneLearnt checks that a replica drops its search results of a group
// when another replica learns something in that group.
func TestReplicasDropWhatOneLearnt(t *testing.T) {
	s := redistest.Start(t)
	recall := func(db *redis.DB) *Recall[[]string] {
		r, err := NewRecall[[]string](RecallOptions{Fresh: time.Minute, Stale: time.Hour, MaxBytes: 1 << 20, Shared: db})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	db := dial(t, s)
	a, b := recall(db), recall(dial(t, s))
	db.Listen("a", a.Apply, func() {})
	for _, group := range []string{"g", "h"} {
		a.Store(group, "q", 1, a.Version(group), []string{"fact"}, 100, false)
	}
	a.Wait()
	if _, found, _ := a.Lookup("g", "q", 1); !found {
		t.Fatal("a result of group g is not found after it was stored")
	}
	began := a.Version("g")
	b.DropGroup("g")
	within(t, "the drop", func() bool { _, found, _ := a.Lookup("g", "q", 1); return !found })
	a.Store("g", "q", 1, began, []string{"old"}, 100, false) // from a search that began before the drop
	a.Wait()
	if _, found, _ := a.Lookup("g", "q", 1); found {
		t.Error("a result is found whose search began before the group was dropped")
	}
	if _, found, _ := a.Lookup("h", "q", 1); !found {
		t.Error("the result of group h is gone, but only g was dropped")
	}
}

// TestAnnouncing checks that Announce returns once all listeners have applied the event,
// names a listener that hangs, and does not wait for a closed listener.
func TestAnnouncing(t *testing.T) {
	s := redistest.Start(t)
	a, b := dial(t, s), dial(t, s)
	ctx := context.Background()
	dead := dial(t, s)
	dead.Listen("dead", func(string) {}, func() {})
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	release, done := make(chan struct{}), atomic.Bool{}
	a.Listen("a", func(string) {}, func() {})
	b.Listen("b", func(event string) {
		if event == EventGeneration {
			<-release
			done.Store(true)
		}
	}, func() {})
	within(t, "both to listen", func() bool {
		n := 0
		err := a.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
			tokens, err := c.SMembers(ctx, redis.Key("listeners")).Result()
			for _, token := range tokens {
				there, e := c.Exists(ctx, redis.Key("listener", token)).Result()
				n, err = n+int(there), errors.Join(err, e)
			}
			return err
		})
		return err == nil && n == 2
	})
	impatient, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := a.Announce(impatient, EventGeneration); err == nil || !strings.Contains(err.Error(), "b has not confirmed") {
		t.Errorf("Announce with a listener that hangs: %v, want an error that names b", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	if err := a.Announce(ctx, "another"); err != nil || !done.Load() {
		t.Errorf("Announce: %v, and b has applied the event before: %v; want no error, true", err, done.Load())
	}
}

// TestReplicasShareAcceptedTenants checks that a tenant accepted by one replica is accepted
// by the others.
func TestReplicasShareAcceptedTenants(t *testing.T) {
	server := redistest.Start(t)
	one, two := Share(dial(t, server), time.Hour), Share(dial(t, server), time.Hour)
	one.Tenants.Accept("a")
	within(t, "another replica knows it", func() bool { return two.Tenants.Accepted(t.Context(), "a") })
	if two.Tenants.Accepted(t.Context(), "b") {
		t.Error("tenant b is accepted, but no replica has accepted it")
	}
}
