package proxy

import (
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// serve is the way of every client request, from top to bottom.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	x := s.wire.Begin(ctx, s.routing().timeouts())
	c := s.newCall(x, &ctx.Request.Header)
	defer s.finish(c)                      // a bug ends this connection, and no other
	c.route = s.match(&ctx.Request.Header) // route.go: API and upstream
	c.seen = s.observer.Begin(c.head, c.route.match.Route, ctx.Time())
	status, d := 0, decision{} // of the answer; 0: none yet
	defer func() { c.seen.End(c.head, status, d.outcome()) }()

	webSocket, err := s.admit(x, c) // what cannot be forwarded as it is
	if err == nil {
		c.body, err = x.ReadBody(c.reading()) // body.go: whose body is inspected
	}
	if err != nil {
		status = s.writeError(c, ctx, d, err)
		return
	}
	x.Watch() // a client that leaves ends the exchange

	d = s.decide(&c.request) // decide.go: parse → caller → place → session → plan
	s.decided(c, &d)
	a, err := s.forward(c, &d, webSocket) // splice, and one attempt
	if err != nil {
		status = s.writeError(c, ctx, d, err)
		return
	}
	status = a.Status
	c.seen.Headed()
	s.observer.Answer(c.route.upstream.Name, status)
	heard := s.accepted(c.memory, &d.promises, status) // caller.go: what only an accepted request may do
	d.plan.Outcome.Heard = heard
	if a.SwitchesProtocols() {
		if err := x.Tunnel(a, s.messages(c, &a.AnswerHead, webSocket)); err != nil { // both ways, until one side ends
			status = s.writeError(c, ctx, d, err)
		}
		return
	}
	tee, held := s.reader(c, &a.AnswerHead, &d) // turn.go: the answer becomes a turn, which pending.go records
	c.freeBody(&d, held)
	added := wire.Rewrite{Add: c.answerFields(&d, status)}
	if a.Event { // its bytes as they come, when serve has returned
		x.Stream(a, added, tee, c.ending(status, &d))
		return
	}
	s.observer.Relayed(x.Relay(a, added, tee)) // bytes as they come
}

// forward sends a request. Where the provider refuses it with a new block, it gets the
// client's own request.
//
// A POST is never sent twice, and this one is not: what was refused is a request that the
// client never made. 400 and 413 say that nothing was done for it. Without this, a
// request that fits by itself fails because of the proxy, and many clients show such an
// error as the last word. The status decides, and not the words of the error, which each
// server chooses for itself: a request that is refused for another reason is refused
// again, and the client gets that answer.
func (s *Server) forward(c *call, d *decision, webSocket bool) (wire.Answer, error) {
	a, err := c.x.Forward(c.route.upstream, c.outgoing(d, webSocket))
	if err != nil || !s.withdrawn(c.memory, d, a.Status) {
		return a, err
	}
	s.observer.Answer(c.route.upstream.Name, a.Status)
	if err := c.x.Discard(a); err != nil {
		return wire.Answer{}, err
	}
	return c.x.Forward(c.route.upstream, c.outgoing(d, webSocket))
}

// withdrawn reports whether a request was refused with a new block, and goes on without.
func (s *Server) withdrawn(m *Memory, d *decision, status int) (ok bool) {
	if !refusesRequest(status) || !d.plan.Withdrawable() {
		return false
	}
	wire.Contain(s.log, "withdrawing a block", func() { ok = m.Planner.Withdraw(&d.plan) })
	return ok
}

// refusesRequest reports whether a status says that a provider does not take a request as
// it is.
func refusesRequest(status int) bool {
	return status == fasthttp.StatusBadRequest || status == fasthttp.StatusRequestEntityTooLarge
}

// admit refuses what cannot be forwarded as it is, and reports whether the
// messages of a WebSocket are to be read. What may have memory is known then.
func (s *Server) admit(x *wire.Exchange, c *call) (webSocket bool, err error) {
	if !c.limits.Keys.Admit(c.head) {
		return false, wire.ErrClientKey
	}
	if err := x.Check(c.route.upstream); err != nil {
		return false, err
	}
	if webSocket, err = s.webSocket(x, c); err != nil {
		return false, err
	}
	if c.route.dialect != nil {
		c.barred = s.barred(c.memory, c.head)
	}
	return webSocket, nil
}

// decided reports what was decided, and notes what the next requests need to know.
func (s *Server) decided(c *call, d *decision) {
	if d.understood {
		c.seen.Planned(&d.plan)
		if c.route.match.Use == dialect.UseTurn && d.caller.Known {
			s.observer.Asked(observe.Ask{
				Program: d.parsed.claims.Program(), Agent: c.head.UserAgent(), Kind: d.kind(), Tools: d.parsed.conv.Tools,
				Reason: d.plan.Outcome.Reason, Missing: d.project.missing,
			})
		}
		wire.Contain(s.log, "noting a decision", func() {
			s.note(&c.request, d)
			if c.route.match.Use == dialect.UseTurn && d.who != (graphiti.Who{}) { // no refusal came before
				c.memory.Figures.Asked(d.who, d.plan)
			}
		})
	}
	c.seen.Did(c.head, d.deed(&c.request), &d.plan)
	c.seen.Send(c.head, c.route.upstream.Host, c.route.provider, c.buffers.conv.Model)
}

// deed is what is noted of a request.
func (d *decision) deed(r *request) observe.Deed {
	if !d.understood {
		return observe.Deed{}
	}
	of := observe.Deed{API: r.route.api, Model: r.buffers.conv.Model, Who: d.who, Blocks: len(d.plan.Inserts)}
	if d.who == (graphiti.Who{}) && d.caller.Known { // it was refused, and not for who sent it
		of.Who = d.caller.Who
	}
	if d.parsed.claims != nil {
		of.Program = d.parsed.claims.Program()
	}
	if d.relax != nil { // which is inserted too
		of.Blocks--
	}
	return of
}

// ending returns what is done when a stream ends, after the call is gone.
func (c *call) ending(status int, d *decision) func(wire.Relayed) {
	share, report := c.share, c.seen.Streamed(c.head, status, d.outcome())
	c.share = budget.Share{}
	return func(r wire.Relayed) {
		share.Release()
		report(r)
	}
}

// outgoing is what is sent upstream: the client's own request, and what is
// inserted.
func (c *call) outgoing(d *decision, webSocket bool) (o wire.Outgoing) {
	inserts := d.plan.Inserts
	if len(inserts) > 0 {
		c.pieces = appendPieces(c.pieces[:0], d.parsed.text, inserts)
		o.Pieces = c.pieces
	}
	if d.parsed.decoded && len(inserts) > 0 { // it goes on decoded
		o.Head.Without = append(o.Head.Without, "content-encoding")
	}
	if webSocket { // compressed frames could not be read
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

// appendPieces cuts a body into pieces, with the inserts between them. It is the
// only place that adds a byte to a request. Inserts are in ascending order.
func appendPieces(dst [][]byte, body []byte, inserts []dialect.Insert) [][]byte {
	at := 0
	for _, ins := range inserts {
		dst = append(dst, body[at:ins.At], ins.Text)
		at = ins.At
	}
	return append(dst, body[at:])
}

// finish gives a call back. A bug in serve ends the client's connection: nobody
// can say how much of the answer was sent.
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
	x.Break() // neither is used again: what broke may still hold them
}

// call is what belongs to a request from its first byte to the answer's last. It
// belongs to the goroutine that serves the request.
type call struct {
	request // what is decided about

	buffers buffers
	share   budget.Share // what is held of the request

	x      *wire.Exchange // nil over a WebSocket
	pieces [][]byte       // of the body that is sent
	fields []byte         // that the answer gets
	seen   observe.Request
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

// release gives the call's buffers back. Nothing may refer to them any more.
func (c *call) release() {
	c.dropConversation()
	c.share.Release()
	clear(c.pieces[:cap(c.pieces)])
	c.buffers.claims, c.buffers.chain = identity.Claims{}, c.buffers.chain[:0]
	c.request, c.share, c.x, c.seen = request{}, budget.Share{}, nil, observe.Request{}
	c.pieces, c.fields = c.pieces[:0], c.fields[:0]
	calls.Put(c)
}

// freeBody gives back what was needed for reading the request, which has been
// sent. What the answer's turn holds of it stays counted.
func (c *call) freeBody(d *decision, held int) {
	c.dropConversation()
	c.body, d.parsed = wire.Body{}, parsed{}
	c.share.Shrink(c.x.FreeBody() + c.buffers.conv.Size() + held)
}

// dropConversation takes what was read of the body from the call, unless it is
// small.
func (c *call) dropConversation() {
	c.buffers.conv.Reset() // which refers to the body
	c.buffers.known.Reset()
	memo.TakeBack(&c.buffers.conv)
	if cap(c.buffers.chain) > memo.Small/16 {
		c.buffers.chain = nil
	}
}
