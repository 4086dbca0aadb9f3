package proxy

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Tenants remembers the tenants with credentials that an upstream has accepted.
type Tenants interface {
	// Accepted reports whether an upstream has accepted a tenant's credential. It
	// returns when ctx ends, even if it cannot find out.
	Accepted(ctx context.Context, tenant string) bool

	// Accept notes that an upstream has accepted a tenant's credential. It does not
	// wait.
	Accept(tenant string)
}

// caller is the identity of a caller, and the promises of the request.
type caller struct {
	identity.Caller
	promises promises
}

// caller identifies the caller, and refuses one without memory.
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

// identify identifies the caller, even if the body was not read.
func (r *request) identify() identity.Caller {
	claims := r.buffers.claims.ReadHead(r.head)
	claims.ReadBody(&r.buffers.conv)
	return r.memory.Identity.Identify(claims, r.route.named)
}

// promises are the actions for a request that wait until the upstream has accepted its
// credential.
type promises struct {
	stranger bool             // no upstream has accepted the credential so far
	tenant   string           // to note as accepted; empty if there is none, or if the operator vouches for it
	said     standing.Message // the person's message, which may address the memory
	isFirst  func() bool      // no request with said was accepted before; set with said
	left     time.Duration    // how long the request may still wait for the memory
	heard    inject.Heard     // the effects of said, after keep
}

// promised returns the promises for a caller. Until an upstream accepts a credential,
// its owner has an empty memory, so an invented credential reveals nothing.
func promised(ctx context.Context, known Tenants, caller *identity.Caller) (p promises) {
	if caller.Vouched || caller.Who.Tenant == "" {
		return p
	}
	p.tenant = caller.Who.Tenant
	p.stranger = !known.Accepted(ctx, p.tenant)
	return p
}

// rejected reports whether a status means that an upstream has refused a credential.
// Such an answer has no X-Graphiti-Memory field, and its request is not stored.
func rejected(status int) bool {
	return status == fasthttp.StatusUnauthorized || status == fasthttp.StatusForbidden
}

// keep keeps the promises that the status of the answer allows, and carries out the
// commands to the memory in the person's message. It must be called once.
func (p *promises) keep(m *Memory, status int) {
	accepted := status >= 200 && status < 300
	if p.tenant != "" && accepted {
		m.Tenants.Accept(p.tenant)
	}
	if p.said.Text == "" || !accepted || !p.isFirst() { // else a caller without a credential could make the memory forget
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.left)
	defer cancel()
	p.heard = m.Standing.Apply(ctx, p.said)
}

// keepPromises keeps the promises at the head of an answer, and adds their counts to the
// outcome. It does not wait for the end: the answer's header contains the counts, and the
// answer may never end.
func (s *Server) keepPromises(c *call, d *decision, status int) {
	wire.Contain(s.log, "the head of an answer", func() { d.promises.keep(c.memory, status) })
	d.plan.Outcome.Heard = d.promises.heard
}
