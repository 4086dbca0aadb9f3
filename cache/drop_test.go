package cache

import (
	"path/filepath"
	"testing"
)

// TestDroppedBlock is gone for good, also after a restart.
func TestDroppedBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openState(t, path)
	d := s.made("shown", 2)
	keep(t, s, 1, d, "g")
	d.Ingest = false
	if err := s.Decisions.Drop(t.Context(), key(1), d); err != nil {
		t.Fatal(err)
	}
	if got := lookup(t, s, key(1)); got[0] != "/0 dropped" {
		t.Errorf("got %v, want a decision without a block", got)
	}
	if got := keep(t, s, 1, s.made("again", 1), "g"); got != "/0 dropped" {
		t.Errorf("decided again: got %q, want the decision without a block", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openState(t, path)
	defer s.Close()
	if got := lookup(t, s, key(1)); got[0] != "/0 dropped" {
		t.Errorf("after a restart: got %v, want a decision without a block", got)
	}
}
