package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// all returns the records of a kind that a store holds for keys, as key=value.
func all(t *testing.T, s *tables, k *kind, keys ...string) string {
	t.Helper()
	var asked [][]byte
	for _, key := range keys {
		asked = append(asked, []byte(key))
	}
	var got []string
	err := s.get(t.Context(), k, asked, func(i int, value []byte) error {
		got = append(got, keys[i]+"="+string(value))
		return nil
	})
	must(t, err)
	slices.Sort(got)
	return strings.Join(got, " ")
}

// TestStores checks that every store behaves the same.
func TestStores(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			state, ctx := open(t), t.Context()
			s := state.Snapshots.store
			k := snapshotKind
			text := func(key, value string, generation int64, scopes ...string) *record {
				return &record{kind: k, key: []byte(key), value: []byte(value), generation: generation, scopes: scopes}
			}
			first := func(r *record, refused string) *record { r.first, r.refused = true, []byte(refused); return r }
			write := func(records ...*record) func() error { return func() error { return s.write(ctx, records...) } }
			keep := func(r *record, want string) func() error {
				return func() error {
					got, err := s.keep(ctx, r)
					if err == nil && string(got) != want {
						err = fmt.Errorf("keep returns %q, want %q", got, want)
					}
					return err
				}
			}
			forget := func(scope string, want int) func() error {
				return func() error {
					n, err := s.forget(ctx, k, scope)
					if err == nil && n != want {
						err = fmt.Errorf("forget ends %d records, want %d", n, want)
					}
					return err
				}
			}
			raise := func(scope string) func() error {
				return func() error {
					_, err := s.raise(ctx, &record{kind: forgetKind, key: []byte(scope), value: []byte("\n\n\nfalse\n")}, 0, []string{scope})
					return err
				}
			}
			for i, step := range []struct {
				do   func() error
				want string
			}{
				{write(text("a", "1", 1, "g"), text("b", "1", 1, "g", "h"), text("c", "1", 1)), "a=1 b=1 c=1"},
				{write(text("a", "2", 1, "i")), "a=2 b=1 c=1"},
				{keep(first(text("a", "3", 1), "0"), "2"), "a=2 b=1 c=1"},
				{write(&record{kind: k, key: []byte("c"), was: []byte("another")}), "a=2 b=1 c=1"},
				{write(&record{kind: k, key: []byte("c"), was: []byte("1")}), "a=2 b=1"},
				{raise("g"), "a=2 b=1"},
				{write(text("b", "late", 1, "g"), text("c", "late", 1, "h", "g")), "a=2 b=1"},
				{forget("g", 2), ""}, // a too, which was in g earlier
				{forget("g", 0), ""},
				{keep(first(text("a", "late", 1, "g"), "0"), "0"), "a=0"},
				{forget("g", 0), "a=0"}, // a refused record has no scopes
				{keep(first(text("b", "new", 2, "g"), "0"), "new"), "a=0 b=new"},
				{write(&record{kind: k, key: []byte("a")}), "b=new"},
			} {
				if err := step.do(); err != nil {
					t.Errorf("step %d: %v", i, err)
				}
				if got := all(t, s, k, "a", "b", "c"); got != step.want {
					t.Errorf("step %d: the store holds %q, want %q", i, got, step.want)
				}
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := s.keep(ended, first(text("c", "late", 2), "0")); err == nil || all(t, s, k, "c") != "" {
				t.Errorf("keep for nobody: %v, and the store holds %q; want an error, and nothing", err, all(t, s, k, "c"))
			}
		})
	}
}

// TestErrorOfAReaderIsNotTheStores checks that an error of the function that receives the
// records, such as a client that disconnected, is returned unchanged.
func TestErrorOfAReaderIsNotTheStores(t *testing.T) {
	for name, open := range stores() {
		s := open(t)
		must(t, s.Sessions.Put(t.Context(), "session:1", key(1)))
		gone := errors.New("the client has left")
		err := s.Sessions.store.get(t.Context(), linkKind, keysOf([][16]byte{key(1)}), func(int, []byte) error { return gone })
		if !errors.Is(err, gone) {
			t.Errorf("%s: %v, want %v alone", name, err, gone)
		}
	}
}

// TestADamagedDecisionIsNoBlock checks that damaged values are rejected, not inserted as a
// block.
func TestADamagedDecisionIsNoBlock(t *testing.T) {
	made := inject.Decision{Ingest: true, Facts: 2, Generation: 3, Block: "<graphiti_memory>\n- My canoe is called Wanda, says Zoë.\n</graphiti_memory>\n\n"}
	whole := encodeDecision(&made)
	if d, err := parseDecision(whole, true); err != nil || *d != made {
		t.Fatalf("a decision that is whole: %+v, %v", d, err)
	}
	made.Pieces = inject.Pieces(strings.Repeat("p", 300))
	long := encodeDecision(&made)
	if d, err := parseDecision(long, true); err != nil || *d != made {
		t.Fatalf("a decision with pieces: %+v, %v", d, err)
	}
	for name, value := range map[string][]byte{
		"nothing":        nil,
		"another format": {3, 2, 3, 0, 0, 'x'},
		"its beginning":  whole[:3],
		"pieces are cut": long[:100],
	} {
		if d, err := parseDecision(value, true); err == nil {
			t.Errorf("%s: read as %+v, want an error", name, d)
		}
		if rest, counted := emptied(value); rest != nil || counted {
			t.Errorf("%s: %q stays, counted %v", name, rest, counted)
		}
	}
}

// FuzzDecision checks that emptying any readable decision removes its block and pieces and
// nothing else, and that emptying it again changes nothing.
func FuzzDecision(f *testing.F) {
	for _, d := range []inject.Decision{{}, {Reason: "weak", Pieces: "pieces"}, {Ingest: true, Facts: 2, Generation: 300, Block: "block", Pieces: "pieces"}} {
		f.Add(encodeDecision(&d))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		d, err := parseDecision(value, true)
		if err != nil {
			return
		}
		rest, counted := emptied(value)
		if counted != (d.Block != "") {
			t.Errorf("%q: counted %v", value, counted)
		}
		d.Block, d.Pieces = "", ""
		left, err := parseDecision(rest, true)
		if err != nil || *left != *d {
			t.Errorf("%q leaves %+v, %v", value, left, err)
		}
		if again, counted := emptied(rest); counted || !bytes.Equal(again, rest) {
			t.Errorf("%q, emptied again: %q, %v", rest, again, counted)
		}
	})
}

// TestAFileLooksAtNoMoreThanItNeeds checks that the statements for trimming a list and for
// forgetting a scope use an index, since requests wait while the file is written.
func TestAFileLooksAtNoMoreThanItNeeds(t *testing.T) {
	f, err := openFile(t.TempDir()+"/state.db", time.Hour)
	must(t, err)
	defer f.close()
	for statement, want := range map[string]string{
		beyondMost(standingKind): "SEARCH standing USING PRIMARY KEY (list=?)",
		ofScope(decisionKind):    "SEARCH block USING INDEX sqlite_autoindex_block_1 (list=?)",
	} {
		var steps []string
		err := f.db.Each(t.Context(), "EXPLAIN QUERY PLAN "+statement, make([]any, strings.Count(statement, "?")), func(scan func(...any) error) error {
			var id, parent, unused int
			var step string
			err := scan(&id, &parent, &unused, &step)
			steps = append(steps, step)
			return err
		})
		if !slices.Contains(steps, want) || err != nil {
			t.Errorf("%s: %q, %v, want %q", statement, steps, err, want)
		}
	}
}
