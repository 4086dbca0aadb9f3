package capture

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// TestEndOfAnAbandonedTurnIsHeard checks that a history that brings an abandoned turn with
// only its first or only its last answer stores nothing.
func TestEndOfAnAbandonedTurnIsHeard(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), &fakeMemory{})
	open, whole := turn("1", "g"), turn("1", "g")
	open.Open, open.Assistant, whole.Assistant = true, "I shall look.", "It is done."
	add(t, p, open)
	add(t, p, whole)
	for _, delivered := range []bool{false, true} {
		if delivered {
			waitFor(t, "delivery", func() bool { return p.Status().Delivered == 2 })
		}
		for id, tn := range map[string]ledger.Turn{"2": whole, "3": open} {
			tn.ID, tn.Open, tn.Backfill = id, false, true
			if n, err := p.AddAll(context.Background(), []ledger.Turn{tn}); n != 0 || err != nil {
				t.Errorf("delivered %t: %q is kept again: %d, %v", delivered, tn.Assistant, n, err)
			}
		}
	}
}
