package wire

import (
	"errors"
	"io"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

const (
	// firstBody is what is allocated for a body before any of it has come,
	// whatever it says of its length.
	firstBody = 16 << 10

	// smallBody bounds the buffer that an exchange keeps, and keptBody those
	// that are kept for reuse beside it.
	smallBody = 64 << 10
	keptBody  = 1 << 20
)

// bodies holds buffers of bodies between smallBody and keptBody.
var bodies sync.Pool

// Body is what was read of a request's body. Its bytes are the exchange's, until
// FreeBody.
type Body struct {
	Bytes []byte
	Whole bool // there is no more; else the rest is streamed
	Busy  bool // it was to be read whole, and there is no memory for it
}

// Reading says how much of a body is read before it is sent on.
type Reading struct {
	Limit   int           // bytes; of a body that says that it is longer, none
	Inspect bool          // the body is wanted whole
	Share   *budget.Share // pays for what is read
}

// ReadBody reads the request's body up to a limit; the rest is streamed by
// Forward.
func (x *Exchange) ReadBody(r Reading) (Body, error) {
	busy, err := x.readBody(r)
	if x.rest == nil {
		x.client.EndBody()
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

// growBody makes room for more of the body, up to its largest size, or up to
// length where that is known. It reports false where the budget does not have it.
// What is allocated follows what has come, never what is only said.
func (x *Exchange) growBody(length int, r Reading) bool {
	before := cap(x.body)
	if len(x.body) == 0 && length > smallBody {
		if b, _ := bodies.Get().(*[]byte); b != nil && r.Share.Resize(before, cap(*b)) {
			x.body, x.box = (*b)[:0], b
			return true
		}
	}
	size := max(4*before, firstBody)
	if length >= 0 {
		size = min(size, length)
	}
	size = min(size, max(r.Limit, before)+1)
	if !r.Share.Grow(size) {
		return false
	}
	x.body = append(make([]byte, 0, size), x.body...)
	r.Share.Shrink(r.Share.Held() - before)
	return true
}

// FreeBody gives the body's buffer back, unless it is small, and returns how
// many bytes are held on to. The body has been sent.
func (x *Exchange) FreeBody() (held int) {
	if n := cap(x.body); n > smallBody {
		if n <= keptBody {
			if x.box == nil {
				x.box = new([]byte)
			}
			*x.box = x.body
			bodies.Put(x.box)
		}
		x.body, x.box = nil, nil
	}
	x.body = x.body[:0]
	return cap(x.body)
}
