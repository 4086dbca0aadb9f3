package memo

import (
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// Small bounds what a request keeps of a conversation, in bytes, for as long
	// as its stream may take.
	Small = 64 << 10

	// kept bounds what is kept for long bodies, of longBody or more: agents send
	// one with every step.
	kept     = 1 << 20
	longBody = 128 << 10
)

// spare are conversations that nobody reads, with room for long bodies.
var spare sync.Pool

// Lend gives c, which is empty, room for a long body where some is kept. It does
// nothing for a short one.
func Lend(c *dialect.Conversation, length int) {
	if length < longBody {
		return
	}
	if l, _ := spare.Get().(*dialect.Conversation); l != nil {
		*c = *l
	}
}

// TakeBack takes what c, which was reset, has room for, unless that is small.
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
