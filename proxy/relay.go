package proxy

import (
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
)

// relay sends the answer to the client as it comes: head holds the first of
// the n bytes in c.in. The end of the answer is only ever the upstream's own:
// what it cut off reaches the client cut off. tee gets a copy of the body and
// may be nil.
func (s *Server) relay(c *call, up *upstreamConn, head answerHead, n int, tee *capture.Tee) {
	f := framingOf(&head, c.ctx.IsHead(), c.ctx.Request.Header.IsHTTP11())
	closing := s.stopping() || !f.ends() || c.lastOfClient()
	if c.pump != nil && !c.pump.finished() {
		closing = true // it is not known whether the body will be read to its end
	}

	c.out = c.answerHead(c.out[:0], &head, closing)
	c.client.mute()
	c.pieced = !head.event // of the others it says nothing
	defer tee.Close(false) // where a bug ends it
	whole, err := s.relayBody(c, up, &f, head.size, n, tee)
	tee.Close(whole)

	open := c.detach()
	switch {
	case err == nil:
	case errors.Is(err, errGone), !open: // open: closed by us, because the client left
		s.metrics.abandoned()
	default:
		s.log.Warn("an answer is cut off", "error", err)
	}
	if c.pump != nil && !c.pump.join(c) {
		open = false
	}
	if whole && open && head.keep && f.ends() && f.extra == 0 {
		c.route.upstream.give(up)
	} else {
		up.Close()
	}
	if closing || err != nil {
		c.ctx.SetConnectionClose()
	}
	if !whole && (!f.ends() || f.unwrap) {
		// Nothing but a reset tells such a client that the answer is cut.
		c.client.reset()
	}
}

// lastOfClient reports whether the client's connection ends with this call.
// HTTP/1.0 connections always do.
func (c *call) lastOfClient() bool {
	return !c.ctx.Request.Header.IsHTTP11() || c.suspect || tokenIn(c.connection, "close")
}

// relayBody sends c.out, which holds the head, and then the body. It reports
// whether the whole body went through. errGone says that the client did not
// take it.
func (s *Server) relayBody(c *call, up *upstreamConn, f *framing, at, n int, tee *capture.Tee) (whole bool, err error) {
	// The first bytes of the body came with the head, and go with it.
	first, err := f.take(c.in[at:n], tee)
	c.out = append(c.out, first...)
	if c.client.send(c.out) != nil {
		return false, errGone
	}
	s.piece(c, len(first))
	var deadline time.Time
	for err == nil && !f.done() {
		if by, renewed := extend(deadline, s.way().limits.UpstreamIdle); renewed {
			deadline = by
			if err := up.SetReadDeadline(by); err != nil {
				return false, err
			}
		}
		n, readErr := up.Read(c.in)
		if n > 0 {
			var out []byte
			out, err = f.take(c.in[:n], tee)
			if c.client.send(out) != nil {
				return false, errGone
			}
			s.piece(c, len(out))
			if n == len(c.in) && n < maxRead {
				c.in = *wide.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
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

// piece notes when the first of the answer's body is with the client.
func (s *Server) piece(c *call, n int) {
	if !c.pieced && n > 0 {
		c.pieced = true
		s.metrics.firstPiece(time.Since(c.ctx.Time()))
	}
}

// answerHead writes an answer's head for the client: the upstream's own lines,
// less those of its connection.
func (c *call) answerHead(dst []byte, h *answerHead, closing bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(h.status), 10)
	dst = append(dst, h.reason...)
	if len(h.reason) == 0 {
		dst = append(dst, ' ')
	}
	dst = append(dst, "\r\n"...)
	http11 := c.ctx.Request.Header.IsHTTP11()
	for fields := h.fields; len(fields) > 0; {
		var line []byte
		line, fields = cutLine(fields)
		if len(line) == 0 {
			break
		}
		name := line[:indexColon(line)]
		switch {
		case hopByHop(name), namedBy(h.conn, name):
		case fieldIs(name, "transfer-encoding") && (!http11 || !h.chunked):
		case fieldIs(name, "content-length") && h.length < 0:
		case fieldIs(name, "x-graphiti-memory"), fieldIs(name, "x-graphiti-request-id"):
		default:
			dst = append(append(dst, line...), "\r\n"...)
		}
	}
	if c.mem.header && h.status >= 200 {
		if !rejected(h.status) {
			dst = append(append(dst, memoryHeader...), ": "...)
			dst = append(appendOutcome(dst, &c.mem.outcome), "\r\n"...)
		}
		dst = append(append(dst, requestHeader...), ": "...)
		dst = append(c.ids.append(dst, c.id), "\r\n"...)
	}
	if closing && h.status >= 200 {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...)
}

func indexColon(line []byte) int {
	for i, b := range line {
		if b == ':' {
			return i
		}
	}
	return 0 // parseHead refuses such lines
}

// framing follows a body to its end.
type framing struct {
	left    int64 // bytes left of a body of known length
	chunked bool
	unwrap  bool // the client does not know chunks
	open    bool // the body ends with the connection
	chunks  chunkTracker
	extra   int    // bytes behind the end: the connection is spoilt
	plain   []byte // payload for a client that does not know chunks
}

func framingOf(h *answerHead, headRequest, http11 bool) framing {
	switch {
	case h.bodiless(headRequest):
		return framing{}
	case h.chunked:
		return framing{chunked: true, unwrap: !http11}
	case h.length >= 0:
		return framing{left: h.length}
	}
	return framing{open: true}
}

// ends reports whether the body says itself where it ends.
func (f *framing) ends() bool { return !f.open }

func (f *framing) done() bool {
	if f.chunked {
		return f.chunks.done()
	}
	return !f.open && f.left == 0
}

// take consumes p, copies the payload in it to tee, and returns what the
// client gets of it.
func (f *framing) take(p []byte, tee *capture.Tee) ([]byte, error) {
	switch {
	case f.chunked:
		return f.takeChunks(p, tee)
	case f.open:
		tee.Write(p)
		return p, nil
	}
	n := int(min(f.left, int64(len(p))))
	f.left -= int64(n)
	f.extra += len(p) - n
	tee.Write(p[:n])
	return p[:n], nil
}

func (f *framing) takeChunks(p []byte, tee *capture.Tee) ([]byte, error) {
	f.plain = f.plain[:0]
	var n int
	var err error
	switch {
	case f.unwrap:
		n, err = f.chunks.feed(p, func(b []byte) {
			f.plain = append(f.plain, b...)
			tee.Write(b)
		})
	case tee != nil:
		n, err = f.chunks.feed(p, tee.Write)
	default:
		n, err = f.chunks.feed(p, nil)
	}
	f.extra += len(p) - n
	if f.unwrap {
		return f.plain, err
	}
	return p[:n], err
}
