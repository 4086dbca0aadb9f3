package wire

import (
	"io"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire/listen"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire/sock"
)

const (
	// firstRead is what is asked of a connection at once; the buffer grows
	// for answers that fill it and stays small for streams of small chunks.
	firstRead = 4 << 10
	maxRead   = 64 << 10
)

// Exchange is one request and its answer, as bytes:
//
//	Begin → Check → ReadBody → Watch → Forward → Relay or Tunnel → End
//
// It belongs to the goroutine that serves the request; abandon may be called
// from others.
type Exchange struct {
	w        *Wire
	ctx      *fasthttp.RequestCtx
	client   *listen.Conn
	timeouts Timeouts

	connection []byte // the client's Connection field
	suspect    bool   // the head says two things about the body's length
	marked     bool   // a proxy in front has marked the request, see hops.go

	body     []byte    // what was read of the request's body
	rest     io.Reader // the body's rest, to be streamed; nil when body holds all
	fields   int       // how many the head has, where the body comes in chunks
	trailers []byte    // lines behind a body in chunks that was read whole
	pump     *pump     // streams the rest

	out []byte // heads under construction
	in  []byte // what was read from the upstream

	watched int // position in hangups, plus one; guarded by hangups.mu

	mu   sync.Mutex // guards gone and up
	gone bool       // the client left, or the server stops
	up   *Conn      // closed when the client leaves
}

// wide holds buffers for answers that fill the first one.
var wide = sync.Pool{New: func() any { b := make([]byte, maxRead); return &b }}

var exchanges = sync.Pool{New: func() any { return &Exchange{in: make([]byte, firstRead)} }}

// Begin starts the exchange of a request whose head has been read.
func (w *Wire) Begin(ctx *fasthttp.RequestCtx, t Timeouts) *Exchange {
	x := exchanges.Get().(*Exchange) //nolint:forcetypeassert // the pool's only type
	x.w, x.ctx, x.timeouts = w, ctx, t
	x.client, _ = ctx.Conn().(*listen.Conn)
	x.connection, x.trailers = connectionOf(ctx.Request.Header.RawHeaders()), x.trailers[:0]
	return x
}

// End gives the exchange's buffers back. Nothing may refer to them any more.
func (x *Exchange) End() {
	x.w.hangups.forget(x)
	x.FreeBody()
	if len(x.in) == maxRead {
		in := x.in
		wide.Put(&in)
	}
	if len(x.in) != firstRead {
		x.in = make([]byte, firstRead)
	}
	if cap(x.out) > smallBody {
		x.out = nil
	}
	x.out = x.out[:0]
	x.w, x.ctx, x.client, x.rest, x.pump, x.up, x.connection = nil, nil, nil, nil, nil, nil, nil
	x.gone, x.suspect, x.marked, x.fields = false, false, false, 0
	exchanges.Put(x)
}

// Break ends the exchange where a bug has shown. The client is reset, because
// nobody can say what was answered. The exchange is not used again: what broke
// may still hold it.
func (x *Exchange) Break() {
	x.w.hangups.forget(x)
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
		x.w.hangups.watch(x)
	}
}

// Unanswered says that the client gets no answer, because it is gone.
func (x *Exchange) Unanswered() {
	x.ctx.SetConnectionClose()
	x.client.Mute()
}

// Gone reports whether the client has left, or the server stops.
func (x *Exchange) Gone() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.gone
}

// abandon ends the upstream's part of the exchange.
func (x *Exchange) abandon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone = true
	if x.up != nil {
		_ = sock.Raw(x.up.Conn).Close() // without a word, which could take time
	}
}

// attach makes up the connection that abandon closes. It reports whether the
// client is still there.
func (x *Exchange) attach(up *Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.up = up
	return !x.gone
}

// detach takes the connection out of abandon's reach, and reports whether
// abandon has not closed it.
func (x *Exchange) detach() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.up = nil
	return !x.gone
}
