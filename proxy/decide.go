package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// decider decides what memory does for a request. What serves, a message over a
// WebSocket and Explain all go through decide.
type decider struct {
	hasher *dialect.Hasher
	memo   *memo.Memo      // what is known of the conversations of the moment
	base   context.Context //nolint:containedctx // ends when the server gives up waiting
	log    *slog.Logger

	commands workspace.Commands
}

// request is what is decided about. Nothing of it changes meanwhile.
type request struct {
	head   *fasthttp.RequestHeader
	route  route
	memory *Memory // as it is set, for all of the request, whatever changes meanwhile
	limits Limits
	body   wire.Body
	barred *refusal // why nothing of the body was to be read; nil: it was
	held   *heldEnd // the conversation over a WebSocket that it refers to; nil: none is known

	share   *budget.Share // what is held of the request
	buffers *buffers
}

// buffers are where a request is read. They are used again for another.
type buffers struct {
	conv   dialect.Conversation
	known  memo.Reading
	claims identity.Claims
	chain  []dialect.Fingerprint
}

// decision is what is done for a request, and what each step found.
type decision struct {
	understood bool // a model answers: the answer says what memory did
	moment
	parsed  parsed
	caller  caller
	place   placed
	session session
	planned
	why string // for people, why there is no memory; may be empty
}

// moment is when a request arrived.
type moment struct {
	arrived    time.Time
	until      time.Time // it waits no longer for memory
	generation int64     // of what was forgotten
}

// outcome is what memory did; nil where the request's API is not known.
func (d *decision) outcome() *inject.Outcome {
	if !d.understood {
		return nil
	}
	return &d.plan.Outcome
}

// kind returns the request's kind, as far as the steps so far have found it.
func (d *decision) kind() dialect.Kind {
	return cmp.Or(d.session.kind, d.place.names.kind, d.parsed.conv.Kind)
}

// decide finds out who speaks in which conversation, and what is to be done
// about it. Each step takes what those before it found and returns what it finds,
// or a refusal, with which the decision ends: refusal.go has them in their order.
// Whatever fails here, the request goes on. It writes nothing but through the parts
// of r.memory and the decider's own.
func (s *decider) decide(r *request) (d decision) {
	switch {
	case r.route.unserved:
		d.understood = true
		d.refuse(notServed)
		return d
	case r.route.dialect == nil:
		return d
	}
	now := time.Now()
	d.understood, d.moment = true, moment{now, now.Add(r.memory.Timeout), r.memory.Generations.Now()}
	defer func() {
		if p := recover(); p != nil {
			wire.LogPanic(s.log, "memory", p)
			d.plan = inject.Plan{Outcome: inject.Outcome{Status: inject.StatusError}}
		}
		d.plan.Outcome.Took = time.Since(now)
	}()
	var no *refusal
	if d.parsed, no = s.parse(r, d.until); no != nil {
		d.refuse(no)
		return d
	}
	ctx, cancel := context.WithDeadline(s.base, d.until)
	defer cancel()
	if d.caller, no = s.caller(ctx, r.memory, d.parsed.claims, r.route.named); no != nil {
		d.refuse(no)
		return d
	}
	d.place = s.place(ctx, r.memory.Sessions, r.held, &d.parsed, &d.caller.Who)
	if d.parsed.conv.Last < 0 {
		d.refuse(noPerson)
		d.pending = continued(r.memory.Pending, d.parsed.conv, &d.place.where)
		d.plan.Turn, d.plan.Write = d.pending.names()
		return d
	}
	if d.session, no = s.session(ctx, r.memory.Sessions, r.buffers, &d.parsed, &d.place); no != nil {
		d.refuse(no)
		return d
	}
	d.planned = s.plan(ctx, r.memory, &r.route, d.moment, &d.parsed, &d.caller, &d.place, &d.session)
	switch {
	case d.late != nil:
		d.why = lateDirectory
	case d.plan.Outcome.Reason == inject.ReasonPlace && d.project.missing != observe.MissingForm:
		d.why = d.project.missing.Remedy()
	}
	return d
}

// refuse ends a decision with why there is no memory.
func (d *decision) refuse(no *refusal) { d.plan, d.why = inject.Plan{Outcome: no.Outcome}, no.why }

// note notes where the session takes place, and that its turn is being answered.
func (s *decider) note(r *request, d *decision) {
	if of := (sessionOf{d.place.base, d.who.Session}); of.session != "" && d.session.kind == dialect.KindTurn && !d.session.agent {
		s.noteTurn(of, &d.place.where, d.parsed.conv)
	}
	if d.plan.Turn != "" && d.pending == nil {
		r.memory.Turns.Begin(d.plan.Turn)
	}
}
