package embedded

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// openEmbedded opens an empty store that ends with the test.
func openEmbedded(t testing.TB) *Store {
	t.Helper()
	if postgrestest.Chosen(t) {
		e := openShared(t, postgrestest.Database(t))
		if _, _, err := e.db.(*postgres.DB).Take(t.Context()); err != nil { // it delivers
			t.Fatal(err)
		}
		return e
	}
	e, err := Open(filepath.Join(t.TempDir(), "memory.db"))
	must(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// openShared returns the store of a new replica.
func openShared(t testing.TB, url string) *Store {
	t.Helper()
	s, err := postgres.Open(postgres.Options{URL: url, Name: rand.Text(), Steps: []string{PostgresSchema + ledger.PostgresSchema}, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	e := OpenShared(s.DB(false))
	t.Cleanup(func() {
		e.Close()
		s.Close()
	})
	return e
}

// finds returns whether a search of a replica finds a text.
func finds(t *testing.T, e *Store, group, query, text string) bool {
	t.Helper()
	facts, err := e.Search(t.Context(), []string{group}, query, 10)
	must(t, err)
	return slices.ContainsFunc(facts, func(f graphiti.Fact) bool { return strings.Contains(f.Text, text) })
}

func share(t testing.TB, e *Store, group, name, text string) {
	t.Helper()
	must(t, e.Write(t.Context(), group, []graphiti.Row{{Name: name, Role: graphiti.RoleUser, Text: text, Said: said}}))
}

// TestReplicasSeeEachOther checks that the next search and the next listing of a replica show
// new, ended and forgotten rows of another one.
func TestReplicasSeeEachOther(t *testing.T) {
	url := postgrestest.Database(t)
	a, b := openShared(t, url), openShared(t, url)
	const asked = "Where does the parrot Kiko live?"
	for _, e := range []*Store{a, b} {
		if finds(t, e, "g", asked, "Kiko") {
			t.Fatal("found before it was said")
		}
	}
	share(t, a, "g", "m1", "The parrot Kiko lives in Lisbon.")
	if !finds(t, b, "g", asked, "Lisbon") || !finds(t, a, "g", asked, "Lisbon") {
		t.Error("the first message of a group is not found")
	}
	share(t, b, "g", "m2", "The hamster Bolt lives in Porto.")
	if !finds(t, a, "g", "Where does the hamster Bolt live?", "Porto") {
		t.Error("a further message is not found")
	}
	for i, e := range []*Store{a, b} {
		if rows := rowsOf(t, e, "g", graphiti.Filter{}); len(rows) != 2 {
			t.Errorf("replica %d lists %d messages, want 2", i, len(rows))
		}
	}
	fact := graphiti.Distilled{Name: "f1", Role: graphiti.RoleUser, Text: "Kiko the parrot lives in Faro.", Keys: []string{"home of the parrot"}, Sources: []string{"m1"}, Since: said}
	if n, err := a.RestoreDistilled(t.Context(), "g", []graphiti.Distilled{fact}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if !finds(t, b, "g", asked, "Faro") {
		t.Error("a fact is not found")
	}
	must(t, a.EndDistilled(t.Context(), "g", []string{"m1"}, said.Add(time.Hour)))
	if finds(t, b, "g", asked, "Faro") {
		t.Error("a fact that another replica has ended is found")
	}
	must(t, helptest.ErrorOf(a.ForgetEpisodes(t.Context(), "g", func(r *graphiti.Row) bool { return r.Name == "m1" })))
	if finds(t, b, "g", asked, "Kiko") || !finds(t, b, "g", "Where does the hamster Bolt live?", "Porto") {
		t.Error("another replica does not follow a deletion")
	}
	must(t, b.Forget(t.Context(), "g"))
	if finds(t, a, "g", "Where does the hamster Bolt live?", "Porto") || len(rowsOf(t, a, "g", graphiti.Filter{})) > 0 {
		t.Error("a forgotten group is found")
	}
	share(t, a, "g", "m3", "The hamster Bolt lives in Braga.")
	if !finds(t, b, "g", "Where does the hamster Bolt live?", "Braga") {
		t.Error("a message after a forget is not found")
	}
}

// TestReplicasWriteOneGroup checks that concurrent writes of replicas to one group lose nothing,
// for the searches of either.
func TestReplicasWriteOneGroup(t *testing.T) {
	url := postgrestest.Database(t)
	all := []*Store{openShared(t, url), openShared(t, url)}
	const writers, each = 4, 15
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range each {
				e := all[w%len(all)]
				share(t, e, "g", fmt.Sprintf("m%d-%d", w, i), fmt.Sprintf("The locker %c%c%d of building %d holds umbrellas.", 'a'+w, 'q'+w, i, i))
				finds(t, e, "g", "umbrellas", "")
			}
		})
	}
	running.Wait()
	for i, e := range all {
		for w := range writers {
			for n := range each {
				word := fmt.Sprintf("%c%c%d", 'a'+w, 'q'+w, n)
				if !finds(t, e, "g", "What does the locker "+word+" hold?", word) {
					t.Errorf("replica %d does not find %s", i, word)
				}
			}
		}
	}
}

// TestRaiseRev_Order checks that a write that raises revs locks its groups in the order of a turn:
// otherwise the two undo each other.
func TestRaiseRev_Order(t *testing.T) {
	url := postgrestest.Database(t)
	e, other := openShared(t, url), openShared(t, url)
	share(t, e, "z", "m1", "The hamster Bolt lives in Porto.") // its number is lower
	share(t, e, "a", "m2", "The parrot Kiwi lives in Lisbon.")
	raised := make(chan error)
	err := other.db.Write(t.Context(), func(tx *database.Tx) error {
		if err := other.lock(tx, "a"); err != nil {
			return err
		}
		if _, err := tx.Exec("SELECT 1"); err != nil {
			return err
		}
		go func() {
			raised <- e.db.Write(context.Background(), func(tx *database.Tx) error {
				_, err := tx.Exec(raiseRev, numbersOf([]unreadMessage{{id: 1 << placeBits}, {id: 2 << placeBits}}))
				return err
			})
		}()
		helptest.Until(t, "the other write to wait", func() bool {
			return postgrestest.Count(t, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
		})
		_, err := tx.Exec("SELECT 1 FROM groups WHERE name = 'z' FOR UPDATE NOWAIT")
		return err
	})
	if err != nil {
		t.Errorf("the write has locked the second group first: %v", err)
	}
	must(t, <-raised)
}

// TestForgetAgainstWriters checks that no text comes back, while processes or goroutines write turns
// that arrived before a forget. FORGETS is their number.
func TestForgetAgainstWriters(t *testing.T) {
	forgets, _ := strconv.Atoi(os.Getenv("FORGETS"))
	forgets = max(forgets, 30)
	say := func(t *ledger.Turn, _ graphiti.Scope) []graphiti.Row {
		return []graphiti.Row{{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Role: graphiti.RoleUser, Text: t.User, Said: said, Source: `{"session":"` + t.OfSession() + `"}`}}
	}
	t.Run("file", func(t *testing.T) {
		e, err := Open(filepath.Join(t.TempDir(), "memory.db"))
		must(t, err)
		defer e.Close()
		s := e.Ledger(say)
		forgetAgainstWriters(t, forgets, s, s)
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Database(t)
		forgetAgainstWriters(t, forgets, openShared(t, url).Ledger(say), openShared(t, url).Ledger(say))
	})
}

func forgetAgainstWriters(t *testing.T, forgets int, all ...*ledger.Ledger) {
	var now, written atomic.Int64
	stop := make(chan struct{})
	var writers sync.WaitGroup
	defer writers.Wait()
	for w := range 6 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				turn := ledger.Turn{ID: fmt.Sprintf("%016x%016x", w, i), Generation: now.Load(), Owner: "user:o", Session: "session:s", Targets: []graphiti.Target{{Group: "g", Scope: graphiti.ScopeUser}}}
				turn.User = fmt.Sprintf("of %d", turn.Generation)
				added, err := all[w%2].Add(t.Context(), []ledger.Turn{turn}, time.Now())
				if err != nil {
					t.Error(err)
					return
				}
				written.Add(int64(len(added[0].Groups)))
			}
		})
	}
	back := func(forgotten int64) (n int) {
		for r, err := range all[0].Rows(t.Context(), "g", graphiti.Filter{Text: true}) {
			var of int64
			if _, scanned := fmt.Sscanf(r.Text, "of %d", &of); err != nil || scanned != nil {
				t.Fatal(err, scanned)
			}
			if of < forgotten {
				n++
			}
		}
		return n
	}
	parts := []ledger.Part{{Group: "g"}, {Group: "g", Session: "session:s"}}
	for n := range int64(forgets) {
		seen := written.Load()
		helptest.Until(t, "further turns", func() bool { return written.Load() > seen+3 || t.Failed() })
		// The number is raised first: requests that arrive later carry it.
		must(t, all[n%2].Forget(parts[n/2%2], n+1))
		now.Store(n + 1)
		if found := back(n + 1); found > 0 {
			t.Errorf("%d texts after forget %d", found, n+1)
		}
	}
	close(stop)
	writers.Wait()
	if found := back(int64(forgets)); found > 0 {
		t.Errorf("%d texts at the end", found)
	}
	t.Logf("%d forgets against %d turns", forgets, written.Load())
}

// TestExpire checks that old messages are deleted with the facts that only they support, that a
// history does not restore their turns, and that newer messages stay.
func TestExpire(t *testing.T) {
	e := openEmbedded(t)
	say := func(t *ledger.Turn, _ graphiti.Scope) []graphiti.Row {
		return []graphiti.Row{{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Role: graphiti.RoleUser, Text: t.User, Said: t.Said}}
	}
	s := e.Ledger(say)
	now := time.Now()
	turn := func(n int, text string, age time.Duration) ledger.Turn {
		return ledger.Turn{ID: fmt.Sprintf("%032x", n), User: text, Said: now.Add(-age), Owner: "user:o", Targets: []graphiti.Target{{Group: "g", Scope: graphiti.ScopeUser}}}
	}
	old, young := turn(1, "The hamster Bolt lives in Porto.", 40*24*time.Hour), turn(2, "The parrot Kiwi lives in Lisbon.", 20*24*time.Hour)
	must(t, helptest.ErrorOf(s.Add(t.Context(), []ledger.Turn{old, young}, now)))
	kept, err := e.RestoreDistilled(t.Context(), "g", []graphiti.Distilled{{Name: "f", Role: graphiti.RoleUser, Text: "Bolt is a hamster in Porto.", Sources: []string{graphiti.EpisodeName(old.ID, graphiti.RoleUser)}, Since: old.Said}})
	if err != nil || kept != 1 {
		t.Fatalf("restored %d facts, %v; want 1", kept, err)
	}
	if !finds(t, e, "g", "Where does the hamster live?", "Porto") {
		t.Fatal("the old message is not found before")
	}
	for range 2 { // the second call deletes no row
		must(t, helptest.ErrorOf(s.Expire(t.Context(), &ledger.Retention{Age: 30 * 24 * time.Hour}, now, false)))
		again := old
		again.Backfill, again.Said = true, now
		must(t, helptest.ErrorOf(s.Add(t.Context(), []ledger.Turn{again}, now)))
		if finds(t, e, "g", "Where does the hamster live?", "Porto") {
			t.Error("the old message or its fact is found")
		}
		if !finds(t, e, "g", "Where does the parrot live?", "Lisbon") {
			t.Error("the newer message is gone")
		}
	}
}

// TestRetention checks the ages of people and projects, holds, and that a dry run deletes nothing.
func TestRetention(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		of   ledger.Retention
		gone string // groups that lose their message
		held string
	}{
		"nothing":                {ledger.Retention{}, "", ""},
		"one age":                {ledger.Retention{Age: 30 * day}, "ann bob shared", ""},
		"a person's shorter age": {ledger.Retention{Of: map[string]time.Duration{"user:ann": 30 * day}}, "ann shared", ""},
		"a person's longer age":  {ledger.Retention{Age: 30 * day, Of: map[string]time.Duration{"user:ann": 100 * day}}, "bob", ""},
		"a project's age":        {ledger.Retention{Age: 100 * day, Of: map[string]time.Duration{"github_repo:x/y": 30 * day}}, "shared", ""},
		"a hold":                 {ledger.Retention{Age: 30 * day, Of: map[string]time.Duration{"user:ann": ledger.Hold}}, "bob", "ann shared"},
		"a hold beside an age":   {ledger.Retention{Age: 30 * day, Of: map[string]time.Duration{"user:ann": ledger.Hold, "github_repo:x/y": 20 * day}}, "bob", "ann shared"},
		"only a hold":            {ledger.Retention{Of: map[string]time.Duration{"user:ann": ledger.Hold}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := openEmbedded(t)
			s := e.Ledger(func(t *ledger.Turn, _ graphiti.Scope) []graphiti.Row {
				return []graphiti.Row{{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Role: graphiti.RoleUser, Text: t.User, Said: t.Said}}
			})
			now := time.Now()
			var turns []ledger.Turn
			for i, one := range []struct{ owner, group string }{{"user:ann", "ann"}, {"user:bob", "bob"}, {"user:ann", "shared"}, {"user:bob", "shared"}} {
				of := ledger.Turn{ID: fmt.Sprintf("%032x", i+1), User: "The hamster Bolt lives in Porto.", Said: now.Add(-40 * day), Owner: one.owner, Targets: []graphiti.Target{{Group: one.group, Scope: graphiti.ScopeUser}}}
				if one.group == "shared" {
					of.Workspace, of.Targets[0].Scope = "github_repo:x/y", graphiti.ScopeWorkspace
				}
				turns = append(turns, of)
			}
			must(t, helptest.ErrorOf(s.Add(t.Context(), turns, now)))
			found := func() (all []string) {
				for _, g := range []string{"ann", "bob", "shared"} {
					if !finds(t, e, g, "Where does the hamster live?", "Porto") {
						all = append(all, g)
					}
				}
				return all
			}
			expire := func(dry bool) (gone, held string) {
				t.Helper()
				list, err := s.Expire(t.Context(), &tc.of, now, dry)
				must(t, err)
				var names [2][]string
				for _, g := range list {
					if want := map[string]int{"shared": 2}[g.Group]; g.Messages != max(want, 1) {
						t.Errorf("%s: %d messages", g.Group, g.Messages)
					}
					of := &names[0]
					if g.Held {
						of = &names[1]
					}
					*of = append(*of, g.Group)
				}
				for _, list := range names {
					slices.Sort(list)
				}
				return strings.Join(names[0], " "), strings.Join(names[1], " ")
			}
			if gone, held := expire(true); gone != tc.gone || held != tc.held || len(found()) > 0 {
				t.Errorf("the dry run names %q and %q, want %q and %q; missing: %v", gone, held, tc.gone, tc.held, found())
			}
			if gone, held := expire(false); gone != tc.gone || held != "" || strings.Join(found(), " ") != tc.gone {
				t.Errorf("%q and %q are gone, missing: %v; want %q", gone, held, found(), tc.gone)
			}
			if gone, _ := expire(true); gone != "" {
				t.Errorf("%q is left", gone)
			}
		})
	}
}

// TestRetentionOfFacts checks that facts expire at their own age, that their messages answer again,
// and that a hold keeps facts.
func TestRetentionOfFacts(t *testing.T) {
	const day = 24 * time.Hour
	e := openEmbedded(t)
	s := e.Ledger(func(t *ledger.Turn, _ graphiti.Scope) []graphiti.Row {
		return []graphiti.Row{{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Role: graphiti.RoleUser, Text: t.User, Said: t.Said}}
	})
	now := time.Now()
	for i, owner := range []string{"ann", "bob"} {
		said := ledger.Turn{ID: fmt.Sprintf("%032x", i+1), User: "My hamster Bolt moved to Porto.", Said: now, Owner: "user:" + owner, Targets: []graphiti.Target{{Group: owner, Scope: graphiti.ScopeUser}}}
		must(t, helptest.ErrorOf(s.Add(t.Context(), []ledger.Turn{said}, now)))
		if n, err := e.RestoreDistilled(t.Context(), owner, []graphiti.Distilled{{Name: "f", Role: graphiti.RoleUser, Text: "The hamster Bolt lives in Porto.", Sources: []string{graphiti.EpisodeName(said.ID, graphiti.RoleUser)}, Since: now, Made: now}}); err != nil || n != 1 {
			t.Fatalf("restored %d facts, %v; want 1", n, err)
		}
	}
	of := ledger.Retention{Facts: 30 * day, Work: day, Of: map[string]time.Duration{"user:bob": ledger.Hold}}
	expire := func(at time.Time, dry bool) (all []string) {
		t.Helper()
		list, err := s.Expire(t.Context(), &of, at, dry)
		must(t, err)
		for _, g := range list {
			all = append(all, fmt.Sprint(g.Group, " ", g.Messages, " ", g.Facts, " ", g.Held))
		}
		return all
	}
	facts := func(group string) (n int) {
		t.Helper()
		must(t, e.Distilled(t.Context(), group, func(*graphiti.Distilled) error { n++; return nil }))
		return n
	}
	if got := expire(now.Add(29*day), false); got != nil {
		t.Errorf("too early: %q", got)
	}
	if got := expire(now.Add(31*day), true); !slices.Equal(got, []string{"ann 0 1 false", "bob 0 1 true"}) || facts("ann") != 1 {
		t.Errorf("the dry run names %q and leaves %d facts", got, facts("ann"))
	}
	if got := expire(now.Add(31*day), false); !slices.Equal(got, []string{"ann 0 1 false"}) || facts("ann") != 0 || facts("bob") != 1 {
		t.Errorf("%q is gone, and %d and %d facts are left", got, facts("ann"), facts("bob"))
	}
	if !finds(t, e, "ann", "Where did the hamster Bolt move?", "Porto") {
		t.Error("the message does not answer again")
	}
}

// TestRestoredDatabase checks that a replica follows a database that was restored from a backup
// while the replica ran.
func TestRestoredDatabase(t *testing.T) {
	url := postgrestest.Database(t)
	e := openShared(t, url)
	share(t, e, "g", "m1", "The hamster Bolt lives in Porto.")
	share(t, e, "g", "m2", "The parrot Kiko lives in Lisbon.")
	if !finds(t, e, "g", "Where does the parrot Kiko live?", "Lisbon") {
		t.Fatal("not found")
	}
	postgrestest.Exec(t, url, `SET search_path = graphiti_proxy; ALTER TABLE messages DISABLE TRIGGER messages_epoch;
		DELETE FROM messages WHERE name = 'm2'; ALTER TABLE messages ENABLE TRIGGER messages_epoch; UPDATE groups SET rev = rev - 1`)
	share(t, e, "other", "m", "The turtle Vega lives in Faro.")
	if finds(t, e, "g", "Where does the parrot Kiko live?", "Lisbon") || !finds(t, e, "g", "Where does the hamster Bolt live?", "Porto") {
		t.Error("the index does not follow the restored database")
	}
	share(t, e, "g", "m3", "The parrot Kiko lives in Braga.")
	if !finds(t, e, "g", "Where does the parrot Kiko live?", "Braga") {
		t.Error("a message after the restore is not found")
	}
}
