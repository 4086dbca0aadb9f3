package cache

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Ristretto's own, which its Close ends a moment later.
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2.(*defaultPolicy[...]).processItems"),
	)
}

func openState(t testing.TB, path string) *State {
	t.Helper()
	s, err := OpenState(path, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(n int) (k [16]byte) {
	copy(k[:], fmt.Sprintf("key %d", n))
	return k
}

// lookup returns the blocks found, by position.
func lookup(t testing.TB, s *State, keys ...[16]byte) map[int]string {
	t.Helper()
	got := make(map[int]string)
	if err := s.Blocks.Lookup(context.Background(), keys, func(i int, text string, facts int, _ time.Time) {
		got[i] = fmt.Sprintf("%s/%d", text, facts)
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestBlocksOutliveTheProcess, and the first decision stands.
func TestBlocksOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openState(t, path)
	ctx := context.Background()
	if got := lookup(t, s, key(1), key(2)); len(got) != 0 {
		t.Errorf("an empty file has %v", got)
	}
	for _, tc := range []struct {
		key        int
		text, want string
	}{{1, "first", "first"}, {1, "second", "first"}, {2, "", ""}, {2, "late", ""}} {
		if got, _, err := s.Blocks.Keep(ctx, key(tc.key), tc.text, len(tc.text), time.Now()); err != nil || got != tc.want {
			t.Errorf("keeping %q for %d: %q, %v", tc.text, tc.key, got, err)
		}
	}
	for range 2 {
		got := lookup(t, s, key(2), key(3), key(1))
		if len(got) != 2 || got[0] != "/0" || got[2] != "first/5" {
			t.Errorf("%v", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openState(t, path)
	}
	if got, _, err := s.Blocks.Keep(ctx, key(1), "third", 1, time.Now()); err != nil || got != "first" {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	s.Close()
}

// TestManyKeysAreLookedUpAtOnce: a process that knows nothing finds the blocks
// of the longest conversation in its first request, from either store.
func TestManyKeysAreLookedUpAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	server := redistest.Start(t)
	for name, begin := range map[string]func() *State{
		"file":     func() *State { return openState(t, path) },
		"replicas": func() *State { return Share(dial(t, server), time.Hour) },
	} {
		s := begin()
		keys := make([][16]byte, 2*maxLookup+10)
		for i := range keys {
			keys[i] = key(i)
			if i%3 == 0 { // about the others nothing was decided
				continue
			}
			if _, _, err := s.Blocks.Keep(t.Context(), key(i), "b", i, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
		s = begin()
		for _, when := range []string{"at first", "again"} {
			got := lookup(t, s, keys...)
			for i := range keys {
				if want := fmt.Sprintf("b/%d", i); i%3 == 0 && got[i] != "" || i%3 > 0 && got[i] != want {
					t.Fatalf("%s, %s: block %d of %d is %q", name, when, i, len(got), got[i])
				}
			}
		}
		s.Close()
	}
}

func TestOldStateIsRemoved(t *testing.T) {
	s := openState(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	ctx := context.Background()
	if _, _, err := s.Blocks.Keep(ctx, key(1), "b", 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Chain.Put(ctx, key(1), "session:1"); err != nil {
		t.Fatal(err)
	}
	kept := s.store.(*file)
	count := func() (n int) {
		t.Helper()
		if err := kept.db.QueryRow(ctx, "SELECT (SELECT count(*) FROM blocks) + (SELECT count(*) FROM chain)", nil, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	kept.sweep(time.Now().Add(-time.Minute))
	if n := count(); n != 2 {
		t.Errorf("%d rows after sweeping what is older", n)
	}
	kept.sweep(time.Now().Add(time.Minute))
	if n := count(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestChainFindsTheLongestKnownBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openState(t, path)
	ctx := context.Background()
	for i, session := range map[int]string{1: "session:a", 2: "session:b"} {
		if err := s.Chain.Put(ctx, key(i), session); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // from memory, and from the file
		for _, tc := range []struct {
			ask  [][16]byte
			want string
		}{
			{[][16]byte{key(9), key(2), key(1)}, "session:b"},
			{[][16]byte{key(1), key(2)}, "session:a"},
			{[][16]byte{key(9), key(8)}, ""},
			{nil, ""},
		} {
			got, ok, err := s.Chain.Find(ctx, tc.ask)
			if err != nil || got != tc.want || ok != (tc.want != "") {
				t.Errorf("%q, %v, %v; want %q", got, ok, err, tc.want)
			}
		}
		s.Close()
		s = openState(t, path)
	}
	s.Close()
}

// forgetful is a store that keeps nothing.
type forgetful struct{ store }

func (forgetful) shared() bool                                            { return false }
func (forgetful) setPending(context.Context, [16]byte, string, time.Time) {}
func (forgetful) endPendingLater([16]byte)                                {}

// TestPendingConversationEnds with its answer, or after a while.
func TestPendingConversationEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Chain{recent: newRecent[[16]byte, link](linksInMemory), store: forgetful{}}
		c.SetPending(t.Context(), key(1), "session:1")
		c.SetPending(t.Context(), key(2), "session:2")
		if s, ok := c.Pending(t.Context(), key(1)); !ok || s != "session:1" {
			t.Errorf("%q, %v", s, ok)
		}
		c.EndPending(key(1))
		if s, ok := c.Pending(t.Context(), key(1)); ok {
			t.Errorf("after its answer: %q", s)
		}
		time.Sleep(pendingFor + time.Second)
		if s, ok := c.Pending(t.Context(), key(2)); ok {
			t.Errorf("after a while: %q", s)
		}
	})
}

// TestPendingConversationOutlivesTheProcess: its client asks again after a
// crash.
func TestPendingConversationOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := OpenState(path, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.Chain.SetPending(t.Context(), key(1), "session:1")
	s.Chain.SetPending(t.Context(), key(2), "session:2")
	s.Chain.EndPending(key(2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenState(path, time.Hour); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if session, ok := s.Chain.Pending(t.Context(), key(1)); !ok || session != "session:1" {
		t.Errorf("%q, %v", session, ok)
	}
	if session, ok := s.Chain.Pending(t.Context(), key(2)); ok {
		t.Errorf("answered, and still %q", session)
	}
}

func TestRecentStaysWithinItsBounds(t *testing.T) {
	r := newRecent[int, int](100)
	for i := range 1000 {
		r.put(i, i, 10)
	}
	if n := len(r.new) + len(r.old); n > 21 {
		t.Errorf("%d entries", n)
	}
	if v, ok := r.get(999); !ok || v != 999 {
		t.Error("the newest is gone")
	}
}

func TestRecallAges(t *testing.T) {
	r, err := NewRecall[string](RecallOptions{Fresh: time.Second, Stale: time.Hour, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _, generation := r.Fetch(t.Context(), "g", "q")
	r.Store("g", "q", generation, "v", 100, false)
	r.Store("g", "none", generation, "", 100, true)
	r.Wait()
	if v, found, fresh := r.Lookup("g", "q"); v != "v" || !found || !fresh {
		t.Errorf("%q, %v, %v", v, found, fresh)
	}
	if _, found, _ := r.Lookup("h", "q"); found {
		t.Error("another group has it")
	}
	time.Sleep(1100 * time.Millisecond)
	if v, found, fresh := r.Lookup("g", "q"); v != "v" || !found || fresh {
		t.Errorf("stale: %q, %v, %v", v, found, fresh)
	}
	if _, found, _ := r.Lookup("g", "none"); found {
		t.Error("that nothing was found is believed for too long")
	}
	r.DropGroup("g")
	if _, found, _ := r.Lookup("g", "q"); found {
		t.Error("still there after the group learnt something")
	}
}

// TestRecallKeepsNothingFromBeforeAChange: what a search found that began before
// its group learnt something, or lost it, is not stored after.
func TestRecallKeepsNothingFromBeforeAChange(t *testing.T) {
	server := redistest.Start(t)
	for _, tc := range []struct {
		name   string
		shared bool
		change func(*Recall[string])
		found  bool
	}{
		{"nothing happened", false, func(*Recall[string]) {}, true},
		{"something was learnt", false, func(r *Recall[string]) { r.DropGroup("g") }, false},
		{"all is dropped", false, func(r *Recall[string]) { r.DropAll() }, false},
		{"another replica forgot", false, func(r *Recall[string]) { r.Heard(NewsOfForget + "g") }, false},
		{"something was learnt elsewhere", false, func(r *Recall[string]) { r.DropGroup("h") }, true},
		{"nothing happened, replicas", true, func(*Recall[string]) {}, true},
		{"something was learnt, replicas", true, func(r *Recall[string]) { r.DropGroup("g") }, false},
		{"another replica learnt something", true, func(r *Recall[string]) { r.Heard(newsOfDrop + "g") }, false},
	} {
		o := RecallOptions{Fresh: time.Minute, Stale: time.Hour, MaxBytes: 1 << 20}
		if tc.shared {
			o.Shared = dial(t, server)
		}
		r, err := NewRecall[string](o)
		if err != nil {
			t.Fatal(err)
		}
		_, _, generation := r.Fetch(t.Context(), "g", "q")
		tc.change(r)
		r.Store("g", "q", generation, "v", 100, false)
		r.Wait()
		if v, found, _ := r.Lookup("g", "q"); found != tc.found {
			t.Errorf("%s: %q, %v", tc.name, v, found)
		}
		r.Close()
	}
}
