package proxy

import (
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// barred says, by a request's head alone, that it cannot have memory, and why.
// It is asked before anything of a body is read: whoever cannot have memory
// costs no more than what is relayed. What only a body tells is asked later, in
// remember.
func (s *Server) barred(c *call) (o inject.Outcome, yes bool) {
	h, m := c.head, c.memory
	off := func(r inject.Reason) (inject.Outcome, bool) {
		return inject.Outcome{Status: inject.StatusOff, Reason: r}, true
	}
	switch {
	case m.Planner == nil:
		return off(m.Off)
	case m.Identity.Multi && !identity.ShowsCredential(h):
		return off(inject.ReasonNone)
	case !m.Identity.Multi && identity.FromWeb(h):
		s.warnForeign(h)
		return off(inject.ReasonUntrusted)
	case m.Rules.skipsPath(h.RequestURI()):
		return off(inject.ReasonOptOut)
	}
	return o, false
}

func (s *Server) warnForeign(h *fasthttp.RequestHeader) {
	s.log.Warn("a request that a page of the web may have sent has no memory; let clients call 127.0.0.1 or localhost, or set identity.mode to multi",
		"host", string(h.Host()[:min(len(h.Host()), 64)]))
}

const (
	// relayedBody is how much of a body is read before it is sent on, where
	// nothing in it is of interest.
	relayedBody = 64 << 10

	// copiedBody is likewise for a request of a dialect that has no memory and
	// says how long it is: sending it at once is cheaper. Of a longer one
	// nothing is read before.
	copiedBody = 256 << 10
)

// readBody reads the request's body: whole where it may have memory.
func (s *Server) readBody(c *call) (err error) {
	r := wire.Reading{Limit: relayedBody, Share: &c.share}
	if c.route.dialect != nil {
		o, yes := s.barred(c)
		switch {
		case !yes:
			r.Limit, r.Inspect = s.way().limits.InspectBytes, true
		case c.head.ContentLength() >= 0:
			r.Limit = copiedBody
		}
		if yes {
			c.mem.barred = &o
		}
	}
	c.body, err = c.x.ReadBody(r)
	return err
}
