package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/valyala/fasthttp"
)

// Answer is an upstream's answer after its head was read. The exchange is attached to
// its connection until Relay or Tunnel ends it.
type Answer struct {
	AnswerHead
	up *upstreamConn
	n  int // bytes in the exchange's buffer, including the head
}

// Forward sends the request and reads the head of the answer. It makes one attempt: it
// never sends a request twice, except a GET or HEAD without a body on a reused connection
// that the upstream closed. It returns ErrGone if the client disconnected, and a
// ClientError if the request is at fault.
func (x *Exchange) Forward(up *Upstream, o Outgoing) (Answer, error) {
	if o.Pieces == nil {
		o.Pieces = [][]byte{x.body}
	}
	if err := x.buildHead(up, &o); err != nil {
		return Answer{}, err
	}
	for {
		conn, reused, err := up.take(x.w.base)
		if NoDescriptors(err) {
			x.w.o.MakeRoom()
			conn, reused, err = up.take(x.w.base)
		}
		if err != nil {
			return Answer{}, err
		}
		if !x.attach(conn) {
			conn.Close()
			return Answer{}, x.fault(ErrGone)
		}
		a := Answer{up: conn}
		if err = x.send(conn, &o); err == nil {
			a.n, err = x.readHead(conn, &a.AnswerHead)
		}
		if err == nil {
			return a, nil
		}
		conn.Close()
		if !x.detach() {
			return Answer{}, x.fault(ErrGone)
		}
		if !reused || !x.repeatable() || a.n > 0 || IsTimeout(err) {
			return Answer{}, x.fault(err)
		}
	}
}

// Discard drops an answer after its head, so that another request can be forwarded. It
// returns ErrGone if the client disconnected.
func (x *Exchange) Discard(a Answer) error {
	a.up.Close()
	if !x.detach() {
		return ErrGone
	}
	return nil
}

// repeatable reports whether the request may be sent again after the connection broke
// without an answer.
func (x *Exchange) repeatable() bool {
	h := &x.ctx.Request.Header
	return (h.IsGet() || h.IsHead()) && len(x.body) == 0 && x.rest == nil
}

// fault ends the pump, and returns the error to report after a failed attempt: err, or
// the client's own fault.
func (x *Exchange) fault(err error) error {
	if x.pump == nil {
		return err
	}
	if x.pump.join(x); x.pump.late {
		return ErrBodyLate
	}
	return err
}

// readHead reads an answer's head into x.in, and returns the number of bytes read. It
// relays interim answers to the client.
func (x *Exchange) readHead(up *upstreamConn, h *AnswerHead) (n int, err error) {
	if err := renew(&up.readBy, x.timeouts.Response, up.SetReadDeadline); err != nil {
		return 0, fmt.Errorf("await answer: %w", err)
	}
	for {
		if size := headEnd(x.in[:n]); size > 0 {
			if err := parseHead(x.in, size, h); err != nil {
				return n, err
			}
			if h.Status >= 200 || h.Status == fasthttp.StatusSwitchingProtocols {
				return n, nil
			}
			if err := x.sendInterim(h); err != nil {
				return n, ErrGone
			}
			n = copy(x.in, x.in[size:n])
			continue
		}
		if n == len(x.in) {
			if n >= maxAnswerHead {
				return n, errHeadTooLarge
			}
			x.in = append(x.in, make([]byte, n)...)
		}
		m, err := up.Read(x.in[n:])
		n += m
		if m == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, fmt.Errorf("await answer: %w", err)
		}
	}
}

// sendInterim relays a 1xx answer, but not to HTTP/1.0, which does not define them, and
// not 100, which fasthttp has already sent.
func (x *Exchange) sendInterim(h *AnswerHead) error {
	if h.Status == fasthttp.StatusContinue || !x.ctx.Request.Header.IsHTTP11() {
		return nil
	}
	// Do not mute the server: a tunnel may follow, or the proxy's own error.
	return x.client.send(x.answerHead(nil, h, Rewrite{}, false))
}
