package embedded

import (
	"strings"
	"testing"
)

// TestRecentRows_Bound: the messages that were used longest ago go first.
func TestRecentRows_Bound(t *testing.T) {
	r := newRecentRows()
	long := &row{content: strings.Repeat("x", recentBytes/4)}
	for place := range int64(10) {
		r.committed([]int64{1<<placeBits | place}, []*row{long})
	}
	if n, size := r.Held(); n != 3 || size > recentBytes {
		t.Errorf("%d messages with %d bytes, want 3 within %d", n, size, recentBytes)
	}
	h := &hit{place: 9}
	if r.find(1, []*hit{h}); h.row == nil {
		t.Error("the newest message is missing")
	}
	r.drop()
	if n, size := r.Held(); n != 0 || size != 0 {
		t.Errorf("%d messages with %d bytes after drop, want none", n, size)
	}
}
