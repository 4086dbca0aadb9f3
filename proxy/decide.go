package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// decider decides how memory treats a request. Posted requests and messages over a WebSocket
// go through decide.
type decider struct {
	memo *memo.Memo      // notes about current conversations
	base context.Context //nolint:containedctx // ends when the server gives up waiting
	log  *slog.Logger

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
	claims identity.Claims
	chain  []dialect.Fingerprint
}

// decision is the plan for a request, and the result of each step.
type decision struct {
	understood bool // a model answers, so the answer has an X-Graphiti-Memory field
	moment
	parsed parsed
	caller caller
	placed
	planned
	why     string          // the reason for no memory, for people; may be empty
	opened  bool            // its new message is open
	earlier earlierMessages // other new messages
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

// decide identifies the caller and the conversation of a request, and plans its memory.
// Each step takes the results of the steps before it, and returns its own result or a
// refusal, which ends the decision: refusal.go lists the refusals in their order. An
// error or a panic in decide does not stop the request. decide writes only through
// r.memory and the fields of the decider.
func (s *decider) decide(r *request) (d decision) {
	switch {
	case r.route.Unserved:
		d.understood = true
		d.refuse(notServed)
		return d
	case r.route.Dialect == nil:
		return d
	}
	now := time.Now()
	d.understood, d.arrived, d.until = true, now, now.Add(r.memory.Timeout)
	if r.memory.Planner != nil {
		d.generation = r.memory.Generations.Now()
	}
	defer func() {
		if p := recover(); p != nil {
			wire.LogPanic(s.log, "memory", p)
			d.plan, d.fate = inject.Plan{Outcome: inject.Outcome{Status: inject.StatusError}}, graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostPlan}
		}
		d.plan.Outcome.Took = time.Since(now)
	}()
	if no := s.steps(r, &d); no != nil {
		d.refuse(no)
	}
	return d
}

// steps takes the four steps of a decision: the content of the request, its caller, its
// place with session and project, and its plan.
func (s *decider) steps(r *request, d *decision) (no *refusal) {
	if d.parsed, no = s.parse(r, d.until); no != nil {
		return no
	}
	ctx, cancel := context.WithDeadline(s.base, d.until)
	defer cancel()
	if d.caller, no = s.caller(ctx, r.memory, d.parsed.claims, r.route.named); no != nil {
		return no
	}
	if d.placed, no = s.where(ctx, r, &d.parsed, &d.caller.Who); no != nil {
		return no
	}
	if c := d.parsed.conv; d.session.kind == dialect.KindTurn && c.Last >= 0 && !c.Answered() {
		r.memory.Doubts.Release(ctx, &d.session.why.Twin)
	}
	d.planned = s.plan(ctx, r, d.moment, &d.parsed, &d.caller, &d.placed)
	d.earlier = s.earlierMessages(r.memory, d)
	d.fate.Earlier = d.earlier.fates()
	d.plan.Outcome.Earlier = d.fate.Earlier
	return nil
}

// refuse ends a decision with a refusal.
func (d *decision) refuse(no *refusal) {
	d.plan, d.fate, d.why = inject.Plan{Outcome: no.Outcome}, fateOf(no.Reason), no.why
	if p := d.pending; p != nil {
		d.plan.Turn, d.plan.Write = p.turn.ID, p.turn.Targets
	}
}

// note notes the place of the session, and that this process records its turn.
func (s *decider) note(r *request, d *decision) {
	switch of := (sessionOf{d.base, d.who.Session}); {
	case of.session == "" || d.session.agent:
	case d.session.chore:
		s.noteChore(of, d.session.chain[d.parsed.conv.Last])
	case d.session.kind == dialect.KindTurn:
		s.noteTurn(of, &d.placed, d.parsed.conv)
		if r.route.replays() { // it begins no turn
			break
		}
		if c := d.parsed.conv; c.Last >= 0 && !c.Answered() {
			r.memory.Doubts.Twin(&d.session.why.Twin, false)
		}
		s.countBeginning(d)
	case d.session.kind == dialect.KindProbe && d.parsed.conv.Kind == dialect.KindTurn && d.parsed.conv.Last >= 0: // its program may ask again
		s.memo.Update(keyOf(d.session.chain[d.parsed.conv.Last], quotablesName), func(any) (any, int) { return true, 0 })
	}
	for _, e := range d.earlier {
		if e.fate == graphiti.FateClient {
			r.memory.Turns.Begin(e.Turn.String())
		}
	}
	if d.plan.Turn != "" && d.pending == nil && d.fate.Reason != graphiti.LostLate { // else a later request records it
		r.memory.Turns.Begin(d.plan.Turn)
	}
}
