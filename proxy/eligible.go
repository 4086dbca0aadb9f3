package proxy

import (
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// barred says, by a request's head alone, that it cannot have memory, and why.
// It is asked before anything of a body is read: whoever cannot have memory
// costs no more than what is relayed. What only a body tells is asked later, in
// remember.
func (s *Server) barred(c *call) (o inject.Outcome, yes bool) {
	h, m := &c.ctx.Request.Header, c.memory
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
