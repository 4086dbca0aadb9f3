package cache

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// stores returns a function for each store that opens a state in it.
func stores() map[string]func(t *testing.T) *State {
	return map[string]func(t *testing.T) *State{
		"file": func(t *testing.T) *State {
			s := openState(t, filepath.Join(t.TempDir(), "state.db"))
			t.Cleanup(func() { s.Close() })
			return s
		},
		"postgres": func(t *testing.T) *State { return share(t, postgrestest.Database(t)) },
	}
}

// share returns the state of a new replica.
func share(t testing.TB, url string) *State {
	t.Helper()
	server, err := postgres.Open(postgres.Options{URL: url, Name: rand.Text(), Steps: []string{PostgresSchema()}, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	s := Share(server, time.Hour, slog.New(slog.DiscardHandler))
	server.OnChange(s.Generations.Refresh)
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return s
}

// TestStartedReplicaReadsBlocks checks that a new replica reads the blocks that others stored in the
// last minutes, to repeat them if Postgres fails next.
func TestStartedReplicaReadsBlocks(t *testing.T) {
	url := postgrestest.Database(t)
	s := share(t, url)
	keep(t, s, 1, s.made("text", 1), "g")
	must(t, s.Sessions.Put(t.Context(), "session", key(2)))
	for _, table := range []string{"block", "link"} {
		postgrestest.Exec(t, url, fmt.Sprintf("UPDATE graphiti_proxy.%s SET born = born - %d", table, time.Minute.Microseconds()))
	}
	started := share(t, url)
	helptest.Until(t, "the block and the session", func() bool {
		d, block := started.Decisions.recent.Get(key(1))
		session, _ := started.Sessions.recent.Get(key(2))
		return block && d.Block == "text" && session == "session"
	})
}

// TestStaleWritesAfterForget checks that a request that arrived before a group or
// session was forgotten stores neither a block nor a snapshot of it. Later requests do, and
// a decision without a block counts as a decision, too.
func TestStaleWritesAfterForget(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), context.Background()
			before := s.made("text", 1)
			dropped := before
			dropped.Ingest = false
			keep(t, s, 0, before, "g")
			lookup(t, s, key(0))
			for _, f := range []Forget{{Group: "g", Scope: "g"}, {Group: "i", Scope: "talk:1:", Session: "session:1"}} {
				must(t, helptest.ErrorOf(s.Generations.Raise(ctx, f)))
				must(t, helptest.ErrorOf(s.Decisions.Forget(ctx, f.Group)))
				must(t, s.Snapshots.Forget(ctx, f.Scope))
				if _, err := s.Generations.Raise(ctx, f); err != nil { // invalidates decisions that were cached meanwhile
					t.Fatal(err)
				}
			}
			keep(t, s, 1, before, "h", "g")
			keep(t, s, 2, dropped, "g")
			keep(t, s, 3, before, "h")
			keep(t, s, 4, s.made("text", 1), "g")
			keep(t, s, 5, before, "i") // its block may contain facts from the session
			got := lookup(t, s, key(0), key(1), key(2), key(3), key(4), key(5))
			for i, want := range []string{"/1", "/0", "/0 dropped", "text/1", "text/1", "/0"} {
				if got[i] != want {
					t.Errorf("block %d is %q, want %q", i, got[i], want)
				}
			}
			if got := keep(t, s, 1, s.made("another", 1), "g"); got != "/0" {
				t.Errorf("a second decision for key 1: %q, want the first, /0", got)
			}
			list, err := s.Decisions.Lookup(ctx, s.Generations.Now(), [][16]byte{key(3)})
			if err != nil || list[0].Generation != before.Generation {
				t.Errorf("decision of key 3: %+v, %v; want generation %d", list[0], err, before.Generation)
			}

			save(t, s, "early", "early", before.Generation, "h", "g")
			save(t, s, "session", "session", before.Generation, "h", "talk:1:")
			save(t, s, "elsewhere", "elsewhere", before.Generation, "i") // in group i, but not of the session
			save(t, s, "late", "late", s.Generations.Now(), "h", "g")
			load := func(session string) string {
				t.Helper()
				body, err := s.Snapshots.Load(ctx, session)
				must(t, err)
				return string(body)
			}
			if got := load("early") + load("session"); got != "" || load("elsewhere") == "" || load("late") == "" {
				t.Errorf("snapshots of what was forgotten: %q, want none; the other group's: %q, a later one: %q, want some", got, load("elsewhere"), load("late"))
			}
		})
	}
}

// TestPiecesGoWithTheBlock checks that no decision names forgotten search results, whether
// it showed them, stayed silent or came too late. Only emptied blocks count.
func TestPiecesGoWithTheBlock(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), t.Context()
			found := func(block string) inject.Decision {
				d := s.made(block, len(block))
				d.Pieces = "ids"
				return d
			}
			silent := found("")
			silent.Reason = "weak"
			late := found("block")
			keep(t, s, 0, found("block"), "g", "h")
			keep(t, s, 1, silent, "g")
			keep(t, s, 2, found("block"), "h")
			check := func(when string, want ...string) {
				t.Helper()
				list, err := s.Decisions.WithPieces(ctx, [][16]byte{key(0), key(1), key(9), key(2), key(3)})
				must(t, err)
				for i, d := range list {
					got := "none"
					if d != nil {
						got = fmt.Sprintf("%s %d %s %s", d.Block, d.Facts, d.Reason, d.Pieces)
					}
					if got != want[i] {
						t.Errorf("%s: decision %d: %q, want %q", when, i, got, want[i])
					}
				}
			}
			check("at first", "block 5  ids", " 0 weak ids", "none", "block 5  ids", "none")
			must(t, helptest.ErrorOf(s.Generations.Raise(ctx, Forget{Group: "g", Scope: "g"})))
			for _, want := range []int{1, 0} {
				if n, err := s.Decisions.Forget(ctx, "g"); n != want || err != nil {
					t.Errorf("Forget emptied %d blocks, %v; want %d", n, err, want)
				}
			}
			keep(t, s, 3, late, "h", "g")
			check("forgotten", " 5  ", " 0 weak ", "none", "block 5  ids", " 0  ")
			list, err := s.Decisions.Lookup(ctx, s.Generations.Now(), [][16]byte{key(2)})
			if err != nil || list[0].Pieces != "" {
				t.Errorf("a decision with pieces in RAM: %+v, %v", list[0], err)
			}
		})
	}
}

// TestDecisionsReadWhileAGroupIsForgotten checks that decisions cached while a group is
// being forgotten are not used afterwards.
func TestDecisionsReadWhileAGroupIsForgotten(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), t.Context()
			f := Forget{Group: "g", Scope: "g"}
			keep(t, s, 0, s.made("text", 1), "g")
			keep(t, s, 1, s.made("text", 1), "h")
			var err error
			if f, err = s.Generations.Raise(ctx, f); err != nil {
				t.Fatal(err)
			}
			lookup(t, s, key(0), key(1))
			must(t, helptest.ErrorOf(s.Decisions.Forget(ctx, "g")))
			must(t, helptest.ErrorOf(s.Generations.Raise(ctx, f)))
			if got := lookup(t, s, key(0), key(1)); got[0] != "/1" || got[1] != "text/1" {
				t.Errorf("decisions of keys 0 and 1: %v, want /1 and text/1", got)
			}
		})
	}
}
