package proxy

import (
	"io"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/budget"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

const (
	// firstRead is what is asked of a connection at once; the buffer grows
	// for answers that fill it and stays small for streams of small chunks.
	firstRead = 4 << 10
	maxRead   = 64 << 10
)

// call is one request on its way through the proxy, and the buffers it needs.
// It is owned by the goroutine that serves the request; abandon may be called
// from others.
type call struct {
	ctx    *fasthttp.RequestCtx
	client *clientConn
	route  route

	connection []byte // the client's Connection field
	fields     int    // how many the head has, where the body comes in chunks
	trailers   []byte // lines behind a body in chunks that was read whole
	suspect    bool   // the head says two things about the body's length
	marked     bool   // a proxy in front has marked the request, see loop.go

	share budget.Share // what is inspected of the request

	body  []byte    // what was read of the request's body
	plain []byte    // what body says, where it is encoded
	rest  io.Reader // the body's rest, to be streamed; nil when body holds all
	busy  bool      // the body would have been read whole, and there was no memory for it
	pump  *bodyPump // streams the rest
	out   []byte    // heads under construction
	in    []byte    // what was read from the upstream
	conv  dialect.Conversation
	chain []dialect.Fingerprint
	says  identity.Claims
	mem   remembered

	// How memory is set, for all of the request, whatever changes meanwhile.
	memory *Memory

	// Over a WebSocket: that it is read, and where a conversation stands that
	// the request refers to.
	intercepted bool
	held        *heldEnd

	trace   *requestTrace // nil: nobody looks
	status  int           // of the answer; 0: none yet
	pieced  bool          // some of the stream is with the client, or it is none
	id      uint64        // its number
	ids     *requestIDs
	watched int // position in hangups, plus one; guarded by hangups.mu

	mu   sync.Mutex    // guards gone and up
	gone bool          // the client left, or the server stops
	up   *upstreamConn // closed when the client leaves
}

// wide holds buffers for answers that fill the first one.
var wide = sync.Pool{New: func() any { b := make([]byte, maxRead); return &b }}

var calls = sync.Pool{New: func() any { return &call{in: make([]byte, firstRead)} }}

func newCall(ctx *fasthttp.RequestCtx) *call {
	c := calls.Get().(*call) //nolint:forcetypeassert // the pool's only type
	c.ctx = ctx
	c.client, _ = ctx.Conn().(*clientConn)
	c.connection, c.trailers = connectionOf(ctx.Request.Header.RawHeaders()), c.trailers[:0]
	return c
}

// release gives the call's buffers back. Nothing may refer to them any more.
func (c *call) release() {
	c.dropBody()
	c.share.Release()
	if len(c.in) == maxRead {
		in := c.in
		wide.Put(&in)
	}
	if len(c.in) != firstRead {
		c.in = make([]byte, firstRead)
	}
	if cap(c.out) > smallBody {
		c.out = nil
	}
	c.out, c.chain = c.out[:0], c.chain[:0]
	c.ctx, c.client, c.rest, c.pump, c.up, c.plain = nil, nil, nil, nil, nil, nil
	c.trace, c.status, c.pieced, c.held, c.memory = nil, 0, false, nil, nil
	c.route, c.mem, c.says, c.gone, c.intercepted, c.busy = route{}, remembered{}, identity.Claims{}, false, false, false
	c.suspect, c.marked = false, false
	calls.Put(c)
}

// abandon ends the upstream's part of the call.
func (c *call) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.up != nil {
		_ = rawConn(c.up.Conn).Close() // without a word, which could take time
	}
}

// attach makes up the connection that abandon closes. It reports whether the
// client is still there.
func (c *call) attach(up *upstreamConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = up
	return !c.gone
}

// detach takes the connection out of abandon's reach, and reports whether
// abandon has not closed it.
func (c *call) detach() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = nil
	return !c.gone
}

func (c *call) abandoned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}
