package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/valyala/fasthttp"
)

// Answer is an answer whose head has been read. The exchange is attached to
// its connection until Relay or Tunnel ends it.
type Answer struct {
	AnswerHead
	up *upstreamConn
	n  int // bytes of the exchange's buffer that were read, head included
}

// Forward sends the request, and reads the head of the answer. It makes one attempt:
// once a byte was sent, it does not send a request again, except a GET that met a
// connection just being closed. The error is ErrGone when the client left, and a
// ClientError when it is the client's fault.
func (x *Exchange) Forward(up *Upstream, o Outgoing) (Answer, error) {
	up.waiting.Add(1)
	defer up.waiting.Add(-1)
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

// Discard drops an answer of which only the head was read. Another request may be forwarded
// then. The error is ErrGone when the client left.
func (x *Exchange) Discard(a Answer) error {
	a.up.Close()
	if !x.detach() {
		return ErrGone
	}
	return nil
}

// repeatable reports whether the request may be sent again after a connection
// broke before a byte of the answer came.
func (x *Exchange) repeatable() bool {
	h := &x.ctx.Request.Header
	return (h.IsGet() || h.IsHead()) && len(x.body) == 0 && x.rest == nil
}

// fault ends the pump, and returns the error to show when the upstream did not answer:
// err, or what the client itself did wrong.
func (x *Exchange) fault(err error) error {
	if x.pump == nil {
		return err
	}
	if x.pump.join(x); x.pump.late {
		return ErrBodyLate
	}
	return err
}

// readHead reads an answer's head into x.in, and returns how many bytes came.
// Interim answers are passed on to the client.
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

// sendInterim passes a 1xx answer on. HTTP/1.0 has none, and fasthttp has already sent
// the 100.
func (x *Exchange) sendInterim(h *AnswerHead) error {
	if h.Status == fasthttp.StatusContinue || !x.ctx.Request.Header.IsHTTP11() {
		return nil
	}
	// Not muted: a tunnel may follow, or an error of the proxy's own.
	return x.client.send(x.answerHead(nil, h, Rewrite{}, false))
}
