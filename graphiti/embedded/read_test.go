package embedded

import (
	"strings"
	"testing"
)

// TestRecentRows_Deleted: a message that was read before a deletion is not found after it,
// also if its reader is late, because another message may have its id.
func TestRecentRows_Deleted(t *testing.T) {
	r := newRecentRows()
	look := func(place int64) (*row, int64) {
		h := &hit{place: place}
		drops := r.find(1, []*hit{h})
		return h.row, drops
	}
	_, drops := look(1)
	r.Add(rowKey{drops, 1<<placeBits | 1}, &row{content: "old"}, 1)
	if m, _ := look(1); m == nil || m.content != "old" {
		t.Errorf("found %v, want the message", m)
	}
	r.drop()
	r.Add(rowKey{drops, 1<<placeBits | 2}, &row{content: "late"}, 1)
	for place := range int64(3) {
		if m, _ := look(place); m != nil {
			t.Errorf("found %q at %d after a deletion, want nothing", m.content, place)
		}
	}
}

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
