package proxy

import (
	"context"
	"log/slog"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/deadline"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// decider decides what memory does for a request. What serves, a message over a
// WebSocket and Explain all go through decide.
type decider struct {
	hasher *dialect.Hasher
	memo   *memo.Memo                           // how the conversations of the moment began
	places *lru.Cache[sessionOf, dialect.Place] // where the sessions of the moment take place
	known  *sessions                            // what their turns have in common
	base   context.Context                      //nolint:containedctx // ends when the server gives up waiting
	log    *slog.Logger
}

// request is what is decided about. The buffers behind it are used again.
type request struct {
	head   *fasthttp.RequestHeader
	route  route
	memory *Memory // as it is set, for all of the request, whatever changes meanwhile
	limits Limits
	body   wire.Body
	barred *refusal     // why nothing of the body was to be read; nil: it was
	share  budget.Share // what is held of the request
	held   *heldEnd     // the conversation over a WebSocket that it refers to; nil: none is known

	// What is found in it.
	plain []byte // what the body says, where it is encoded
	conv  dialect.Conversation
	known memo.Reading          // what was known of it
	chain []dialect.Fingerprint // of the conversation, message by message
	says  identity.Claims
}

// text is the body as it is read.
func (r *request) text() []byte {
	if r.plain != nil {
		return r.plain
	}
	return r.body.Bytes
}

// identify finds out who speaks.
func (r *request) identify() identity.Caller {
	return r.memory.Identity.Identify(&r.says, r.head, &r.conv, r.route.named)
}

// refusal is why a request has no memory.
type refusal struct {
	inject.Outcome
	why string // for people; empty: the reason says it
}

func off(reason inject.Reason, why string) *refusal {
	return &refusal{inject.Outcome{Status: inject.StatusOff, Reason: reason}, why}
}

func skipped(reason inject.Reason) *refusal {
	return &refusal{inject.Outcome{Status: inject.StatusSkipped, Reason: reason}, ""}
}

// decision is what is done for a request.
type decision struct {
	understood bool // its API is known: the answer says what memory did
	plan       inject.Plan
	why        string // for people, why there is no memory; may be empty

	caller   identity.Caller
	who      graphiti.Who // of the turn; zero where nothing was planned
	at       where
	project  project
	chained  bool // the session was found by, or begins, a chain
	held     *heldEnd
	subagent bool

	arrived    time.Time
	generation int64          // of what was forgotten, when the request arrived
	relax      *dialect.Relax // what is asked of the provider, because a block was lost; nil: nothing
	pending    *pendingTurn   // that the request goes on with, where it does not say so itself
	promises   promises       // to be kept when the upstream has accepted the request
}

// outcome is what memory did; nil where the request's API is not known.
func (d *decision) outcome() *inject.Outcome {
	if !d.understood {
		return nil
	}
	return &d.plan.Outcome
}

// decide finds out who speaks in which conversation, and what is to be done
// about it. Whatever fails here, the request goes on. It writes nothing but
// through the parts of r.memory and the decider's own.
func (s *decider) decide(r *request) (d decision) {
	if r.route.dialect == nil {
		return d
	}
	d.understood, d.arrived = true, time.Now()
	if r.memory.Generation != nil {
		d.generation = r.memory.Generation()
	}
	defer func() {
		if p := recover(); p != nil {
			wire.LogPanic(s.log, "memory", p)
			d.plan = inject.Plan{Outcome: inject.Outcome{Status: inject.StatusError}}
		}
		d.plan.Outcome.Took = time.Since(d.arrived)
	}()
	until := d.arrived.Add(r.memory.Timeout) // the request waits no longer for memory
	if no := s.parse(r, until); no != nil {
		d.refuse(no)
		return d
	}
	d.subagent = r.conv.Signals(r.head)
	d.caller = r.identify()
	if no := s.stranger(r, &d.caller); no != nil {
		d.refuse(no)
		return d
	}
	ctx := deadline.New(s.base, until)
	defer ctx.Stop()
	d.promises = promised(ctx, r.memory, &d.caller)
	who := d.caller.Who

	d.at = stated(r, &who)
	d.held = r.held.of(&d.at, r.says.Codex())
	if who.Session == "" && d.held != nil {
		who.Session = d.held.session
	}
	if d.chained = who.Session == ""; d.chained {
		who.Session = s.referred(ctx, r, &d.at)
	}
	if session := s.transcribed(ctx, r, &d.at); who.Session == "" {
		who.Session = session
	}
	d.at = s.locate(r, d.at, who.Session, d.held)
	if r.conv.Last < 0 {
		s.continued(r, &d)
		return d
	}
	d.project = s.workspaceOf(r, &d.at, d.chained)
	who.Workspace = d.project.key
	r.chain = s.hasher.Chain(&r.conv, d.at.root, r.chain[:0])
	if !r.conv.InTime() { // or where it takes place was not found in time
		o, _ := inject.Stopped(&r.conv)
		d.refuse(&refusal{Outcome: o})
		return d
	}
	s.memo.Keep(&r.conv, d.at.root, r.chain, &r.known)
	first := false
	if who.Session == "" {
		who.Session, first = s.session(ctx, r, &d.at)
		d.project.unknown = d.project.unknown || first && unplaced(r, &d.at, true)
	}
	if s.known.isChore(sessionOf{d.at.base, who.Session}, &r.conv, r.chain) {
		r.conv.Infer()
	}
	d.who = who
	d.plan = r.memory.Planner.Plan(&r.conv, r.chain, who, first, s.mode(r, &d, until))
	s.adjust(r, &d)
	return d
}

// note notes where the session takes place, and that its turn is being answered.
func (s *decider) note(r *request, d *decision) {
	s.keepPlace(r, d)
	if d.who.Session != "" && r.conv.Kind == dialect.KindTurn && !d.subagent {
		s.known.turn(sessionOf{d.at.base, d.who.Session}, &r.conv)
	}
	if d.plan.Turn != "" && d.pending == nil {
		r.memory.Begin(d.plan.Turn)
	}
}

// refuse ends a decision with why there is no memory.
func (d *decision) refuse(no *refusal) { d.plan, d.why = inject.Plan{Outcome: no.Outcome}, no.why }

// continued decides about a request that holds nothing of a person: it may go on
// with a turn whose beginning the provider holds.
func (s *decider) continued(r *request, d *decision) {
	d.refuse(skipped(inject.ReasonNoUserMessage))
	if d.pending = r.continues(&d.at); d.pending != nil {
		d.plan.Turn, d.plan.Write = d.pending.turn.ID, d.pending.turn.Targets
	}
}

// ofTheSearch are the reasons that tell what a search came to.
var ofTheSearch = []inject.Reason{inject.ReasonNone, inject.ReasonNothing, inject.ReasonWeak, inject.ReasonVisible, inject.ReasonRoutine}

// adjust is what follows from a plan.
func (s *decider) adjust(r *request, d *decision) {
	if d.subagent && slices.Contains(ofTheSearch, d.plan.Outcome.Reason) {
		d.plan.Outcome.Reason = inject.ReasonSubagent // which is why its turns are not kept
	}
	if d.plan.Forgotten && r.memory.DropThinking {
		d.plan.Inserts, d.relax = r.route.dialect.Info().Relax.Among(d.plan.Inserts, r.text())
	}
	if r.memory.Stated != nil && d.plan.Turn != "" && len(d.plan.Write) > 0 && r.conv.Kind == dialect.KindTurn && r.conv.Sure(r.conv.Last) {
		o := &d.plan.Outcome
		d.promises.stated, o.Refused, o.Unscoped = r.memory.Stated(d.who, d.plan.Generation, string(r.conv.Text(r.conv.Last)))
	}
}
