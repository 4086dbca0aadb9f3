package proxy

import (
	"github.com/valyala/fasthttp"
)

// serve is the way of every client request, from top to bottom.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	c := newCall(ctx)
	defer s.finish(c) // contain.go: a bug ends this connection, and no other
	c.id, c.ids, c.memory = s.ids.next(), s.ids, s.mem()
	c.route = s.match(&ctx.Request.Header) // route.go: dialect and upstream
	c.trace = s.startTrace(c)              // trace.go: nil where nobody looks
	defer func() { c.trace.end(c.status) }()

	if err := s.refusal(c); err != nil { // refuse.go: what cannot be forwarded as it is
		s.writeError(c, err)
		return
	}
	c.share = s.budget.Share()
	if err := s.readBody(c, s.bodyLimit(c)); err != nil { // eligible.go: whose body is inspected
		s.writeError(c, err)
		return
	}
	if c.rest == nil {
		s.hangups.watch(c) // hangup.go: a client that leaves ends the call
	}
	defer s.hangups.forget(c)

	plan := s.remember(c) // memory.go: what is inserted, and what is to be kept
	c.trace.decided(c, &plan)
	if len(plan.Inserts) > 0 {
		c.unpack() // encoding.go: a body that was encoded is not any more
	}

	c.trace.asks(c)
	up, head, n, err := s.forward(c, plan.Inserts) // forward.go: one attempt
	if err != nil {
		s.writeError(c, c.pump.fault(c, err))
		return
	}
	c.status = head.status
	s.judged(c, head.status) // accept.go: what is kept only of a request that was accepted
	s.metrics.answered(c.route.upstream, head.status)
	if head.status == fasthttp.StatusSwitchingProtocols {
		s.tunnel(c, up, head, n) // upgrade.go: both ways, until one side ends
		return
	}
	tee := s.watch(c, &head, plan)
	c.freeBody()                 // body.go
	s.relay(c, up, head, n, tee) // relay.go: bytes as they come
	s.logRequest(c, head.status, ctx.Time())
}
