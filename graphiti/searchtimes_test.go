package graphiti

import (
	"testing"
	"time"
)

// TestTimeForStoring checks the part of the timeout that is reserved for storing the
// decision: it is small.
func TestTimeForStoring(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		8 * time.Millisecond: time.Millisecond, 200 * time.Millisecond: 25 * time.Millisecond,
		400 * time.Millisecond: 50 * time.Millisecond, 800 * time.Millisecond: 50 * time.Millisecond,
		1600 * time.Millisecond: 100 * time.Millisecond, time.Minute: 3750 * time.Millisecond,
	} {
		if got := timeout - SearchTime(timeout); got != want {
			t.Errorf("of %s, %s are left for storing, want %s", timeout, got, want)
		}
	}
}
