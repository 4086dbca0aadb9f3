package observe

import (
	"fmt"
	"testing"
)

// TestClientsOf_Bound: clients beyond the bound share one entry.
func TestClientsOf_Bound(t *testing.T) {
	t.Parallel()
	var c clients
	for i := range 10 * maxSeen {
		c.of(version{fmt.Sprint("client", i), ""})
	}
	if len(c.seen) > maxSeen+1 {
		t.Errorf("got %d entries, want at most %d", len(c.seen), maxSeen+1)
	}
}
