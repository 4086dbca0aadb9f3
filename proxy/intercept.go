package proxy

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/gobwas/ws"
	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/budget"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/responses"
)

const (
	// maxEvent bounds the messages of an upstream that are read; longer ones
	// pass unread.
	maxEvent = 8 << 20

	// maxAnswers bounds the answers of one connection that requests can refer
	// to.
	maxAnswers = 1024

	// maxMetadata bounds what a message says in place of a header, and an id.
	maxMetadata = 16 << 10

	// maxLanes bounds the answers that are under way at the same time over one
	// connection.
	maxLanes = 256
)

// errLanes ends a connection over which too much is under way.
var errLanes = fmt.Errorf("graphiti-proxy: more than %d responses are under way over this connection", maxLanes)

// intercept is the Responses API over one WebSocket: each response.create is a
// request like one that is posted, and gets memory, and what follows until the
// response's end is its answer. Conversations may share a connection, each in
// a lane that has a stream_id.
type intercept struct {
	s     *Server
	head  fasthttp.RequestHeader // of the request that opened the connection
	route route

	mu     sync.Mutex // guards what follows
	lanes  map[string]*exchange
	ended  map[string]heldEnd // by the id of an answer
	wrong  error              // why the connection is ended; nil: it is not, or not by us
	closed bool               // no answer comes any more

	broken atomic.Bool // a bug of memory's has shown: what follows passes as it is
}

// breaks is what a bug of memory's costs.
func (x *intercept) breaks() { x.broken.Store(true) }

// exchange is a request whose answer is under way.
type exchange struct {
	tee     *capture.Tee
	reader  dialect.Reader // tells at once how the conversation has ended
	ending  *ending        // nil: nothing of it is kept
	end     dialect.Fingerprint
	at      where
	session string
	trace   *requestTrace // nil: nobody looks
	share   budget.Share  // of what is held of the request until the answer has ended

	memory   *Memory
	promises promises // what is kept once it is accepted
	earlier  func()   // keeps what was said before, then; may be nil
	judged   bool     // whether it is, is known
}

// judge does what was promised, when an event is the first that tells whether
// the upstream has accepted the request.
func (ex *exchange) judge(kind string, event []byte) {
	if ex.judged {
		return
	}
	ex.judged = true
	status := statusIn(kind, event)
	ex.promises.keep(ex.memory, status)
	if ex.earlier != nil && status == fasthttp.StatusOK {
		ex.earlier()
	}
}

// heldEnd is where a conversation stands after an answer that the provider
// holds. A client that refers to it goes on with the same conversation as one
// that sends it whole.
type heldEnd struct {
	end     dialect.Fingerprint
	at      where // of the request that was answered
	session string
}

// newIntercept prepares for a connection that c opened; nil where it is not one
// to be read.
func (s *Server) newIntercept(c *call, head *answerHead) *intercept {
	defer s.caught("start of a WebSocket", func() {})
	if _, barred := s.barred(c); !c.intercepted || barred {
		return nil
	}
	for name := range fieldLines(head.fields) {
		if fieldIs(name, "sec-websocket-extensions") { // nobody offered one
			return nil
		}
	}
	x := &intercept{s: s, route: c.route, lanes: make(map[string]*exchange), ended: make(map[string]heldEnd)}
	c.ctx.Request.Header.CopyTo(&x.head)
	x.route.dialect, x.route.match = responses.Dialect{}, dialect.Match{Use: dialect.UseTurn, Route: "/responses"}
	return x
}

// fromClient passes the client's frames on, with memory in the requests.
func (x *intercept) fromClient(up net.Conn, client io.Reader) error {
	f := newFrames(client, x.s.budget.Share())
	defer f.drop()
	through := false // the message is not read
	for {
		h, err := ws.ReadHeader(f.in)
		if err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		limit := int64(x.s.way().limits.InspectBytes)
		tooLong := h.Length > limit-int64(len(f.message)) || int64(len(f.raw)) > 2*limit // frames may be empty
		if h.OpCode.IsControl() || through || h.OpCode == ws.OpBinary || h.Rsv != 0 || tooLong {
			if !h.OpCode.IsControl() {
				if _, err := up.Write(f.raw); err != nil {
					return fmt.Errorf("pass frame on: %w", err)
				}
				f.drop()
				through = !h.Fin
			}
			if err := f.passFrame(up, h); err != nil {
				return err
			}
			continue
		}
		left, err := f.take(h)
		if err != nil {
			return err
		}
		if f.whole(left) && !h.Fin {
			continue
		}
		out := net.Buffers{f.raw}
		if f.whole(left) {
			changed, err := x.request(f.message)
			if err != nil {
				return x.refuse(err, up, f.in)
			}
			if changed != nil {
				mask := ws.NewMask()
				ws.Cipher(changed, mask, 0)
				out = net.Buffers{appendHeader(nil, ws.Header{Fin: true, OpCode: ws.OpText, Masked: true, Mask: mask, Length: int64(len(changed))}), changed}
			}
		}
		if _, err := out.WriteTo(up); err != nil {
			return fmt.Errorf("pass frame on: %w", err)
		}
		f.drop()
		through = !h.Fin
		if err := f.pass(up, left); err != nil {
			return err
		}
	}
}

// fromUpstream passes the upstream's frames on as they are, and reads the
// answers in them.
func (x *intercept) fromUpstream(client io.Writer, up io.Reader) error {
	defer x.close()
	f := newFrames(up, x.s.budget.Share())
	defer f.drop()
	through := false
	for {
		h, err := ws.ReadHeader(f.in)
		if err != nil {
			x.bye(client)
			return fmt.Errorf("read frame: %w", err)
		}
		tooLong := h.Length > maxEvent-int64(len(f.message))
		if h.OpCode.IsControl() || through || h.OpCode == ws.OpBinary || h.Rsv != 0 || h.Masked || tooLong {
			if !h.OpCode.IsControl() {
				f.drop()
				through = !h.Fin
			}
			if err := f.passFrame(client, h); err != nil {
				return err
			}
			continue
		}
		left, err := f.take(h)
		if err != nil {
			x.bye(client)
			return err
		}
		whole := f.whole(left)
		if whole && h.Fin {
			// Before the client has it: what it sends next may refer to it.
			x.event(f.message)
		}
		if _, err := client.Write(f.raw); err != nil {
			return fmt.Errorf("pass frame on: %w", err)
		}
		f.share.Shrink(f.share.Held() - cap(f.raw))
		f.raw = nil // the frame is with the client
		if !whole || h.Fin {
			f.drop()
		}
		if !whole {
			through = !h.Fin
			if err := f.pass(client, left); err != nil {
				return err
			}
		}
	}
}

// refuse ends the connection because of something that the client asks for.
// fromUpstream tells the client, who gets the time to read it.
func (x *intercept) refuse(err error, up net.Conn, client io.Reader) error {
	x.mu.Lock()
	x.wrong = err
	x.mu.Unlock()
	up.Close()
	_, _ = io.Copy(io.Discard, client)
	return err
}

// bye tells the client why the connection is ended, where it is so by us. It is
// called between two frames.
func (x *intercept) bye(client io.Writer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wrong != nil {
		_ = ws.WriteFrame(client, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusPolicyViolation, x.wrong.Error())))
	}
}

// request gives a message of the client its memory; nil means that it goes on
// as it is. An error ends the connection.
func (x *intercept) request(message []byte) ([]byte, error) {
	defer x.s.caught("request over a WebSocket", x.breaks)
	if x.broken.Load() || gjson.GetBytes(message, "type").Str != "response.create" {
		return nil, nil
	}
	lane := gjson.GetBytes(message, "stream_id").Str
	c := &call{ctx: &fasthttp.RequestCtx{}, route: x.route, body: message, memory: x.s.mem()}
	x.head.CopyTo(&c.ctx.Request.Header)
	c.share = x.s.budget.Share()
	defer c.share.Release()                  // but for what the exchange takes over
	c.busy = !c.share.Grow(2 * len(message)) // what is made of it
	if o, yes := x.s.barred(c); yes {
		c.mem.barred = &o
	}
	// What Codex says of one request stands in a header where it posts it.
	if told := gjson.GetBytes(message, "client_metadata.x-codex-turn-metadata"); told.Type == gjson.String && len(told.Raw) <= maxMetadata {
		c.ctx.Request.Header.Set("X-Codex-Turn-Metadata", told.Str)
	}
	var ok bool
	if c.held, ok = x.admit(lane, gjson.GetBytes(message, "previous_response_id").Str); !ok {
		return nil, errLanes
	}
	c.id, c.ids = x.s.ids.next(), x.s.ids
	c.trace = x.s.startTrace(c)
	plan := x.s.remember(c)
	c.trace.decided(c, &plan)
	c.trace.asks(c)
	ex := &exchange{end: c.mem.at.root, at: c.mem.at, session: c.mem.who.Session, reader: responses.Dialect{}.NewReader(), trace: c.trace, memory: c.memory, promises: c.mem.promises}
	if len(c.chain) > 0 {
		ex.end = c.chain[len(c.chain)-1]
	}
	if c.held != nil && ex.session == "" {
		ex.session = c.held.session
	}
	if x.s.watches(c, plan) {
		ex.ending, ex.earlier = x.s.endingOf(c, plan)
		ex.ending.end = ex.end
		ex.tee = c.memory.Watcher.Watch(x.route.dialect.NewReader(), capture.Meta{
			Stream: true, Order: xxhash.Sum64String(ex.ending.who.Session),
		}, x.s.taking(ex.ending, c.trace.awaitAnswer()))
	}
	c.share.Shrink(c.mem.copied)
	ex.share, c.share = c.share, budget.Share{}
	x.begin(lane, ex)
	if len(plan.Inserts) == 0 {
		return nil, nil
	}
	return dialect.Splice(nil, message, plan.Inserts), nil
}

// admit reports whether there is room for another request, and where the
// conversation stands that it refers to; nil where it is not known.
func (x *intercept) admit(lane, previous string) (held *heldEnd, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, known := x.ended[previous]; known {
		held = &e
	}
	return held, x.lanes[lane] != nil || len(x.lanes) < maxLanes
}

// begin puts an exchange under way.
func (x *intercept) begin(lane string, ex *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.lanes[lane]
	x.lanes[lane] = ex
	if old != nil {
		old.abandoned()
	}
	if x.closed {
		ex.abandoned()
		delete(x.lanes, lane)
	}
}

// event reads a message of the upstream.
func (x *intercept) event(message []byte) {
	defer x.s.caught("answer over a WebSocket", x.breaks)
	if x.broken.Load() {
		return
	}
	kind := gjson.GetBytes(message, "type").Str
	switch kind {
	case "response.created", "response.output_item.done", "response.completed", "response.incomplete", "response.failed", "response.cancelled", "error":
	default:
		return
	}
	lane := gjson.GetBytes(message, "stream_id").Str
	x.mu.Lock()
	defer x.mu.Unlock()
	ex := x.lanes[lane]
	if ex == nil {
		return
	}
	ex.judge(kind, message)
	if kind == "response.created" {
		return
	}
	ex.reader.Event(nil, message)
	ex.tee.Write([]byte("data: "))
	ex.tee.Write(oneLine(message))
	ex.tee.Write([]byte("\n\n"))
	if kind == "response.output_item.done" {
		return
	}
	delete(x.lanes, lane)
	a := ex.reader.Answer()
	if a.ID != "" && len(a.ID) <= maxMetadata && (a.End.Final() || a.End == dialect.EndToolCalls) {
		if len(x.ended) >= maxAnswers {
			clear(x.ended)
		}
		end := ex.end
		if a.Text != "" {
			end = end.Link(dialect.RoleAssistant, []byte(a.Text))
		}
		x.ended[a.ID] = heldEnd{end, ex.at, ex.session}
		if ex.ending != nil && a.End == dialect.EndToolCalls {
			x.s.rounds.put(ex.ending, a.ID)
		}
	}
	ex.tee.Close(true)
	ex.trace.end(statusOf(kind))
	ex.share.Release()
}

// statusOf is the status that an answer would have had that was not sent over
// a WebSocket.
func statusOf(event string) int {
	if event == "response.failed" || event == "error" {
		return fasthttp.StatusInternalServerError
	}
	return fasthttp.StatusOK
}

// abandoned ends an exchange that came to no end.
func (ex *exchange) abandoned() {
	ex.tee.Close(false)
	ex.trace.end(statusGone)
	ex.share.Release()
}

// oneLine is JSON without line breaks, which are white space in it.
func oneLine(message []byte) []byte {
	out := append([]byte(nil), message...)
	for i, b := range out {
		if b == '\n' || b == '\r' {
			out[i] = ' '
		}
	}
	return out
}

// close ends what is under way when the connection ends.
func (x *intercept) close() {
	defer x.s.caught("end of a WebSocket", x.breaks)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, ex := range x.lanes {
		ex.abandoned()
	}
	clear(x.lanes)
}
