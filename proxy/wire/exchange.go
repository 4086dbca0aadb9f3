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
	client   *ClientConn
	timeouts Timeouts

	connection []byte // the client's Connection field
	suspect    bool   // the head says two things about the body's length
	marked     bool   // a proxy in front has marked the request, see hops.go

	body     []byte    // what was read of the request's body
	box      *[]byte   // that the body's buffer came in from bodies; nil: it is new
	rest     io.Reader // the body's rest, to be streamed; nil when body holds all
	fields   int       // how many the head has, where the body comes in chunks
	trailers []byte    // lines behind a body in chunks that was read whole
	pump     *pump     // streams the rest

	out []byte // heads under construction
	in  []byte // what was read from the upstream

	list [][]byte    // what is written at once
	bufs net.Buffers // of it, what is still to be written

	*link // which a stream takes along
}

// keptList bounds the pieces of a body whose list an exchange keeps.
const keptList = 128

var exchanges = sync.Pool{New: func() any { return &Exchange{in: make([]byte, FirstRead)} }}

// Begin starts the exchange of a request whose head has been read.
func (w *Wire) Begin(ctx *fasthttp.RequestCtx, t Timeouts) *Exchange {
	x := exchanges.Get().(*Exchange) //nolint:forcetypeassert // the pool's only type
	x.w, x.ctx, x.timeouts = w, ctx, t
	if x.link == nil {
		x.link = new(link)
	}
	x.client, _ = ctx.Conn().(*ClientConn)
	x.connection, x.trailers = connectionOf(ctx.Request.Header.RawHeaders()), x.trailers[:0]
	return x
}

// End gives the exchange's buffers back. Nothing may refer to them any more.
func (x *Exchange) End() {
	if x.link != nil {
		x.w.hangups.forget(x.link)
		x.gone, x.up = false, nil
	}
	x.FreeBody()
	if len(x.in) == MaxRead {
		in := x.in
		wideBuffers.Put(&in)
	}
	if len(x.in) != FirstRead {
		x.in = make([]byte, FirstRead)
	}
	if cap(x.out) > smallBody {
		x.out = nil
	}
	x.out = x.out[:0]
	if x.bufs = nil; cap(x.list) > keptList {
		x.list = nil
	}
	x.w, x.ctx, x.client, x.rest, x.pump, x.connection = nil, nil, nil, nil, nil, nil
	x.suspect, x.marked, x.fields = false, false, 0
	exchanges.Put(x)
}

// Break ends the exchange where a bug has shown. The client is reset, because
// nobody can say what was answered. The exchange is not used again: what broke
// may still hold it.
func (x *Exchange) Break() {
	x.w.hangups.forget(x.link)
	x.abandon()
	x.pump.join(x)
	x.client.Mute()
	x.client.Reset()
	x.ctx.SetConnectionClose()
}

// Watch has the exchange end when the client leaves, from now on where its body
// was read, and else from when it has been sent.
func (x *Exchange) Watch() {
	if x.rest == nil {
		x.w.hangups.watch(x.link, x.client.Sock)
	}
}

// Unanswered says that the client gets no answer, because it is gone.
func (x *Exchange) Unanswered() {
	x.ctx.SetConnectionClose()
	x.client.Mute()
}
