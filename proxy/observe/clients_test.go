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
		c.of(fmt.Sprint("client", i), "")
	}
	if c.n > maxSeen+1 {
		t.Errorf("got %d entries, want at most %d", c.n, maxSeen+1)
	}
}
