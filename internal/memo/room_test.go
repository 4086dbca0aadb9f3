package memo

import (
	"reflect"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// TestRoomForLongBodies checks that another conversation can reuse the memory of a long
// one, without its content, and that a short conversation keeps its memory.
func TestRoomForLongBodies(t *testing.T) {
	read := func(messages int) (c dialect.Conversation) {
		body := `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"secret"},`, messages), ",") + `]}`
		if !new(chat.Dialect).Parse([]byte(body), &c) {
			t.Fatal("not understood")
		}
		c.Reset()
		return c
	}
	for _, tc := range []struct {
		name           string
		messages, body int
		leaves, lends  bool
	}{
		{"long", 2000, 512 << 10, true, true},
		{"long, for a short body", 2000, 8 << 10, true, false},
		{"too long", 19000, 512 << 10, true, false},
		{"small", 10, 512 << 10, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for spare.Get() != nil { // drop the memory of the previous case
			}
			lent := false
			for try := 0; try == 0 || tc.lends && !lent && try < 100; try++ { // a pool may drop its items
				c := read(tc.messages)
				had := c.Size()
				TakeBack(&c)
				if left := c.Size() == 0; left != tc.leaves {
					t.Errorf("%d of %d bytes are still there", c.Size(), had)
				}
				var other dialect.Conversation
				Lend(&other, tc.body)
				lent = other.Size() == had
				for _, m := range other.Messages[:cap(other.Messages)] {
					if !reflect.ValueOf(m).IsZero() {
						t.Fatalf("got %+v, want an empty message", m)
					}
				}
			}
			if lent != tc.lends {
				t.Errorf("lent is %t", lent)
			}
		})
	}
}
