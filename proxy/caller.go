package proxy

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Tenants remembers whose credentials an upstream has accepted.
type Tenants interface {
	// Accepted reports whether a tenant's were, as far as can be learnt before
	// ctx ends.
	Accepted(ctx context.Context, tenant string) bool

	// Accept notes that they were. It does not wait.
	Accept(tenant string)
}

// caller is who speaks, and what a request of theirs leaves to be done.
type caller struct {
	identity.Caller
	promises promises
}

// caller finds out who speaks, and refuses those who have no memory.
func (s *decider) caller(ctx context.Context, m *Memory, claims *identity.Claims, upstream string) (c caller, no *refusal) {
	c.Caller = m.Identity.Identify(claims, upstream)
	switch {
	case c.Contradicts:
		return c, contradicts
	case c.Doubted:
		return c, doubted
	case !c.Known:
		return c, noCaller
	}
	c.promises = promised(ctx, m.Tenants, &c.Caller)
	return c, nil
}

// identify finds out who speaks, whether or not the body was read.
func (r *request) identify() identity.Caller {
	claims := r.buffers.claims.ReadHead(r.head)
	claims.ReadBody(&r.buffers.conv)
	return r.memory.Identity.Identify(claims, r.route.named)
}

// promises are what a request leaves to be done once the upstream has accepted
// its credential.
type promises struct {
	stranger bool           // no upstream has accepted the credential so far
	tenant   string         // to be noted as accepted; empty: the operator vouches for it, or there is none
	said     capture.Saying // the person's message, which may address the memory
	left     time.Duration  // how long the request may still wait for the memory
}

// promised returns what is kept for a caller once the upstream has accepted the
// request. A credential that was made up learns nothing: until it is accepted,
// its owner has an empty memory.
func promised(ctx context.Context, known Tenants, caller *identity.Caller) (p promises) {
	if caller.Vouched || caller.Who.Tenant == "" {
		return p
	}
	p.tenant = caller.Who.Tenant
	p.stranger = !known.Accepted(ctx, p.tenant)
	return p
}

// rejected reports whether an upstream has refused a credential. Such an answer
// does not say what memory did, and nothing of its request is kept.
func rejected(status int) bool {
	return status == fasthttp.StatusUnauthorized || status == fasthttp.StatusForbidden
}

// keep does what was promised, now that the status of the answer is known, and
// counts what the message asked of the memory. It must be called once.
func (p *promises) keep(m *Memory, status int) (h inject.Heard) {
	accepted := status >= 200 && status < 300
	if p.tenant != "" && accepted {
		m.Tenants.Accept(p.tenant)
	}
	if rejected(status) || p.stranger && !accepted {
		return h
	}
	if p.said.Text == "" {
		return h
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.left)
	defer cancel()
	return m.Hearer.Hear(ctx, p.said)
}

// accepted does what the head of an answer allows. The header that follows has the
// counts, and the answer may never come to its end.
func (s *Server) accepted(m *Memory, p *promises, status int) (h inject.Heard) {
	wire.Contain(s.log, "the head of an answer", func() { h = p.keep(m, status) })
	return h
}
