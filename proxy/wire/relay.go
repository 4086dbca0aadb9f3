package wire

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire/listen"
)

// Tee gets a copy of an answer's body. It must not block, nor keep the bytes.
type Tee interface {
	Write(p []byte)
	Close(whole bool) // is called at least once; the first call counts
}

// Relayed is what came of relaying an answer.
type Relayed struct {
	First time.Time // when the first of the body was with the client; zero: none was
	Err   error     // ErrGone where the client did not take it
}

// Relay sends the answer to the client as it comes. The end of the answer is
// only ever the upstream's own: what it cut off reaches the client cut off. tee
// may be nil.
func (x *Exchange) Relay(a Answer, head Rewrite, tee Tee) (r Relayed) {
	f := framingOf(&a.AnswerHead, x.ctx.IsHead(), x.ctx.Request.Header.IsHTTP11())
	closing := x.w.draining.Load() || !f.ends() || x.lastOfClient()
	if x.pump != nil && !x.pump.wasRead() {
		closing = true // it is not known whether the body will be read to its end
	}
	x.out = x.answerHead(x.out[:0], &a.AnswerHead, head, closing)
	x.client.Mute()
	if tee != nil {
		defer tee.Close(false) // where a bug ends it
	}
	whole, err := x.relayBody(&a, &f, tee, &r.First)
	if tee != nil {
		tee.Close(whole)
	}
	open := x.detach()
	if r.Err = err; err != nil && !open { // closed by us, because the client left
		r.Err = ErrGone
	}
	if !x.pump.join(x) {
		open = false
	}
	if whole && open && a.keep && f.ends() && f.extra == 0 {
		a.up.of.give(a.up)
	} else {
		a.up.Close()
	}
	if closing || err != nil {
		x.ctx.SetConnectionClose()
	}
	if !whole && (!f.ends() || f.unwrap) {
		// Nothing but a reset tells such a client that the answer is cut.
		x.client.Reset()
	}
	return r
}

// lastOfClient reports whether the client's connection ends with this exchange.
// HTTP/1.0 connections always do.
func (x *Exchange) lastOfClient() bool {
	return !x.ctx.Request.Header.IsHTTP11() || x.suspect || tokenIn(x.connection, "close")
}

// relayBody sends x.out, which holds the head, and then the body. It reports
// whether the whole body went through, and sets first. ErrGone says that the
// client did not take it.
func (x *Exchange) relayBody(a *Answer, f *framing, tee Tee, first *time.Time) (whole bool, err error) {
	sent := func(n int) {
		if n > 0 && first.IsZero() {
			*first = time.Now()
		}
	}
	// The first bytes of the body came with the head, and go with it.
	out, err := f.take(x.in[a.size:a.n], tee)
	x.out = append(x.out, out...)
	if x.client.Send(x.out) != nil {
		return false, ErrGone
	}
	sent(len(out))
	var deadline time.Time
	for err == nil && !f.done() {
		if by, renewed := listen.Extend(deadline, x.timeouts.Idle); renewed {
			deadline = by
			if err := a.up.SetReadDeadline(by); err != nil {
				return false, err
			}
		}
		n, readErr := a.up.Read(x.in)
		if n > 0 {
			out, err = f.take(x.in[:n], tee)
			if x.client.Send(out) != nil {
				return false, ErrGone
			}
			sent(len(out))
			if n == len(x.in) && n < maxRead {
				x.in = *wide.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
			}
		}
		if readErr != nil && !f.done() {
			if errors.Is(readErr, io.EOF) && !f.ends() {
				return true, nil
			}
			return false, readErr
		}
	}
	return err == nil, err
}

// answerHead writes an answer's head for the client: the upstream's own lines,
// less those of its connection, and those that are added.
func (x *Exchange) answerHead(dst []byte, h *AnswerHead, r Rewrite, closing bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(h.Status), 10)
	dst = append(dst, h.reason...)
	if len(h.reason) == 0 {
		dst = append(dst, ' ')
	}
	dst = append(dst, "\r\n"...)
	http11 := x.ctx.Request.Header.IsHTTP11()
	for fields := h.Fields; len(fields) > 0; {
		var line []byte
		line, fields = cutLine(fields)
		if len(line) == 0 {
			break
		}
		name := line[:max(bytes.IndexByte(line, ':'), 0)] // parseHead refuses lines without one
		switch {
		case hopByHop(name), namedBy(h.conn, name), x.w.o.OwnAnswer(name), r.drops(name):
		case FieldIs(name, "transfer-encoding") && (!http11 || !h.chunked):
		case FieldIs(name, "content-length") && h.length < 0:
		default:
			dst = append(append(dst, line...), "\r\n"...)
		}
	}
	dst = append(dst, r.Add...)
	if closing && h.Status >= 200 {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...)
}
