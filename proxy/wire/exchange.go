package wire

import (
	"io"
	"sync"

	"github.com/valyala/fasthttp"
)

// Exchange is the byte stream of one request and its answer:
//
//	Begin → Check → ReadBody → Watch → Forward → Relay or Tunnel → End
//
// It belongs to the goroutine that serves the request.
type Exchange struct {
	w        *Wire
	ctx      *fasthttp.RequestCtx
	client   *clientConn
	timeouts Timeouts

	head headFacts

	body     []byte    // the part of the request's body that was read
	rest     io.Reader // the unread rest of the body, or nil
	fields   int       // number of head fields, if the body is chunked
	trailers []byte    // trailer lines of a chunked body that was read completely
	pump     *pump     // streams rest

	out []byte // buffer for heads
	in  []byte // bytes read from the upstream

	*link
}

var exchanges = sync.Pool{New: func() any { return &Exchange{in: make([]byte, firstRead), link: new(link)} }}

// Begin starts the exchange of a request after its head was read.
func (w *Wire) Begin(ctx *fasthttp.RequestCtx, t Timeouts) *Exchange {
	x := exchanges.Get().(*Exchange) //nolint:forcetypeassert // the pool's only type
	x.w, x.ctx, x.timeouts = w, ctx, t
	x.client, _ = ctx.Conn().(*clientConn)
	x.head = readFields(ctx.Request.Header.RawHeaders())
	return x
}

// End releases the exchange's buffers, which the caller must not use any more.
func (x *Exchange) End() {
	x.w.hangups.forget(x.link)
	x.gone, x.up = false, nil
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
	*x = Exchange{link: x.link, body: x.body, in: x.in, out: x.out[:0], trailers: x.trailers[:0]}
	exchanges.Put(x)
}

// Break ends the exchange after a panic. It resets the client's connection, because the
// answer may be incomplete. The exchange is not reused: the code that panicked may still
// refer to it.
func (x *Exchange) Break() {
	x.w.hangups.forget(x.link)
	x.abandon()
	x.pump.join(x)
	x.client.muted = true
	x.client.reset()
	x.ctx.SetConnectionClose()
}

// Watch ends the exchange when the client disconnects. If the body was not read
// completely, watching begins when the pump has sent it.
func (x *Exchange) Watch() {
	if x.rest == nil {
		x.w.hangups.watch(x.link, x.client.sock)
	}
}

// Unanswered ends the exchange without an answer after the client has disconnected.
func (x *Exchange) Unanswered() {
	x.ctx.SetConnectionClose()
	x.client.muted = true
}
