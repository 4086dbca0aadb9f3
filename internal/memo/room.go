package memo

import (
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// Small limits the buffers of a conversation that a request retains during its
	// stream, in bytes.
	Small = 64 << 10

	// kept limits the buffers that the pool retains from a body of longBody or more:
	// agents send one with every step.
	kept     = 1 << 20
	longBody = 128 << 10
)

// spare pools unused conversations with buffers for long bodies.
var spare sync.Pool

// Lend gives an empty conversation pooled buffers if its body is long and the pool has
// some.
func Lend(c *dialect.Conversation, length int) {
	if length < longBody {
		return
	}
	if l, _ := spare.Get().(*dialect.Conversation); l != nil {
		*c = *l
	}
}

// TakeBack returns the buffers of a reset conversation to the pool, unless they are small.
func TakeBack(c *dialect.Conversation) {
	size := c.Size()
	if size <= Small {
		return
	}
	if size <= kept {
		l := *c
		spare.Put(&l)
	}
	*c = dialect.Conversation{}
}
