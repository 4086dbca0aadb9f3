package proxy

import (
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// call is what belongs to a request from its first byte to the answer's last: it
// is made once, and no step changes what another has made. It belongs to the
// goroutine that serves the request.
type call struct {
	request // what is decided about

	x      *wire.Exchange // nil over a WebSocket
	pieces [][]byte       // of the body that is sent
	seen   observe.Request
}

// smallConversation bounds what a call keeps of a conversation.
const smallConversation = 64 << 10

var calls = sync.Pool{New: func() any { return new(call) }}

func (s *Server) newCall(x *wire.Exchange, h *fasthttp.RequestHeader) *call {
	c := calls.Get().(*call) //nolint:forcetypeassert // the pool's only type
	c.x, c.head = x, h
	c.memory, c.limits, c.share = s.mem(), s.way().limits, s.budget.Share()
	return c
}

// release gives the call's buffers back. Nothing may refer to them any more.
func (c *call) release() {
	c.dropConversation()
	c.share.Release()
	conv, chain, pieces := c.conv, c.chain[:0], c.pieces[:0]
	clear(pieces[:cap(pieces)])
	*c = call{request: request{conv: conv, chain: chain}, pieces: pieces}
	calls.Put(c)
}

// freeBody gives back what was needed for reading the request, which has been
// sent. What the answer's turn holds of it stays counted.
func (c *call) freeBody(held int) {
	c.dropConversation()
	c.plain, c.body = nil, wire.Body{}
	c.share.Shrink(c.x.FreeBody() + c.conv.Size() + held)
}

// dropConversation takes what was read of the body from the call, unless it is
// small.
func (c *call) dropConversation() {
	c.conv.Reset() // which refers to the body
	if c.conv.Size() > smallConversation {
		c.conv = dialect.Conversation{}
	}
	if cap(c.chain) > smallConversation/16 {
		c.chain = nil
	}
}
