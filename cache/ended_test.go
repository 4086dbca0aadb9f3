package cache

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEnded: ended messages of a group are listed until they are restored, or the group is
// forgotten.
func TestEnded(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
			for _, add := range []struct {
				group string
				names []string
			}{{"w", []string{"one", "two", "one"}}, {"w", []string{"three"}}, {"v", []string{"four"}}} {
				must(t, s.Ended.Add(t.Context(), add.group, add.names, at, 0))
			}
			want := func(group string, names ...string) {
				t.Helper()
				got, err := s.Ended.In(t.Context(), group)
				must(t, err)
				var since map[string]string
				for _, n := range names {
					if since == nil {
						since = make(map[string]string)
					}
					since[n] = "2026-11-25T12:00:00Z"
				}
				if diff := cmp.Diff(since, got); diff != "" {
					t.Errorf("ended in %s (-want +got):\n%s", group, diff)
				}
			}
			want("w", "one", "two", "three")
			want("v", "four")
			must(t, s.Ended.Restore(t.Context(), "w", "two", "unknown"))
			want("w", "one", "three")
			if got, err := s.Ended.In(t.Context()); len(got) > 0 || err != nil {
				t.Errorf("ended in no groups: got %v, %v, want none", got, err)
			}
			must(t, s.Snapshots.Forget(t.Context(), "w"))
			want("w")
			want("v", "four")
		})
	}
}

// TestDroppedBlock is gone for good, also after a restart.
func TestDroppedBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openState(t, path)
	d := s.made("shown", 2)
	keep(t, s, 1, d, "g")
	d.Ingest = false
	must(t, s.Decisions.Drop(t.Context(), key(1), d))
	if got := lookup(t, s, key(1)); got[0] != "/0 dropped" {
		t.Errorf("got %v, want a decision without a block", got)
	}
	if got := keep(t, s, 1, s.made("again", 1), "g"); got != "/0 dropped" {
		t.Errorf("decided again: got %q, want the decision without a block", got)
	}
	must(t, s.Close())
	s = openState(t, path)
	defer s.Close()
	if got := lookup(t, s, key(1)); got[0] != "/0 dropped" {
		t.Errorf("after a restart: got %v, want a decision without a block", got)
	}
}
