package cache

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
)

// TestDroppedBlock is gone for good: after a restart, and for another replica that had it in
// RAM.
func TestDroppedBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	one := openState(t, path)
	shared := redistest.Start(t)
	a, db := Share(dial(t, shared), time.Hour), dial(t, shared)
	b := Share(db, time.Hour)
	db.Listen("b", func(event string) { _ = b.Apply(context.Background(), event) }, func() {})
	for _, s := range []*State{one, a} {
		d := s.made("shown", 2)
		keep(t, s, 1, d, "g")
		if s == a {
			within(t, "the block on the other replica", func() bool { return lookup(t, b, key(1))[0] == "shown/2" })
		}
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
	}
	within(t, "the drop on the other replica", func() bool { return lookup(t, b, key(1))[0] == "/0 dropped" })
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	one = openState(t, path)
	defer one.Close()
	if got := lookup(t, one, key(1)); got[0] != "/0 dropped" {
		t.Errorf("after a restart: got %v, want a decision without a block", got)
	}
	if n, err := one.Decisions.Emptied(t.Context()); n != 0 || err != nil {
		t.Errorf("got %d emptied blocks, %v, want none", n, err)
	}
}
