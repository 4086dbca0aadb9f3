package proxy

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/contain"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// serve is the way of every client request, from top to bottom.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	x := s.wire.Begin(ctx, s.way().timeouts())
	c := newCall(x, &ctx.Request.Header)
	defer s.finish(c) // a bug ends this connection, and no other
	c.id, c.ids, c.memory = s.ids.next(), s.ids, s.mem()
	c.route = s.match(&ctx.Request.Header) // route.go: dialect and upstream
	c.trace = s.startTrace(c, ctx.Time())  // trace.go: nil where nobody looks
	defer func() { c.trace.end(c.status) }()

	err := x.Check(c.route.upstream) // what cannot be forwarded as it is
	if err == nil && s.refuses(c) {
		err = errUseHTTP
	}
	if err != nil {
		s.writeError(c, ctx, err)
		return
	}
	c.share = s.budget.Share()
	if err := s.readBody(c); err != nil { // eligible.go: whose body is inspected
		s.writeError(c, ctx, err)
		return
	}
	x.Watch() // a client that leaves ends the exchange

	plan := s.remember(c) // memory.go: what is inserted, and what is to be kept
	c.trace.decided(c, &plan)

	c.trace.asks(c)
	a, err := x.Forward(c.route.upstream, c.outgoing(plan.Inserts)) // one attempt
	if err != nil {
		s.writeError(c, ctx, err)
		return
	}
	c.status = a.Status
	s.judged(c, a.Status) // accept.go: what is kept only of a request that was accepted
	s.metrics.answered(c.route.upstream, a.Status)
	if a.SwitchesProtocols() {
		if err := x.Tunnel(a, s.newIntercept(c, &a.AnswerHead)); err != nil { // both ways, until one side ends
			s.writeError(c, ctx, err)
		}
		return
	}
	tee := s.watch(c, &a.AnswerHead, plan)
	c.freeBody()
	r := x.Relay(a, wire.Rewrite{Add: c.answerFields(a.Status)}, tee) // bytes as they come
	s.relayed(c, &a, &r, ctx.Time())
	s.logRequest(c, a.Status, ctx.Time())
}

// relayed records what came of relaying an answer.
func (s *Server) relayed(c *call, a *wire.Answer, r *wire.Relayed, began time.Time) {
	if a.Event && !r.First.IsZero() {
		s.metrics.firstPiece(r.First.Sub(began))
	}
	switch {
	case r.Err == nil:
	case errors.Is(r.Err, wire.ErrGone):
		s.metrics.abandoned()
	default:
		s.log.Warn("an answer is cut off", "error", r.Err)
	}
}

// outgoing is what is sent upstream: the client's own request, and what is
// inserted.
func (c *call) outgoing(inserts []dialect.Insert) (o wire.Outgoing) {
	if len(inserts) > 0 {
		c.pieces = appendPieces(c.pieces[:0], c.text(), inserts)
		o.Pieces = c.pieces
	}
	if c.plain != nil && len(inserts) > 0 { // it goes on decoded
		o.Head.Without = append(o.Head.Without, "content-encoding")
	}
	if c.intercepted { // compressed frames could not be read
		o.Head.Without = append(o.Head.Without, "sec-websocket-extensions")
	}
	if c.trace != nil {
		o.Head.Without = append(o.Head.Without, "traceparent", "tracestate")
		o.Head.Add = c.trace.appendContext(nil)
	}
	if r := c.mem.relaxed; r != nil {
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

// finish gives a call back. It is deferred by serve, of which a bug ends the
// client's connection: nobody can say what was answered.
func (s *Server) finish(c *call) {
	r := recover()
	x := c.x
	if r == nil {
		c.release()
		x.End()
		return
	}
	contain.Log(s.log, "a request", r)
	c.share.Release()
	x.Break() // neither is used again: what broke may still hold them
}
