package wire

import (
	"io"
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// Exchange is one request and its answer, as bytes:
//
//	Begin → Check → ReadBody → Watch → Forward → Relay, Stream or Tunnel → End
//
// It belongs to the goroutine that serves the request.
type Exchange struct {
	w        *Wire
	ctx      *fasthttp.RequestCtx
	client   *clientConn
	timeouts Timeouts

	head   headFacts
	marked bool // a proxy in front has marked the request, see hops.go

	body     []byte    // what was read of the request's body
	rest     io.Reader // the body's rest, to be streamed; nil when body holds all
	fields   int       // how many fields the head has, when the body comes in chunks
	trailers []byte    // lines behind a body in chunks that was read whole
	pump     *pump     // streams the rest

	out []byte // heads under construction
	in  []byte // what was read from the upstream

	list [][]byte    // what is written at once
	bufs net.Buffers // of it, what is still to be written

	*link // a stream takes it along
}

// keptList bounds the list of a body's pieces that an exchange keeps for reuse.
const keptList = 128

var exchanges = sync.Pool{New: func() any { return &Exchange{in: make([]byte, firstRead)} }}

// Begin starts the exchange of a request whose head has been read.
func (w *Wire) Begin(ctx *fasthttp.RequestCtx, t Timeouts) *Exchange {
	x := exchanges.Get().(*Exchange) //nolint:forcetypeassert // the pool's only type
	x.w, x.ctx, x.timeouts = w, ctx, t
	if x.link == nil {
		x.link = new(link)
	}
	x.client, _ = ctx.Conn().(*clientConn)
	x.head = readFields(ctx.Request.Header.RawHeaders())
	return x
}

// End gives the exchange's buffers back. Nothing may refer to them any more.
func (x *Exchange) End() {
	if x.link != nil {
		x.w.hangups.forget(x.link)
		x.gone, x.up = false, nil
	}
	x.FreeBody()
	if len(x.in) == maxRead {
		in := x.in
		wideBuffers.Put(&in)
	}
	if len(x.in) != firstRead {
		x.in = make([]byte, firstRead)
	}
	if cap(x.out) > smallBody {
		x.out = nil
	}
	if cap(x.list) > keptList {
		x.list = nil
	}
	*x = Exchange{link: x.link, body: x.body, in: x.in, out: x.out[:0], list: x.list, trailers: x.trailers[:0]}
	exchanges.Put(x)
}

// Break ends the exchange after a bug. It resets the client, because nobody knows what
// was answered. The exchange is not used again: the code that broke may still hold it.
func (x *Exchange) Break() {
	x.w.hangups.forget(x.link)
	x.abandon()
	x.pump.join(x)
	x.client.muted = true
	x.client.reset()
	x.ctx.SetConnectionClose()
}

// Watch makes the exchange end when the client leaves: from now on when the body was
// read, and otherwise from when the body has been sent.
func (x *Exchange) Watch() {
	if x.rest == nil {
		x.w.hangups.watch(x.link, x.client.sock)
	}
}

// Unanswered notes that the client gets no answer, because it has left.
func (x *Exchange) Unanswered() {
	x.ctx.SetConnectionClose()
	x.client.muted = true
}
