package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

// forward sends the request with the inserts spliced in, and reads the head of
// the answer. One attempt: a request of which a byte was sent is not sent
// again, other than a GET that met a connection just being closed.
//
// When it returns without error the call is attached to the connection, and
// head describes the first bytes of c.in[:n].
func (s *Server) forward(c *call, inserts []dialect.Insert) (up *upstreamConn, head answerHead, n int, err error) {
	c.route.upstream.waiting.Add(1)
	defer c.route.upstream.waiting.Add(-1)
	if err := c.buildHead(s.hop, inserts); err != nil {
		return nil, head, 0, err
	}
	for {
		var reused bool
		up, reused, err = c.route.upstream.take(s.base)
		if noDescriptors(err) {
			s.makeRoom()
			up, reused, err = c.route.upstream.take(s.base)
		}
		if err != nil {
			return nil, head, 0, err
		}
		if !c.attach(up) {
			up.Close()
			return nil, head, 0, errGone
		}
		if err = s.send(c, up, inserts); err == nil {
			head, n, err = s.readHead(c, up, 0)
		}
		if err == nil {
			return up, head, n, nil
		}
		up.Close()
		if !c.detach() {
			return nil, head, 0, errGone
		}
		if !reused || !c.repeatable() || n > 0 || isTimeout(err) {
			return nil, head, 0, err
		}
	}
}

// repeatable reports whether the request may be sent again after a connection
// broke before a byte of the answer came.
func (c *call) repeatable() bool {
	h := &c.ctx.Request.Header
	return (h.IsGet() || h.IsHead()) && len(c.body) == 0 && c.rest == nil
}

// buildHead writes the request's head into c.out: the client's own lines, less
// those that belong to its connection or to us.
func (c *call) buildHead(hop string, inserts []dialect.Insert) error {
	h := &c.ctx.Request.Header
	out := append(c.out[:0], h.Method()...)
	out = append(out, ' ')
	switch target := originForm(h.RequestURI()); {
	case len(target) == 0 || target[0] == '?':
		out = append(append(append(out, c.route.upstream.prefix...), '/'), target...)
	case target[0] == '/':
		out = append(append(out, c.route.upstream.prefix...), target...)
	default: // *
		out = append(out, target...)
	}
	out = append(out, " HTTP/1.1\r\nHost: "...)
	out = append(out, c.route.upstream.host...)
	out = append(out, "\r\n"...)

	upgrade, listed := c.isUpgrade(), false
	raw := h.RawHeaders()
	for len(raw) > 0 {
		var line []byte
		line, raw = cutLine(raw)
		if len(line) == 0 {
			break
		}
		name, _, ok := bytes.Cut(line, []byte{':'})
		if !ok || line[0] == ' ' || line[0] == '\t' {
			return &clientError{fasthttp.StatusBadRequest, "graphiti-proxy: a header line is folded or has no colon"}
		}
		switch {
		case fieldIs(name, "host"), fieldIs(name, "content-length"), fieldIs(name, "transfer-encoding"), fieldIs(name, "expect"):
		case hopByHop(name), namedBy(c.connection, name):
		case hasPrefixFold(name, "x-graphiti-") && ours(name):
		case c.trace != nil && (fieldIs(name, "traceparent") || fieldIs(name, "tracestate")):
		case c.mem.relaxed != nil && fieldIs(name, c.mem.relaxed.Header):
			out = append(append(out, line...), ","+c.mem.relaxed.Value+"\r\n"...)
			listed = true
		case c.intercepted && fieldIs(name, "sec-websocket-extensions"): // compressed frames could not be read
		case c.plain != nil && len(inserts) > 0 && fieldIs(name, "content-encoding"): // unpacked, see handler.go
		default:
			out = append(out, line...)
			out = append(out, "\r\n"...)
		}
	}
	if c.trace != nil {
		out = c.trace.appendContext(out)
	}
	if c.mem.relaxed != nil && !listed {
		out = append(out, c.mem.relaxed.Header+": "+c.mem.relaxed.Value+"\r\n"...)
	}
	if c.route.upstream.marks(c) {
		out = append(append(append(out, hopField+": "...), hop...), "\r\n"...)
	}
	if upgrade {
		out = append(out, "Connection: Upgrade\r\nUpgrade: "...)
		out = append(out, h.Peek(fasthttp.HeaderUpgrade)...)
		out = append(out, "\r\n"...)
	}
	c.out = append(c.appendLength(out, inserts), "\r\n"...)
	return nil
}

// originForm is a target without the scheme and the host of the absolute form,
// which is sent to forward proxies. Its path may be empty.
func originForm(target []byte) []byte {
	i := bytes.Index(target, []byte("://"))
	if i < 0 || target[0] == '/' {
		return target
	}
	target = target[i+len("://"):]
	if i = bytes.IndexAny(target, "/?"); i < 0 {
		return nil
	}
	return target[i:]
}

// appendLength says how long the body is. A body that came in chunks and was
// read whole goes on with a length, unless there is a trailer.
func (c *call) appendLength(out []byte, inserts []dialect.Insert) []byte {
	length := c.ctx.Request.Header.ContentLength()
	switch {
	case c.rest != nil && length < 0, len(c.trailers) > 0:
		return append(out, "Transfer-Encoding: chunked\r\n"...)
	case c.rest == nil && (length != -2 || len(c.body) > 0):
		length = c.length(inserts)
	case c.rest == nil:
		return out
	}
	if length == 0 && (c.ctx.IsGet() || c.ctx.IsHead()) {
		return out
	}
	out = append(out, "Content-Length: "...)
	out = strconv.AppendInt(out, int64(length), 10)
	return append(out, "\r\n"...)
}

// length is that of a body that was read whole, with what is inserted.
func (c *call) length(inserts []dialect.Insert) int {
	n := len(c.body)
	for _, ins := range inserts {
		n += len(ins.Text)
	}
	return n
}

// inlineBody is the size up to which a body is copied behind its head to be
// sent with it; larger ones are sent from where they are.
const inlineBody = 16 << 10

// send writes head and body.
func (s *Server) send(c *call, up *upstreamConn, inserts []dialect.Insert) error {
	if err := up.SetWriteDeadline(time.Now().Add(s.way().limits.UpstreamIdle)); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	if c.rest != nil {
		c.pump = startPump(s, c, up)
		return nil
	}
	var err error
	head := len(c.out)
	var end []byte // behind the body, where that is a chunk
	if len(c.trailers) > 0 {
		if n := c.length(inserts); n > 0 {
			c.out = append(strconv.AppendInt(c.out, int64(n), 16), "\r\n"...)
			end = append(end, "\r\n"...)
		}
		end = append(append(append(end, "0\r\n"...), c.trailers...), "\r\n"...)
	}
	if len(c.body) <= inlineBody {
		c.out = append(dialect.Splice(c.out, c.body, inserts), end...)
		_, err = up.Write(c.out)
	} else {
		bufs := make(net.Buffers, 0, 3+2*len(inserts))
		bufs = append(bufs, c.out)
		at := 0
		for _, ins := range inserts {
			bufs = append(bufs, c.body[at:ins.At], ins.Text)
			at = ins.At
		}
		if bufs = append(bufs, c.body[at:]); len(end) > 0 {
			bufs = append(bufs, end)
		}
		_, err = bufs.WriteTo(up.Conn)
	}
	c.out = c.out[:head]
	if err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	return nil
}

// readHead reads an answer's head into c.in, of which n bytes are filled
// already. Interim answers are passed on to the client.
func (s *Server) readHead(c *call, up *upstreamConn, n int) (answerHead, int, error) {
	var h answerHead
	if err := up.SetReadDeadline(time.Now().Add(s.way().limits.UpstreamResponse)); err != nil {
		return h, n, fmt.Errorf("await answer: %w", err)
	}
	for {
		if size := headEnd(c.in[:n]); size > 0 {
			if err := parseHead(c.in, size, &h); err != nil {
				return h, n, err
			}
			if h.status >= 200 || h.status == fasthttp.StatusSwitchingProtocols {
				return h, n, nil
			}
			if err := s.sendInterim(c, &h); err != nil {
				return h, n, errGone
			}
			n = copy(c.in, c.in[size:n])
			continue
		}
		if n == len(c.in) {
			if n >= maxAnswerHead {
				return h, n, errHeadTooLarge
			}
			c.in = append(c.in, make([]byte, n)...)
		}
		m, err := up.Read(c.in[n:])
		n += m
		if m == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return h, n, fmt.Errorf("await answer: %w", err)
		}
	}
}

// sendInterim passes a 1xx answer on. HTTP/1.0 has none, and 100 was the
// server's to say.
func (s *Server) sendInterim(c *call, h *answerHead) error {
	if h.status == fasthttp.StatusContinue || !c.ctx.Request.Header.IsHTTP11() {
		return nil
	}
	// Not muted: what follows may be a tunnel, or an error of the proxy's own.
	return c.client.send(c.answerHead(nil, h, false))
}

// bodyPump streams the rest of a request's body to the upstream, while the
// answer is awaited: an upstream may answer before it has read everything.
type bodyPump struct {
	up      *upstreamConn
	done    chan struct{}
	chunked bool
	whole   bool // the body was sent to its end; valid after done
	late    bool // the client fell silent in it; valid after done
}

func startPump(s *Server, c *call, up *upstreamConn) *bodyPump {
	p := &bodyPump{up: up, done: make(chan struct{}), chunked: c.ctx.Request.Header.ContentLength() < 0}
	pending := p.frame(append([]byte(nil), c.out...), c.body)
	// Ends with the body, or when join stops what it reads from.
	go p.run(s, c, up, pending)
	return p
}

func (p *bodyPump) run(s *Server, c *call, up *upstreamConn, pending []byte) {
	var framed []byte // a piece of a body in chunks
	defer close(p.done)
	defer s.caught("body of a request", func() {
		p.whole = false
		c.abandon()
	})
	rest, pooled := c.rest, wide.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
	defer wide.Put(pooled)
	for {
		if len(pending) > 0 {
			// Stopped is asked behind the deadline, and join sets it before its own.
			if up.SetWriteDeadline(time.Now().Add(s.way().limits.UpstreamIdle)) != nil || c.client.stopped.Load() {
				p.whole = false
				return
			}
			if _, err := up.Write(pending); err != nil {
				p.whole = false
				return // the answer, if there is one, says why
			}
		}
		if p.whole {
			s.hangups.watch(c)
			return
		}
		n, err := rest.Read(*pooled)
		if pending = (*pooled)[:n]; p.chunked {
			framed = p.frame(framed[:0], pending)
			pending = framed
		}
		switch {
		case errors.Is(err, io.EOF):
			p.whole = true
			if p.chunked {
				pending = append(c.appendTrailers(append(pending, "0\r\n"...)), "\r\n"...)
			}
		case err != nil:
			if !c.client.stopped.Load() {
				p.late = isTimeout(err)
				c.abandon() // the client left or fell silent in the middle
			}
			return
		}
	}
}

// finished reports, without waiting, whether the whole body was sent.
func (p *bodyPump) finished() bool {
	select {
	case <-p.done:
		return p.whole
	default:
		return false
	}
}

// fault is what the client is told where the upstream did not answer: err, or
// what the client itself did. It ends the pump.
func (p *bodyPump) fault(c *call, err error) error {
	if p == nil {
		return err
	}
	if p.join(c); p.late {
		return errBodyLate
	}
	return err
}

// join ends the pump, which may wait for either side, and reports whether it has
// sent the whole body. If not, both connections are spoilt.
func (p *bodyPump) join(c *call) bool {
	if !p.finished() {
		c.client.stopBody()
		_ = p.up.SetWriteDeadline(time.Unix(1, 0)) // what was written stays written
		<-p.done
		_ = p.up.SetWriteDeadline(time.Time{})
	}
	c.client.endBody()
	return p.whole
}

// frame appends a piece of the body as it goes over the wire.
func (p *bodyPump) frame(dst, piece []byte) []byte {
	if len(piece) == 0 || !p.chunked {
		return append(dst, piece...)
	}
	dst = strconv.AppendInt(dst, int64(len(piece)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, piece...)
	return append(dst, "\r\n"...)
}

// readBody reads the request's body into c.body, up to limit; what is longer
// is left in c.rest.
func (s *Server) readBody(c *call, limit int) error {
	defer func() {
		if c.rest == nil {
			c.client.endBody()
		}
	}()
	stream := c.ctx.RequestBodyStream()
	if stream == nil {
		return nil
	}
	length := c.ctx.Request.Header.ContentLength()
	if length < 0 {
		c.fields = headFields(&c.ctx.Request.Header)
	}
	if length > limit {
		c.rest = stream
		return nil
	}
	inspected := c.mem.barred == nil && c.route.dialect != nil
	if !c.share.Grow(cap(c.body)) {
		c.body = nil
	}
	if inspected && !c.share.Fits(length-cap(c.body)) {
		c.busy, c.rest = true, stream
		return nil
	}
	for {
		if len(c.body) == cap(c.body) {
			if len(c.body) == length {
				return nil
			}
			if len(c.body) > limit {
				c.rest = stream
				return nil
			}
			if !c.growBody(length, limit) {
				c.busy, c.rest = inspected, stream
				return nil
			}
		}
		n, err := stream.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		switch {
		case errors.Is(err, io.EOF):
			if length >= 0 && len(c.body) < length {
				return &clientError{fasthttp.StatusBadRequest, "graphiti-proxy: the request's body ended early"}
			}
			if length < 0 {
				c.trailers = c.appendTrailers(c.trailers)
				c.dropTrailers()
			}
			return nil
		case isTimeout(err):
			return errBodyLate
		case err != nil:
			return &clientError{fasthttp.StatusBadRequest, "graphiti-proxy: the request's body cannot be read"}
		}
	}
}
