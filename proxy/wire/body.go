package wire

import (
	"errors"
	"io"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

const (
	// firstBody limits the first allocation for a body, regardless of its announced
	// length.
	firstBody = 16 << 10

	// smallBody limits the buffer that an exchange retains, and keptBody the buffers
	// in the pool.
	smallBody = 64 << 10
	keptBody  = 1 << 20
)

// bodies pools buffers between smallBody and keptBody.
var bodies sync.Pool

// Body is the part of a request's body that was read. The exchange owns its bytes, which
// are valid until FreeBody.
type Body struct {
	Bytes []byte
	Whole bool // the entire body was read; otherwise Forward streams the rest
	Busy  bool // the body could not be read completely for lack of RAM
}

// Reading limits how much of a body is read before it is forwarded.
type Reading struct {
	Limit   int           // maximum bytes; a body that announces more is not read at all
	Inspect bool          // the caller needs the entire body
	Share   *budget.Share // pays for the buffer
}

// ReadBody reads the request's body up to a limit. Forward streams the rest.
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

// growBody enlarges the buffer, up to the limit or the announced length. It returns
// false if the budget is exhausted. It allocates in proportion to the bytes received,
// never by the announced length alone.
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

// FreeBody releases the body after it was sent. It returns a large buffer to the pool,
// and reports the size of the buffer that the exchange retains.
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
