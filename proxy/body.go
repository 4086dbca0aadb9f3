package proxy

import (
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

const (
	// relayedBody is how much of a body is read before it is sent on, where
	// nothing in it is of interest.
	relayedBody = 64 << 10

	// copiedBody is likewise for a request of a dialect that has no memory and
	// says how long it is: sending it at once is cheaper. Of a longer one
	// nothing is read before.
	copiedBody = 256 << 10

	// firstBody is what is allocated for a body before any of it has come,
	// whatever it says of its length.
	firstBody = 16 << 10

	// smallBody bounds the buffer that a call keeps, and keptBody those that
	// are kept for reuse beside it.
	smallBody = 64 << 10
	keptBody  = 1 << 20
)

// bodies holds buffers of bodies between smallBody and keptBody.
var bodies sync.Pool

// bodyLimit is how much of the request's body is read before it is sent on.
func (s *Server) bodyLimit(c *call) int {
	if c.route.dialect == nil {
		return relayedBody
	}
	o, yes := s.barred(c)
	if !yes {
		return s.way().limits.InspectBytes
	}
	c.mem.barred = &o
	if c.ctx.Request.Header.ContentLength() < 0 {
		return relayedBody
	}
	return copiedBody
}

// growBody makes room for more of the body, of which most bytes may come, or
// length, if that is known. It reports false where the budget does not have it.
// What is allocated follows what has come, never what is only said.
func (c *call) growBody(length, most int) bool {
	before := cap(c.body)
	if len(c.body) == 0 && length > smallBody {
		if b, _ := bodies.Get().(*[]byte); b != nil && c.share.Resize(before, cap(*b)) {
			c.body = (*b)[:0]
			return true
		}
	}
	size := max(4*before, firstBody)
	if length >= 0 {
		size = min(size, length)
	}
	size = min(size, max(most, before)+1)
	if !c.share.Grow(size) {
		return false
	}
	c.body = append(make([]byte, 0, size), c.body...)
	c.share.Shrink(c.share.Held() - before)
	return true
}

// freeBody gives back what was needed for reading the request, which has been
// sent. What the answer's turn still holds stays counted.
func (c *call) freeBody() {
	c.dropBody()
	c.plain = nil
	c.share.Shrink(cap(c.body) + c.conv.Size() + c.mem.copied)
}

// dropBody takes the body's buffers from the call, unless they are small.
func (c *call) dropBody() {
	c.conv.Reset() // which refers to the body
	if c.conv.Size() > smallBody {
		c.conv = dialect.Conversation{}
	}
	if cap(c.chain) > smallBody/16 {
		c.chain = nil
	}
	if n := cap(c.body); n > smallBody {
		if n <= keptBody {
			b := c.body[:0]
			bodies.Put(&b)
		}
		c.body = nil
	}
	c.body = c.body[:0]
}
