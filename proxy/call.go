package proxy

import (
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/budget"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// call is one request on its way through the proxy, and the buffers it needs.
// It is owned by the goroutine that serves the request.
type call struct {
	x     *wire.Exchange // nil over a WebSocket
	head  *fasthttp.RequestHeader
	route route

	share  budget.Share // what is inspected of the request
	body   wire.Body
	plain  []byte // what the body says, where it is encoded
	pieces [][]byte
	conv   dialect.Conversation
	chain  []dialect.Fingerprint
	says   identity.Claims
	mem    remembered

	// How memory is set, for all of the request, whatever changes meanwhile.
	memory *Memory

	// Over a WebSocket: that it is read, and where a conversation stands that
	// the request refers to.
	intercepted bool
	held        *heldEnd

	trace  *requestTrace // nil: nobody looks
	status int           // of the answer; 0: none yet
	id     uint64        // its number
	ids    *requestIDs
}

// smallConversation bounds what a call keeps of a conversation.
const smallConversation = 64 << 10

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall(x *wire.Exchange, h *fasthttp.RequestHeader) *call {
	c := calls.Get().(*call) //nolint:forcetypeassert // the pool's only type
	c.x, c.head = x, h
	return c
}

// release gives the call's buffers back. Nothing may refer to them any more.
func (c *call) release() {
	c.dropConversation()
	c.share.Release()
	conv, chain, pieces := c.conv, c.chain[:0], c.pieces[:0]
	clear(pieces[:cap(pieces)])
	*c = call{conv: conv, chain: chain, pieces: pieces}
	calls.Put(c)
}

// freeBody gives back what was needed for reading the request, which has been
// sent. What the answer's turn still holds stays counted.
func (c *call) freeBody() {
	c.dropConversation()
	c.plain, c.body = nil, wire.Body{}
	c.share.Shrink(c.x.FreeBody() + c.conv.Size() + c.mem.copied)
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
