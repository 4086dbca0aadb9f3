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

// decider decides how memory treats a request. Posted requests, messages over a
// WebSocket and Explain all go through decide.
type decider struct {
	hasher *dialect.Hasher
	memo   *memo.Memo      // notes about current conversations
	base   context.Context //nolint:containedctx // ends when the server gives up waiting
	log    *slog.Logger

	commands workspace.Commands
}

// request is the input of decide, which does not change it.
type request struct {
	head   *fasthttp.RequestHeader
	route  route
	memory *Memory // the settings at the start of the request; later changes do not affect it
	limits Limits
	body   wire.Body
	barred *refusal // the refusal by the head, before the body is read; nil if there is none
	held   *heldEnd // the conversation over a WebSocket that the request continues; nil if unknown

	share   *budget.Share // the memory that the request occupies
	buffers *buffers
}

// buffers hold a parsed request. Another request reuses them.
type buffers struct {
	conv   dialect.Conversation
	known  memo.Reading
	claims identity.Claims
	chain  []dialect.Fingerprint
}

// decision is the plan for a request, and the result of each step.
type decision struct {
	understood bool // a model answers, so the answer has an X-Graphiti-Memory field
	moment
	parsed  parsed
	caller  caller
	place   placed
	session session
	planned
	why string // the reason for no memory, for people; may be empty
}

// moment is the time of a request's arrival.
type moment struct {
	arrived    time.Time
	until      time.Time // the request waits for memory until then
	generation int64     // the count of forgets
}

// outcome returns the outcome for the request; nil if its API is unknown.
func (d *decision) outcome() *inject.Outcome {
	if !d.understood {
		return nil
	}
	return &d.plan.Outcome
}

// kind returns the request's kind by the last step that found one.
func (d *decision) kind() dialect.Kind {
	return cmp.Or(d.session.kind, d.place.names.kind, d.parsed.conv.Kind)
}

// decide identifies the caller and the conversation of a request, and plans its memory.
// Each step takes the results of the steps before it, and returns its own result or a
// refusal, which ends the decision: refusal.go lists the refusals in their order. An
// error or a panic in decide does not stop the request. decide writes only through
// r.memory and the fields of the decider.
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

// refuse ends a decision with a refusal.
func (d *decision) refuse(no *refusal) { d.plan, d.why = inject.Plan{Outcome: no.Outcome}, no.why }

// note notes the place of the session, and that this process answers its turn.
func (s *decider) note(r *request, d *decision) {
	if of := (sessionOf{d.place.base, d.who.Session}); of.session != "" && d.session.kind == dialect.KindTurn && !d.session.agent {
		s.noteTurn(of, &d.place.where, d.parsed.conv)
		s.noteOpening(d.parsed.conv, &d.place.where)
	}
	if d.plan.Turn != "" && d.pending == nil {
		r.memory.Turns.Begin(d.plan.Turn)
	}
}
