package wire

import (
	"bytes"
	"strconv"
)

// Relay sends the answer to the client as it arrives. A truncated answer stays
// truncated for the client: the proxy never completes one. tee may be nil.
func (x *Exchange) Relay(a Answer, head Rewrite, tee Tee) Relayed {
	if tee != nil {
		defer tee.Close(false) // in case of a panic
	}
	var s stream
	whole, err := x.begin(&s, &a, head, tee)
	if !whole && err == nil {
		whole, err = s.relay(&x.in)
	}
	s.keep = x.pump.join(x) && s.keep
	relayed, open := s.end(whole, err)
	if !open {
		x.ctx.SetConnectionClose()
	}
	return relayed
}

// begin sends the head of the answer and the bytes of the body that arrived with it.
// whole reports whether they are the entire body.
func (x *Exchange) begin(s *stream, a *Answer, head Rewrite, tee Tee) (whole bool, err error) {
	s.link, s.up, s.client = x.link, a.up, x.client
	s.body, s.tee, s.idle, s.keep = x.bodyOf(&a.AnswerHead), tee, x.timeouts.Idle, a.keep
	s.closing = x.w.draining.Load() || s.body.open || x.lastOfClient()
	if x.pump != nil && !x.pump.wasRead() {
		s.closing = true // the rest of the request may never be read
	}
	x.out = x.answerHead(x.out[:0], &a.AnswerHead, head, s.closing)
	x.client.muted = true
	err = s.begin(&x.out, x.in[a.size:a.n])
	return err == nil && s.body.done(), err
}

// bodyOf returns the framing of an answer's body.
func (x *Exchange) bodyOf(h *AnswerHead) bodyEnd {
	switch {
	case h.bodiless(x.ctx.IsHead()):
		return bodyEnd{}
	case h.chunked:
		return bodyEnd{chunked: true, unwrap: !x.ctx.Request.Header.IsHTTP11()}
	case h.length >= 0:
		return bodyEnd{left: h.length}
	}
	return bodyEnd{open: true}
}

// lastOfClient reports whether the client's connection ends with this exchange.
// HTTP/1.0 connections always do.
func (x *Exchange) lastOfClient() bool {
	return !x.ctx.Request.Header.IsHTTP11() || x.head.suspect() || tokenIn(x.head.connection, "close")
}

// answerHead appends an answer's head for the client: the upstream's fields without the
// hop-by-hop ones, and the added ones.
func (x *Exchange) answerHead(dst []byte, h *AnswerHead, r Rewrite, closing bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(h.Status), 10)
	dst = append(dst, h.reason...)
	if len(h.reason) == 0 {
		dst = append(dst, ' ')
	}
	dst = append(dst, "\r\n"...)
	http11 := x.ctx.Request.Header.IsHTTP11()
	for line := range lines(h.Fields) {
		name := line[:max(bytes.IndexByte(line, ':'), 0)] // parseHead rejects lines without a colon
		switch {
		case hopByHop(name), namedBy(h.conn, name), x.w.o.OwnAnswer(name), FieldIn(name, r.Without):
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
