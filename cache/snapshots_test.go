package cache

import (
	"slices"
	"testing"
)

// TestSnapshotIsThereOnceSaved: the next turn adds to it, however soon it comes.
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

// save keeps the snapshot of a session.
func save(t *testing.T, s *State, session, text string, generation int64, scopes ...string) {
	t.Helper()
	if err := s.Snapshots.Save(t.Context(), session, []byte(text), generation, scopes...); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotsComeInOneOrder, whenever and wherever they were saved: what is
// exported and imported again is exported as it was.
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
