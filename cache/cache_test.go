package cache

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		postgrestest.Stop()
		os.Exit(code)
	}))
}

func openState(t testing.TB, path string) *State {
	t.Helper()
	s, err := OpenState(path, time.Hour)
	must(t, err)
	return s
}

func key(n int) (k [16]byte) {
	copy(k[:], fmt.Sprintf("key %d", n))
	return k
}

// lookup returns the decisions of the keys as text, by position of the key.
func lookup(t testing.TB, s *State, keys ...[16]byte) map[int]string {
	t.Helper()
	list, err := s.Decisions.Lookup(context.Background(), s.Generations.Now(), keys)
	must(t, err)
	got := make(map[int]string)
	for i, d := range list {
		if d != nil {
			got[i] = text(d)
		}
	}
	return got
}

func text(d *inject.Decision) string {
	text := fmt.Sprintf("%s/%d", d.Block, d.Facts)
	if !d.Ingest {
		text += " dropped"
	}
	return text
}

// made returns a decision for a request that arrives now.
func (s *State) made(block string, facts int) inject.Decision {
	return inject.Decision{Block: block, Facts: facts, Ingest: true, Generation: s.Generations.Now()}
}

func keep(t testing.TB, s *State, n int, d inject.Decision, groups ...string) string {
	t.Helper()
	kept, err := s.Decisions.Keep(context.Background(), key(n), d, groups...)
	must(t, err)
	return text(kept)
}

// TestManyKeysAreLookedUpAtOnce checks that a new process finds all decisions of a long
// conversation in one lookup.
func TestManyKeysAreLookedUpAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for name, begin := range map[string]func() *State{"file": func() *State { return openState(t, path) }} {
		s := begin()
		keys := make([][16]byte, 2*maxLookup+10)
		for i := range keys {
			keys[i] = key(i)
			if i%3 == 0 { // these keys have no decision
				continue
			}
			keep(t, s, i, s.made("b", i))
		}
		s.Close()
		s = begin()
		for _, when := range []string{"at first", "again"} {
			got := lookup(t, s, keys...)
			for i := range keys {
				if want := fmt.Sprintf("b/%d", i); i%3 == 0 && got[i] != "" || i%3 > 0 && got[i] != want {
					t.Fatalf("%s, %s: block of key %d is %q, want %q for a key with a decision (%d found)", name, when, i, got[i], want, len(got))
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
	keep(t, s, 1, s.made("b", 1))
	must(t, s.Sessions.Put(ctx, "session:1", key(1)))
	count := func() (n int) {
		t.Helper()
		must(t, s.tables.db.QueryRow(ctx, "SELECT (SELECT count(*) FROM block) + (SELECT count(*) FROM link)", nil, &n))
		return n
	}
	s.tables.flush(ctx)
	s.tables.sweep(ctx, time.Now().Add(59*time.Minute))
	if n := count(); n != 2 {
		t.Errorf("%d records after a sweep before they expire, want 2", n)
	}
	s.tables.sweep(ctx, time.Now().Add(61*time.Minute))
	if n := count(); n != 0 {
		t.Errorf("%d records after a sweep when they have expired, want 0", n)
	}
}

func TestChainFindsTheLongestKnownBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openState(t, path)
	ctx := context.Background()
	for i, session := range map[int]string{1: "session:a", 2: "session:b"} {
		must(t, s.Sessions.Put(ctx, session, key(i)))
	}
	for range 2 { // first from memory, then from the file
		for _, tc := range []struct {
			ask  [][16]byte
			want string
		}{
			{[][16]byte{key(9), key(2), key(1)}, "session:b"},
			{[][16]byte{key(1), key(2)}, "session:a"},
			{[][16]byte{key(9), key(8)}, ""},
			{nil, ""},
		} {
			got, ok, err := s.Sessions.Find(ctx, tc.ask)
			if err != nil || got != tc.want || ok != (tc.want != "") {
				t.Errorf("Find(%q): %q, %v, %v; want %q", tc.ask, got, ok, err, tc.want)
			}
		}
		s.Close()
		s = openState(t, path)
	}
	s.Close()
}

// TestPendingConversationEnds checks that a pending conversation ends with its answer or
// after pendingFor.
func TestPendingConversationEnds(t *testing.T) {
	s := openState(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	c := s.Sessions
	c.SetPending(t.Context(), key(1), "session:1")
	if session, ok := c.Pending(t.Context(), key(3), key(1)); !ok || session != "session:1" {
		t.Errorf("Pending(key 1): %q, %v; want session:1", session, ok)
	}
	c.EndPending(key(1))
	if session, ok := c.Pending(t.Context(), key(1)); ok {
		t.Errorf("Pending(key 1) after its answer: %q, want none", session)
	}
	old, of := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(-time.Second).Unix())), key(2)
	must(t, s.tables.write(t.Context(), &record{kind: pendingKind, key: of[:], value: append(old, "session:2"...)}))
	if session, ok := c.Pending(t.Context(), of); ok {
		t.Errorf("Pending(key 2) after %v: %q, want none", pendingFor, session)
	}
}

// TestPendingConversationOutlivesTheProcess checks that a client that repeats its request
// after a crash finds its conversation again.
func TestPendingConversationOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := OpenState(path, time.Hour)
	must(t, err)
	s.Sessions.SetPending(t.Context(), key(1), "session:1")
	s.Sessions.SetPending(t.Context(), key(2), "session:2")
	s.Sessions.EndPending(key(2))
	must(t, s.Close())
	if s, err = OpenState(path, time.Hour); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if session, ok := s.Sessions.Pending(t.Context(), key(1)); !ok || session != "session:1" {
		t.Errorf("Pending(key 1) after a restart: %q, %v; want session:1", session, ok)
	}
	if session, ok := s.Sessions.Pending(t.Context(), key(2)); ok {
		t.Errorf("Pending(key 2), which was answered: %q, want none", session)
	}
}
