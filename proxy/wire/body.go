package wire

import (
	"errors"
	"io"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

const (
	// firstBody is the most bytes that are allocated for a body before any of it has
	// come, whatever length it announces.
	firstBody = 16 << 10

	// smallBody bounds the buffer that an exchange keeps, and keptBody those
	// that are kept for reuse beside it.
	smallBody = 64 << 10
	keptBody  = 1 << 20
)

// bodies holds buffers of sizes between smallBody and keptBody.
var bodies sync.Pool

// Body holds what was read of a request's body. Its bytes belong to the exchange, and
// are valid until FreeBody.
type Body struct {
	Bytes []byte
	Whole bool // all of it was read; otherwise Forward streams the rest
	Busy  bool // it had to be read whole, but there is not enough RAM
}

// Reading says how much of a body is read before it is sent on.
type Reading struct {
	Limit   int           // the most bytes; a body that announces more is not read at all
	Inspect bool          // the body is wanted whole
	Share   *budget.Share // pays for what is read
}

// ReadBody reads the request's body up to a limit; the rest is streamed by
// Forward.
func (x *Exchange) ReadBody(r Reading) (Body, error) {
	busy, err := x.readBody(r)
	if x.rest == nil {
		x.client.stage = stageIdle
	}
	return Body{x.body, x.rest == nil, busy && r.Inspect}, err
}

func (x *Exchange) readBody(r Reading) (busy bool, err error) {
	stream := x.ctx.RequestBodyStream()
	if stream == nil {
		return false, nil
	}
	length := x.ctx.Request.Header.ContentLength()
	if length < 0 {
		x.fields = headFields(&x.ctx.Request.Header)
	}
	if length > r.Limit {
		x.rest = stream
		return false, nil
	}
	if !r.Share.Grow(cap(x.body)) {
		x.body = nil
	}
	if r.Inspect && !r.Share.Fits(length-cap(x.body)) {
		x.rest = stream
		return true, nil
	}
	for {
		if len(x.body) == cap(x.body) {
			switch {
			case len(x.body) == length:
				return false, nil
			case len(x.body) > r.Limit:
				x.rest = stream
				return false, nil
			case !x.growBody(length, r):
				x.rest = stream
				return true, nil
			}
		}
		n, err := stream.Read(x.body[len(x.body):cap(x.body)])
		x.body = x.body[:len(x.body)+n]
		switch {
		case errors.Is(err, io.EOF):
			if length >= 0 && len(x.body) < length {
				return false, errShort
			}
			if length < 0 {
				x.trailers = x.appendTrailers(x.trailers)
				x.dropTrailers()
			}
			return false, nil
		case err == nil:
		case IsTimeout(err):
			return false, ErrBodyLate
		default:
			return false, errBody
		}
	}
}

// growBody makes room for more of the body, up to the limit, or to its length when
// that is known. It returns false when the budget does not allow it. It allocates in
// step with what has come, never by the announced length alone.
func (x *Exchange) growBody(length int, r Reading) (ok bool) {
	before := cap(x.body)
	if len(x.body) == 0 && length > smallBody {
		if b, _ := bodies.Get().(*[]byte); b != nil && r.Share.Resize(before, cap(*b)) {
			x.body = (*b)[:0]
			return true
		}
	}
	size := max(4*before, firstBody)
	if length >= 0 {
		size = min(size, length)
	}
	x.body, ok = r.Share.Regrow(x.body, min(size, max(r.Limit, before)+1))
	return ok
}

// FreeBody returns the body's buffer to the pool, unless it is small, and returns how
// many bytes the exchange keeps. The body has been sent.
func (x *Exchange) FreeBody() (held int) {
	if n := cap(x.body); n > smallBody {
		if n <= keptBody {
			body := x.body
			bodies.Put(&body)
		}
		x.body = nil
	}
	x.body = x.body[:0]
	return cap(x.body)
}
