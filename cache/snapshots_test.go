package cache

import (
	"slices"
	"testing"
)

// TestSnapshotsComeInOneOrder, whenever and wherever they were saved: what is
// exported and imported again is exported as it was.
func TestSnapshotsComeInOneOrder(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			saved := []string{"d", "a", "e", "c", "b"}
			for _, session := range saved {
				s.Snapshots.Save(session, []byte("text"), 1, "g")
			}
			var got []string
			within(t, "all snapshots", func() bool {
				got = nil
				err := s.Snapshots.Each(t.Context(), func(session string, _ []byte) error { got = append(got, session); return nil }, "g")
				return err == nil && len(got) == len(saved)
			})
			if !slices.IsSorted(got) {
				t.Errorf("Each calls f with %q, want the order of the keys", got)
			}
		})
	}
}
