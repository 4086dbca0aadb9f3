package wire

import (
	"bytes"
	"errors"
	"strconv"
	"time"
)

// Relayed is the result of relaying an answer.
type Relayed struct {
	First time.Time // when the client had the first of the body; zero: never
	Err   error     // ErrGone when the client did not take it
}

// Relay sends the answer to the client as it comes. An answer that the upstream cuts
// off reaches the client cut off: only the upstream's own end is passed on. tee may be
// nil.
func (x *Exchange) Relay(a Answer, head Rewrite, tee Tee) Relayed {
	if tee != nil {
		defer tee.Close(false) // in case a bug ends it
	}
	var r relay
	whole, err := x.begin(&r, &a, head, tee)
	if !whole && err == nil {
		whole, err = r.relay(&x.in)
	}
	relayed, open := r.end(whole, err, func() bool { return x.pump.join(x) })
	if !open {
		x.ctx.SetConnectionClose()
	}
	return relayed
}

// relay is an answer on its way, after its exchange.
type relay struct {
	stream
	*link
	w       *Wire
	up      *upstreamConn
	keep    bool // the upstream leaves its connection open
	closing bool // the client's connection ends with the answer
}

// begin sends the head of the answer, and the part of the body that came with it.
// whole says that this was all of it.
func (x *Exchange) begin(r *relay, a *Answer, head Rewrite, tee Tee) (whole bool, err error) {
	body := x.bodyOf(&a.AnswerHead)
	r.stream = stream{Up: a.up.Conn, Client: x.client, Body: body, Tee: tee, Idle: x.timeouts.Idle}
	r.link, r.w, r.up, r.keep = x.link, x.w, a.up, a.keep
	r.closing = x.w.draining.Load() || !body.ends() || x.lastOfClient()
	if x.pump != nil && !x.pump.wasRead() {
		r.closing = true // it is not known whether the body will be read to its end
	}
	x.out = x.answerHead(x.out[:0], &a.AnswerHead, head, r.closing)
	x.client.mute()
	err = r.begin(x.out, x.in[a.size:a.n])
	return err == nil && r.Body.done(), err
}

// bodyOf returns how the body of an answer ends.
func (x *Exchange) bodyOf(h *AnswerHead) bodyEnd {
	switch {
	case h.bodiless(x.ctx.IsHead()):
		return ofLength(0)
	case h.chunked:
		return inChunks(!x.ctx.Request.Header.IsHTTP11())
	case h.length >= 0:
		return ofLength(h.length)
	}
	return untilClose()
}

// end ends the upstream's part, and reports whether the client's connection may
// have another request. sent ends the sending of the request, and reports
// whether all of it was sent.
func (r *relay) end(whole bool, err error, sent func() bool) (_ Relayed, open bool) {
	if r.Tee != nil {
		r.Tee.Close(whole)
	}
	there := r.detach()
	if r.Up != r.up.Conn {
		r.up.Conn, r.up.sock = r.Up, socketOf(r.Up)
	}
	if err != nil && !there { // we closed it, because the client left
		err = ErrGone
	}
	if sent() && whole && there && r.keep && !r.Lost && r.Body.ends() && r.Body.clean() {
		r.up.of.give(r.up)
	} else {
		r.up.Close()
	}
	if !whole && r.Body.looksWhole() || errors.Is(err, errBug) {
		// Only a reset tells such a client that the answer is cut.
		r.Client.reset()
	}
	return Relayed{First: r.First, Err: err}, !r.closing && err == nil
}

// lastOfClient reports whether the client's connection ends with this exchange.
// HTTP/1.0 connections always do.
func (x *Exchange) lastOfClient() bool {
	return !x.ctx.Request.Header.IsHTTP11() || x.suspect || tokenIn(x.connection, "close")
}

// answerHead writes an answer's head for the client: the upstream's lines without those
// of its connection, and the added ones.
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
