package cache

import (
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestSnapshotIsThereOnceSaved checks that Load returns a snapshot immediately after Save.
func TestSnapshotIsThereOnceSaved(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, text := range []string{"first", "second"} {
				save(t, s, "session", text, 1, "g")
				if got, err := s.Snapshots.Load(t.Context(), "session"); string(got) != text || err != nil {
					t.Errorf("Load after Save(%q) = %q, %v", text, got, err)
				}
			}
		})
	}
}

// TestTrial_Forgotten checks that a forget of a group, or of a part of it, removes the trials with lines
// of the group, and no other.
func TestTrial_Forgotten(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, group := range []string{"g", "h"} {
				must(t, s.Trials.Save(t.Context(), group, []byte("{}"), 0, group, "trials"))
			}
			must(t, helptest.ErrorOf(s.Decisions.Forget(t.Context(), "g")))
			var left []string
			err := s.Trials.Each(t.Context(), func(key string, _ []byte) error { left = append(left, key); return nil }, "trials")
			if !slices.Equal(left, []string{"h"}) || err != nil {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// TestSnapshot_Forgotten checks that forgetting a scope removes its snapshots at once, and
// that an earlier request cannot store one again.
func TestSnapshot_Forgotten(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			check := func(when, want string) {
				t.Helper()
				if got, err := s.Snapshots.Load(t.Context(), "session"); string(got) != want || err != nil {
					t.Errorf("%s: Load = %q, %v, want %q", when, got, err, want)
				}
			}
			before := s.Generations.Now()
			save(t, s, "session", "secret", before, "g")
			check("before", "secret")
			save(t, s, "session", "more secret", before, "g") // not committed yet
			raised, err := s.Generations.Raise(t.Context(), Forget{Group: "g", Scope: "g"})
			must(t, err)
			must(t, s.Snapshots.Forget(t.Context(), "g"))
			check("forgotten", "")
			save(t, s, "session", "late secret", before, "g")
			check("saved by an earlier request", "")
			save(t, s, "session", "new", raised.Generation, "g")
			check("saved by a later request", "new")
		})
	}
}

// save stores the snapshot of a session.
func save(t *testing.T, s *State, session, text string, generation int64, scopes ...string) {
	t.Helper()
	must(t, s.Snapshots.Save(t.Context(), session, []byte(text), generation, scopes...))
}

// TestSnapshotsComeInOneOrder checks that Each lists snapshots by session, not in the order
// of storing, so that an export does not change if it is imported and exported again.
func TestSnapshotsComeInOneOrder(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, session := range []string{"d", "a", "e", "c", "b"} {
				save(t, s, session, "text", 1, "g")
			}
			var got []string
			err := s.Snapshots.Each(t.Context(), func(session string, _ []byte) error { got = append(got, session); return nil }, "g")
			if want := []string{"a", "b", "c", "d", "e"}; !slices.Equal(got, want) || err != nil {
				t.Errorf("Each calls f with %q, %v, want %q", got, err, want)
			}
		})
	}
}
