package cache

import (
	"context"
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
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
			if f, ok := s.Snapshots.store.(snapshotFile); ok { // as if they were of different seconds
				err := f.db.Write(context.Background(), func(tx *sqlite.Tx) error {
					_, err := tx.Exec("UPDATE snapshots SET born = born - unicode(session)")
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				got = nil
				if err := s.Snapshots.Each(t.Context(), func(session string, _ []byte) error { got = append(got, session); return nil }, "g"); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.IsSorted(got) {
				t.Errorf("Each calls f with %q, want the order of the keys", got)
			}
		})
	}
}
