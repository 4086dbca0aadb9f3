package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// entries returns the entries of lists in the order in which they are read.
func entries(t *testing.T, s *State, lists ...string) string {
	t.Helper()
	var all []string
	err := s.Snapshots.Entries(t.Context(), func(list string, entry []byte) { all = append(all, list+":"+string(entry)) }, lists...)
	must(t, err)
	return strings.Join(all, " ")
}

func add(t *testing.T, s *State, list string, entry []byte, generation int64, scopes ...string) {
	t.Helper()
	must(t, s.Snapshots.Add(t.Context(), list, entry, generation, scopes...))
}

// TestLists checks that Entries returns the entries of the given lists, newest first, and
// that only forgotten entries disappear and are not stored again.
func TestLists(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), t.Context()
			before := s.Generations.Now()
			add(t, s, "a", []byte("one\nline"), before, "g", "talk:1:")
			add(t, s, "a", []byte("two"), before, "g", "talk:2:")
			add(t, s, "b", []byte("three"), before, "h", "talk:1:")
			add(t, s, "c", []byte("four"), before, "g")
			if got := entries(t, s, "a"); got != "a:two a:one\nline" {
				t.Errorf("entries of a: %q, want two, then one", got)
			}
			if got := entries(t, s, "b", "nobody's"); got != "b:three" {
				t.Errorf("entries of b and of an empty list: %q, want b:three", got)
			}

			f := Forget{Group: "g", Scope: "talk:1:", Session: "session:1"}
			must(t, helptest.ErrorOf(s.Generations.Raise(ctx, f)))
			must(t, s.Snapshots.Forget(ctx, f.Scope))
			add(t, s, "a", []byte("again"), before, "g", "talk:1:")
			add(t, s, "a", []byte("late"), before, "g", "talk:2:")
			if got := entries(t, s, "a"); got != "a:late a:two" {
				t.Errorf("entries of a after the session was forgotten: %q, want late, then two", got)
			}
			if got := entries(t, s, "b"); got != "" {
				t.Errorf("entries of b, which the session said elsewhere: %q, want none", got)
			}
			must(t, s.Snapshots.Forget(ctx, "g"))
			if got := entries(t, s, "a", "c"); got != "" {
				t.Errorf("entries of a and c after their group was forgotten: %q, want none", got)
			}
		})
	}
}

// TestListsAreBounded checks that a full list drops its oldest entries.
func TestListsAreBounded(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for i := range 2 * standingKind.most {
				add(t, s, "a", fmt.Append(nil, i), s.Generations.Now(), "g")
			}
			if all := strings.Fields(entries(t, s, "a")); len(all) != standingKind.most || all[0] != fmt.Sprintf("a:%d", 2*standingKind.most-1) || all[standingKind.most-1] != fmt.Sprintf("a:%d", standingKind.most) {
				t.Errorf("%d entries: %q; want the newest %d", len(all), all, standingKind.most)
			}
		})
	}
}
