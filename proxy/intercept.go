package proxy

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

const (
	// maxAnswers bounds the answers that requests of one connection can refer to.
	maxAnswers = 1024

	// maxAnswerID bounds the id of an answer that requests can refer to, in bytes.
	maxAnswerID = 16 << 10

	// maxLanes bounds the concurrent answers over one connection.
	maxLanes = 256
)

// errLanes ends a connection with too many concurrent answers.
var errLanes = fmt.Errorf("graphiti-proxy: more than %d responses are under way over this connection", maxLanes)

// intercept adds memory to the Responses API over one WebSocket. Each response.create
// is a request, and the events up to the response's end are its answer. Conversations
// may share a connection, each in a lane with its own stream_id.
type intercept struct {
	s     *Server
	head  fasthttp.RequestHeader // of the request that opened the connection
	route route

	mu     sync.Mutex // guards lanes, ended and closed
	lanes  map[string]*exchange
	ended  map[string]heldEnd // by the id of an answer
	closed bool               // the connection has ended
}

// WebSocket is the mode for the Responses API over WebSocket. Other WebSockets, such as
// Realtime's, are tunnelled.
type WebSocket int

// Modes for the Responses API over WebSocket.
const (
	WebSocketRefuse    WebSocket = iota // clients use POST instead
	WebSocketTunnel                     // without memory
	WebSocketIntercept                  // with memory
)

// errUseHTTP makes clients that prefer WebSocket for the Responses API, such as Codex,
// switch to POST at once.
var errUseHTTP = &wire.ClientError{Status: fasthttp.StatusUpgradeRequired, Message: "graphiti-proxy: the Responses API over WebSocket has no memory here; use POST, or set websocket to intercept"}

// webSocket reports whether a request opens a WebSocket and the proxy reads its
// messages. It returns an error for a WebSocket that it refuses.
func (s *Server) webSocket(x *wire.Exchange, c *call) (read bool, err error) {
	setting := s.routing().webSocket
	if setting == WebSocketTunnel || !x.IsUpgrade() {
		return false, nil
	}
	path, _, _ := bytes.Cut(c.head.RequestURI(), []byte{'?'})
	switch {
	case !bytes.HasSuffix(path, []byte("/responses")):
		return false, nil
	case setting == WebSocketRefuse:
		return false, errUseHTTP
	}
	return c.memory.Planner != nil && s.barred(c.memory, c.head) == nil, nil
}

// exchange is a request and its answer, which has not ended.
type exchange struct {
	tee     *response.Tee
	reader  dialect.Reader // reads the answer at once, for ended
	pending *pendingTurn   // nil if the answer is not recorded
	heldEnd                // without the answer
	seen    observe.Request
	share   budget.Share // the memory that the request occupies until the answer's end

	memory   *Memory
	promises promises // actions that wait until the upstream accepts the request
	block    inject.Unanswered
	backfill func() // records earlier turns after acceptance; may be nil
	judged   bool   // judge was called
}

// judge keeps the promises of a request by the status of its first event. It ignores
// later calls.
func (ex *exchange) judge(status int) {
	if ex.judged {
		return
	}
	ex.judged = true
	ex.seen.Headed()
	ex.promises.keep(ex.memory, status)
	if ex.promises.heard.Forgets && ex.pending != nil {
		ex.pending.settle(graphiti.Fate{Name: graphiti.FateAbout, Reason: graphiti.AboutMemory})
		ex.pending.turn.Targets, ex.pending.recall = nil, false // the turn would repeat the fact that it made the memory forget
	}
	if refusesRequest(status) && ex.block.Exists() {
		ex.memory.Planner.Withdraw(ex.block) // the client repeats the request itself
	}
	if ex.backfill != nil && status == fasthttp.StatusOK {
		ex.backfill()
	}
}

// messages returns the reader of the messages of the connection that c opened; nil if
// they are not read.
func (s *Server) messages(c *call, head *wire.AnswerHead, read bool) *wire.WebSocket {
	defer wire.CatchPanic(s.log, "start of a WebSocket", func() {})
	if !read || s.barred(c.memory, c.head) != nil {
		return nil
	}
	if name, _ := wire.Line(head.Fields, "sec-websocket-extensions"); name != nil { // outgoing removes the client's offer
		s.log.Warn("WebSocket frames use an extension that was not negotiated, relaying them without memory")
		return nil
	}
	x := &intercept{s: s, route: c.route, lanes: make(map[string]*exchange), ended: make(map[string]heldEnd)}
	c.head.CopyTo(&x.head)
	x.route.Route = registry.Find(dialect.Request{Method: []byte(fasthttp.MethodPost), Path: []byte("/responses"), Header: c.head})
	return &wire.WebSocket{Messages: x, Share: s.budget.Share, Limit: func() int { return s.routing().limits.InspectBytes }}
}

// Request returns a message of the client with its memory; nil if the message is
// unchanged. An error ends the connection.
func (x *intercept) Request(message []byte) ([]byte, error) {
	defer wire.CatchPanic(x.s.log, "request over a WebSocket", func() {})
	ask, ok := responses.ReadAsk(message)
	if !ok {
		return nil, nil
	}
	c := x.newCall(message, &ask)
	defer c.share.Release() // except for the part that the exchange takes over
	var err error
	if c.tokens, err = x.s.pay(c); err != nil {
		return nil, err
	}
	if c.held, ok = x.admit(ask.Lane, ask.Previous); !ok {
		return nil, errLanes
	}
	c.seen = x.s.observer.Begin(c.head, c.route.Match.Route, time.Now())
	d := x.s.decide(&c.request)
	x.s.decided(c, &d)
	x.begin(ask.Lane, x.newExchange(c, &d))
	if len(d.plan.Inserts) == 0 {
		return nil, nil
	}
	return bytes.Join(dialect.Splice(nil, message, d.plan.Inserts), nil), nil
}

// newCall returns a call for a message, as if it were posted.
func (x *intercept) newCall(message []byte, ask *responses.Ask) *call {
	c := new(call)
	c.ask(x.s, &fasthttp.RequestHeader{})
	x.head.CopyTo(c.head)
	c.route = x.route
	c.body = wire.Body{Bytes: message, Whole: true, Busy: !c.share.Grow(2 * len(message))} // the message and its changed copy
	c.barred = x.s.barred(c.memory, c.head)
	if ask.Turn != "" { // a header in a posted request
		c.head.Set("X-Codex-Turn-Metadata", ask.Turn)
	}
	return c
}

// newExchange returns the exchange of a request. It takes over the call's share of the
// budget.
func (x *intercept) newExchange(c *call, d *decision) *exchange {
	ex := &exchange{heldEnd: heldEnd{d.root, d.where, d.session.own}, reader: x.route.Dialect.NewReader(""), seen: c.seen.OfMessage(d.outcome()), memory: c.memory, promises: d.promises, block: d.plan.Unanswered}
	if chain := d.session.chain; len(chain) > 0 {
		ex.end = chain[len(chain)-1]
	}
	if held := d.session.held; held != nil && ex.session == "" {
		ex.session = held.session
	}
	held := 0
	if d.reads(&c.request) {
		ex.pending, ex.backfill, held = x.s.pendingTurn(c, d)
		ex.pending.end = ex.end
		ex.tee = c.memory.Responses.Read(x.route.Dialect.NewReader(""), response.Meta{Order: orderOf(ex.pending.who.Session), Lost: ex.pending.unread, Of: ex.pending.referredBy()},
			callback(ex.pending, d.blockTokens(), x.s.spends(c), false, ex.seen.Read()))
	}
	c.share.Shrink(held)
	ex.share, c.share = c.share, budget.Share{}
	return ex
}

// admit reports whether there is room for another request, and returns the end of the
// conversation that the request refers to; nil if unknown.
func (x *intercept) admit(lane, previous string) (held *heldEnd, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, known := x.ended[previous]; known {
		held = &e
	}
	return held, x.lanes[lane] != nil || len(x.lanes) < maxLanes
}

// begin adds an exchange to the lanes. It ends an earlier one in the same lane.
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

// Event reads a message of the upstream.
func (x *intercept) Event(message []byte) {
	defer wire.CatchPanic(x.s.log, "answer over a WebSocket", func() {})
	e, ok := responses.ReadEvent(message)
	if !ok {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	ex := x.lanes[e.Lane]
	if ex == nil {
		return
	}
	ex.judge(e.Status)
	if !e.Says {
		return
	}
	ex.reader.Event(nil, message)
	ex.tee.Write(responses.AppendEvent(nil, message))
	if !e.Last {
		return
	}
	delete(x.lanes, e.Lane)
	a := ex.reader.Answer()
	if a.ID != "" && len(a.ID) <= maxAnswerID && (a.End.Final() || a.End == dialect.EndToolCalls) {
		if len(x.ended) >= maxAnswers {
			clear(x.ended)
		}
		held := ex.heldEnd
		if a.Text != "" {
			held.end = held.end.Link(dialect.RoleAssistant, []byte(a.Text))
		}
		x.ended[a.ID] = held
		if ex.pending != nil && a.End == dialect.EndToolCalls {
			ex.pending.goesOn(a.ID)
		}
	}
	ex.tee.Close(true)
	ex.seen.EndMessage(e.Status)
	ex.share.Release()
}

// abandoned ends an exchange without a complete answer.
func (ex *exchange) abandoned() {
	ex.tee.Close(false)
	ex.seen.EndMessage(statusGone)
	ex.share.Release()
}

// End ends all exchanges at the end of the connection.
func (x *intercept) End() {
	defer wire.CatchPanic(x.s.log, "end of a WebSocket", func() {})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, ex := range x.lanes {
		ex.abandoned()
	}
	clear(x.lanes)
}
