package inject

import (
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestNewerBreaksTies checks that newer compares creation times if valid_at, which has
// whole seconds, is equal.
func TestNewerBreaksTies(t *testing.T) {
	at := time.Unix(1000, 0)
	old := graphiti.Fact{ValidAt: at, CreatedAt: at.Add(time.Second)}
	young := graphiti.Fact{ValidAt: at, CreatedAt: at.Add(2 * time.Second)}
	if !newer(&young, &old) || newer(&old, &young) {
		t.Errorf("got newer %v and %v, want true and false", newer(&young, &old), newer(&old, &young))
	}
}
