package proxy

import (
	"cmp"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// serve contains the path of every client request, from top to bottom.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	x := s.wire.Begin(ctx, s.routing().timeouts())
	c := s.newCall(x, &ctx.Request.Header)
	defer s.finish(c)                      // a panic ends only this connection
	c.route = s.match(&ctx.Request.Header) // route.go: API and upstream
	c.seen = s.observer.Begin(c.head, c.route.Match.Route, ctx.Time())
	status, d := 0, decision{} // status is 0 before the answer
	defer func() {
		s.unanswered(c, status, &d)
		c.seen.End(c.head, status, d.outcome())
	}()

	webSocket, err := s.admit(x, c) // refuses requests that must not be forwarded
	if err == nil {
		c.body, err = x.ReadBody(c.reading()) // parse.go: how much of it is read now
	}
	if err != nil {
		status = s.writeError(c, ctx, d, err)
		return
	}
	c.seen.Arrived()
	x.Watch() // a client that leaves ends the exchange

	d = s.decide(&c.request) // decide.go: parse → caller → where → plan
	s.decided(c, &d)
	a, err := s.forward(c, &d, webSocket) // splice, and one attempt
	if err != nil {
		status = s.writeError(c, ctx, d, err)
		return
	}
	status = a.Status
	c.seen.Headed()
	s.observer.Answer(c.route.upstream.Name, status)
	s.keepPromises(c, &d, status) // caller.go: the actions that wait for acceptance
	if a.SwitchesProtocols() {
		if err := x.Tunnel(a, s.messages(c, &a.AnswerHead, webSocket)); err != nil { // both ways, until one side ends
			status = s.writeError(c, ctx, d, err)
		}
		return
	}
	tee, held := s.reader(c, &a.AnswerHead, &d) // turn.go: the answer becomes a turn, which pending.go records
	c.freeBody(&d, held)
	added := wire.Rewrite{Add: c.answerFields(&d, status)}
	relayed := x.Relay(a, added, tee) // without delay
	if a.Event {
		c.seen.Streamed(relayed.First)
	}
	s.observer.Relayed(relayed)
}

// forward sends a request. If the provider refuses it with a new block, forward sends the
// client's own request without the block.
//
// This does not repeat a client's POST: the refused request was not the client's. After a
// 400 or 413, the provider has not processed it. Without the second attempt, a request of
// an acceptable size would fail because of the proxy, and many clients treat such an
// error as final. Only the status counts, because the text of the error differs between
// servers. The block was to blame only if the provider accepts the client's own request:
// only then do later requests have no block.
func (s *Server) forward(c *call, d *decision, webSocket bool) (wire.Answer, error) {
	a, err := c.x.Forward(c.route.upstream, c.outgoing(d, webSocket))
	block := d.plan.Unanswered
	if err != nil || !refusesRequest(a.Status) || !block.Exists() {
		return a, err
	}
	s.observer.Answer(c.route.upstream.Name, a.Status)
	if err := c.x.Discard(a); err != nil {
		return wire.Answer{}, err
	}
	d.plan.Withdrawn()
	a, err = c.x.Forward(c.route.upstream, c.outgoing(d, webSocket))
	if err == nil && a.Status < fasthttp.StatusBadRequest {
		wire.Contain(s.log, "withdrawing a block", func() { c.memory.Planner.Withdraw(block) })
	}
	return a, err
}

// refusesRequest reports whether a status means that a provider refuses a request because
// of its content or size.
func refusesRequest(status int) bool {
	return status == fasthttp.StatusBadRequest || status == fasthttp.StatusRequestEntityTooLarge
}

// admit refuses a request that must not be forwarded, and reports whether to read the
// messages of a WebSocket. It also sets c.barred.
func (s *Server) admit(x *wire.Exchange, c *call) (webSocket bool, err error) {
	if !c.limits.Keys.Admit(c.head) {
		return false, wire.ErrClientKey
	}
	if c.tokens, err = s.pay(c); err != nil {
		return false, err
	}
	if err := x.Check(c.route.upstream); err != nil {
		return false, err
	}
	if webSocket, err = s.webSocket(x, c); err != nil {
		return false, err
	}
	if c.route.Dialect != nil {
		c.barred = s.barred(c.memory, c.head)
	}
	return webSocket, nil
}

// decided reports a decision, and stores notes for the next requests.
func (s *Server) decided(c *call, d *decision) {
	if d.understood {
		c.seen.Planned(&d.plan)
		if d.isNew(&c.request) {
			s.countNew(c, d)
		}
		if c.route.Use == dialect.UseTurn && d.caller.Known && d.lacksPlace() {
			s.observer.WithoutPlace(d.parsed.claims.Program(), c.head.UserAgent(), d.project.missing)
		}
		wire.Contain(s.log, "noting a decision", func() {
			s.note(&c.request, d)
			if c.route.Use == dialect.UseTurn && d.who != (graphiti.Who{}) { // not refused before the plan
				c.memory.Figures.Asked(d.who, d.plan)
			}
		})
	}
	c.seen.Did(c.head, d.logEntry(&c.request), &d.plan)
	c.seen.Send(c.head, c.route.upstream.Host, c.route.Info.Provider, c.buffers.conv.Model)
}

// lacksPlace reports whether a turn has no place. Without tools, it may be a client's own
// request that matches no rule, such as for a title.
func (d *decision) lacksPlace() bool {
	conv := d.parsed.conv
	return d.plan.Outcome.Reason == inject.ReasonPlace && !d.project.late && cmp.Or(d.session.kind, conv.Kind) == dialect.KindTurn &&
		(conv.Tools || d.project.missing == observe.MissingHere)
}

// logEntry returns the entry of a request for the observer.
func (d *decision) logEntry(r *request) observe.LogEntry {
	if !d.understood {
		return observe.LogEntry{To: r.route.upstream.Name}
	}
	of := observe.LogEntry{API: r.route.Info.Name, To: r.route.upstream.Name, Model: r.buffers.conv.Model, Serves: r.route.Info.Provider, Who: d.who, Blocks: len(d.plan.Inserts), Fate: d.fate}
	if d.who == (graphiti.Who{}) && d.caller.Known { // refused, but not because of its caller
		of.Who = d.caller.Who
	}
	if d.parsed.claims != nil {
		of.Program = d.parsed.claims.Program()
	}
	if d.relax != nil { // it is an insert, but no block
		of.Blocks--
	}
	return of
}

// outgoing returns the request to the upstream: the client's own, with the inserts.
func (c *call) outgoing(d *decision, webSocket bool) (o wire.Outgoing) {
	inserts := d.plan.Inserts
	if len(inserts) > 0 {
		c.pieces = dialect.Splice(c.pieces[:0], d.parsed.text, inserts)
		o.Pieces = c.pieces
	}
	if d.parsed.decoded && len(inserts) > 0 { // the upstream gets the decoded body
		o.Head.Without = append(o.Head.Without, "content-encoding")
	}
	if webSocket { // the proxy cannot read compressed frames
		o.Head.Without = append(o.Head.Without, "sec-websocket-extensions")
	}
	if fields, replaced := c.seen.Context(); replaced {
		o.Head.Without = append(o.Head.Without, "traceparent", "tracestate")
		o.Head.Add = fields
	}
	if r := d.relax; r != nil {
		o.Head.Extend = wire.Field{Name: r.Header, Value: r.Value}
	}
	return o
}

// finish releases a call. After a panic in serve, it ends the client's connection, because
// any part of the answer may have been sent.
func (s *Server) finish(c *call) {
	r := recover()
	x := c.x
	if r == nil {
		c.release()
		x.End()
		return
	}
	wire.LogPanic(s.log, "a request", r)
	c.share.Release()
	x.Break() // c and x are not reused: the code that panicked may still refer to them
}

// call is the state of a request from its first byte to the last byte of the answer. It
// belongs to the goroutine that serves the request.
type call struct {
	request // the input of decide

	buffers buffers
	share   budget.Share // the memory that the request occupies

	x      *wire.Exchange // nil over a WebSocket
	pieces [][]byte       // of the outgoing body
	fields []byte         // the proxy's lines for the answer's head
	seen   observe.Request
	tokens []*bucket // the answer's tokens are spent from them
}

var calls = sync.Pool{New: func() any { return new(call) }}

func (s *Server) newCall(x *wire.Exchange, h *fasthttp.RequestHeader) *call {
	c := calls.Get().(*call) //nolint:forcetypeassert // the pool's only type
	c.x = x
	c.ask(s, h)
	return c
}

// ask begins a call with the head of a request.
func (c *call) ask(s *Server, h *fasthttp.RequestHeader) {
	c.share = s.budget.Share()
	c.request = request{head: h, memory: s.currentMemory(), limits: s.routing().limits, share: &c.share, buffers: &c.buffers}
}

// release returns the call to the pool. The caller must not use its buffers afterwards.
func (c *call) release() {
	c.dropConversation()
	c.share.Release()
	clear(c.pieces[:cap(c.pieces)])
	c.buffers.claims, c.buffers.chain = identity.Claims{}, c.buffers.chain[:0]
	c.request, c.share, c.x, c.seen, c.tokens = request{}, budget.Share{}, nil, observe.Request{}, nil
	c.pieces, c.fields = c.pieces[:0], c.fields[:0]
	calls.Put(c)
}

// freeBody frees the buffers of the request after it was sent. The bytes that the
// answer's turn holds stay counted.
func (c *call) freeBody(d *decision, held int) {
	c.dropConversation()
	c.body, d.parsed = wire.Body{}, parsed{}
	c.share.Shrink(c.x.FreeBody() + c.buffers.conv.Size() + held)
}

// smallConversation limits the buffers that a call retains during its stream, in bytes.
const smallConversation = 64 << 10

// dropConversation removes the parsed body from the call. It keeps small buffers for
// reuse.
func (c *call) dropConversation() {
	c.buffers.conv.Reset() // it refers to the body
	if c.buffers.conv.Size() > smallConversation {
		c.buffers.conv = dialect.Conversation{}
	}
	if cap(c.buffers.chain) > smallConversation/16 {
		c.buffers.chain = nil
	}
}
