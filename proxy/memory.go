package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/contain"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Planner decides what is inserted into a request. It must not block longer
// than the recall timeout, nor keep the conversation.
type Planner interface {
	Plan(c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode inject.Mode) inject.Plan

	// Sure are those of a plan's unseen turns that are to be kept. It may wait.
	Sure(ctx context.Context, turns []inject.Unseen) ([]inject.Unseen, error)

	// Remember takes a finished turn of a generation, and what
	// Conversation.Work says was done in it, into its session's short-term
	// memory. It may wait.
	Remember(who graphiti.Who, generation int64, work []byte, said, answered string)

	// Prefetch prepares the next recall of a session. It does not wait.
	Prefetch(who graphiti.Who, generation int64, said, answered string)
}

// Sessions knows which session a conversation belongs to, by fingerprints of
// its beginning.
type Sessions interface {
	// Pending finds the first of some conversations that has no answer yet.
	Pending(ctx context.Context, fingerprints ...[16]byte) (session string, ok bool)
	SetPending(ctx context.Context, fingerprint [16]byte, session string)
	EndPending(fingerprint [16]byte)

	// Find returns the session of the first fingerprint that is known.
	Find(ctx context.Context, fingerprints [][16]byte) (session string, ok bool, err error)
	Put(ctx context.Context, fingerprint [16]byte, session string) error
	PutLater(fingerprint [16]byte, session string) // does not wait
}

// Memory is what the proxy needs in order to remember. Without a Planner it
// forwards, and says Off for the reason.
type Memory struct {
	Planner  Planner
	Sessions Sessions
	Watcher  *capture.Watcher
	Keep     func(context.Context, ledger.Turn) error
	CutOff   func(context.Context, ledger.Turn) error     // notes that an answer came to no clean end
	Kept     func(turn string, in []graphiti.Target) bool // whether a turn was recorded not long ago in all of those
	Begin    func(turn string)                            // says that the turn is being answered here
	Known    func(turn [16]byte) bool                     // whether it is, was, or has been recorded
	Open     *capture.Idle                                // the turns whose end is waited for
	Identity identity.Settings
	Rules    Rules
	Recall   bool
	Ingest   bool
	Note     Note

	Backfill func(capture.History) // records what was said before; must not block

	// Generation is how often something was forgotten. A request reads it once,
	// and whatever is written for it carries it. nil: nothing ever is.
	Generation func() int64

	// Directives finds, in what a person wrote, what is to be kept as it
	// stands, and counts what is refused, and what is for a scope that there is
	// not. nil: that is not wanted.
	Directives func(who graphiti.Who, generation int64, text string) (list []ledger.Turn, refused, unscoped int)

	// Later keeps turns whatever becomes of the request, and must not block. It
	// reports whether there is room for them.
	Later func([]ledger.Turn) bool

	// Tenants says whose credentials were accepted; nil: nobody asks.
	Tenants Tenants

	// DropThinking lets Anthropic drop thoughts that are bound to a block that
	// was forgotten.
	DropThinking bool

	Off inject.Reason // why there is no Planner; may be empty

	// Missed is called for each turn of a person that goes by without a Planner.
	// It must not block. May be nil.
	Missed func()

	// Timeout is the most that a request waits for memory.
	Timeout time.Duration
}

// Note says what else is noted with a turn.
type Note struct{ Git, Tools bool }

// remembered is what is known about a call whose dialect is understood.
type remembered struct {
	header     bool // the answer says what memory did
	outcome    inject.Outcome
	who        graphiti.Who
	place      project
	subagent   bool
	chained    bool // the session was found by, or begins, a chain
	said       time.Time
	generation int64          // as it was when the request arrived
	until      time.Time      // the request waits no longer for memory
	relaxed    *dialect.Relax // what is asked of the provider, because a block was lost; nil: nothing
	at         where
	barred     *inject.Outcome // nothing of the body was to be read, and why; nil: it was
	copied     int             // bytes of the body that are kept for the turn's end
	round      *ending         // of the turn that the request goes on with, where it does not say so itself
	promises   promises        // accept.go: to be kept when the upstream has accepted the request
}

// remember finds out who speaks in which conversation, and what is to be done
// about it. Whatever fails here, the request goes on.
func (s *Server) remember(c *call) (plan inject.Plan) {
	if c.route.dialect == nil {
		return plan
	}
	c.mem.header, c.mem.said = true, time.Now()
	c.mem.until = c.mem.said.Add(c.memory.Timeout)
	if c.memory.Generation != nil {
		c.mem.generation = c.memory.Generation()
	}
	defer func() {
		if r := recover(); r != nil {
			contain.Log(s.log, "memory", r)
			plan = inject.Plan{Outcome: inject.Outcome{Status: inject.StatusError}}
		}
		plan.Outcome.Took = time.Since(c.mem.said)
		c.mem.outcome = plan.Outcome
		s.metrics.recall(&plan.Outcome)
		s.metrics.planned(&plan)
	}()
	h := c.head
	skip := func(status inject.Status, reason inject.Reason) inject.Plan {
		return inject.Plan{Outcome: inject.Outcome{Status: status, Reason: reason}}
	}
	switch {
	case c.mem.barred != nil:
		if c.memory.Planner == nil {
			s.missed(c)
		}
		return skip(c.mem.barred.Status, c.mem.barred.Reason)
	case c.body.Busy:
		return skip(inject.StatusSkipped, inject.ReasonBusy)
	case !c.body.Whole:
		return skip(inject.StatusSkipped, inject.ReasonTooLarge)
	}
	if o, ok := s.read(c); !ok {
		return inject.Plan{Outcome: o}
	}
	c.mem.subagent = signals(h, &c.conv)
	caller := c.memory.Identity.Identify(&c.says, h, &c.conv)
	switch {
	case caller.Contradicts:
		return skip(inject.StatusOff, inject.ReasonUntrusted)
	case !caller.Known:
		return skip(inject.StatusOff, inject.ReasonNone)
	case caller.Foreign:
		s.warnForeign(h)
		return skip(inject.StatusOff, inject.ReasonUntrusted)
	}
	c.mem.promises = s.promised(c, &caller)
	who := &caller.Who
	c.mem.at = stated(c, who)
	if c.held != nil && !c.held.goesOn(&c.mem.at, c.says.Codex()) {
		c.held = nil
	}
	if c.held != nil && who.Session == "" {
		who.Session = c.held.session
	}
	ctx, cancel := context.WithDeadline(s.base, c.mem.until)
	defer cancel()
	if who.Session == "" {
		c.mem.chained = true
		who.Session, _ = s.referred(ctx, c)
	}
	s.locate(c, who)
	if c.conv.Last < 0 {
		plan = skip(inject.StatusSkipped, inject.ReasonNoUserMessage)
		if c.mem.round = s.rounds.of(&c.conv, &c.mem.at); c.mem.round != nil { // rounds.go
			plan.Turn, plan.Write = c.mem.round.turn.ID, c.mem.round.turn.Targets
		}
		return plan
	}
	c.mem.place = s.workspaceOf(c)
	who.Workspace = c.mem.place.key
	c.chain = s.hasher.Chain(&c.conv, c.mem.at.root, c.chain[:0])
	if !c.conv.InTime() { // or where it takes place was not found in time
		o, _ := inject.Stopped(&c.conv)
		return inject.Plan{Outcome: o}
	}
	first := false
	if who.Session == "" {
		who.Session, first = s.session(ctx, c)
		c.mem.place.unknown = c.mem.place.unknown || first && c.summaryOfWhere()
	}
	s.places.keep(c, who.Session)
	c.mem.who = *who
	plan = c.memory.Planner.Plan(&c.conv, c.chain, *who, first, s.mode(c, &caller))
	if plan.Turn != "" {
		c.memory.Begin(plan.Turn)
	}
	if c.mem.subagent && plan.Outcome.Reason == inject.ReasonNone {
		plan.Outcome.Reason = inject.ReasonSubagent // which is why its turns are not kept
	}
	if plan.Forgotten && c.memory.DropThinking {
		s.relax(c, &plan)
	}
	if c.memory.Directives != nil && plan.Turn != "" && len(plan.Write) > 0 && c.conv.Kind == dialect.KindTurn {
		c.mem.promises.directives, plan.Outcome.Refused, plan.Outcome.Unscoped = c.memory.Directives(*who, plan.Generation, string(c.conv.Text(c.conv.Last)))
	}
	return plan
}

// relax asks the provider to take a conversation that has lost a block, where
// the API has a way to.
func (s *Server) relax(c *call, plan *inject.Plan) {
	relax := c.route.dialect.Info().Relax
	if relax == nil {
		return
	}
	insert, ok := relax.Insert(c.text())
	if !ok {
		return
	}
	at, _ := slices.BinarySearchFunc(plan.Inserts, insert.At+1, func(in dialect.Insert, at int) int { return in.At - at })
	plan.Inserts = slices.Insert(slices.Clone(plan.Inserts), at, insert)
	c.mem.relaxed = relax
}

// read reads the body. It reports false, and why, when that is not understood,
// or takes more memory or time than there is.
func (s *Server) read(c *call) (o inject.Outcome, ok bool) {
	encoding := c.head.Peek(fasthttp.HeaderContentEncoding)
	if len(encoding) > 0 && !wire.FieldIs(encoding, "identity") {
		if o, ok = s.decodeBody(c, encoding); !ok {
			return o, false
		}
	}
	c.conv.Limit(dialect.Limits{Messages: s.way().limits.Messages, Until: c.mem.until, Room: c.share.Grow})
	if c.route.dialect.Parse(c.text(), &c.conv) {
		if c.conv.Model == nil {
			c.conv.Model = c.route.match.Model
		}
		return o, true
	}
	if o, ok = inject.Stopped(&c.conv); !ok {
		o.Status = inject.StatusSkipped
	}
	return o, false
}

// missed counts a turn that memory is off for. What was not read whole, or is
// compressed, counts as one.
func (s *Server) missed(c *call) {
	if c.memory.Missed == nil {
		return
	}
	// No more than copiedBody is there, which takes next to no time.
	c.conv.Limit(dialect.Limits{Messages: s.way().limits.Messages, Room: c.share.Grow})
	if c.body.Whole && len(c.head.Peek(fasthttp.HeaderContentEncoding)) == 0 {
		read := c.route.dialect.Parse(c.text(), &c.conv)
		if _, stopped := inject.Stopped(&c.conv); !stopped && (!read || c.conv.Last < 0 || c.conv.Kind != dialect.KindTurn) {
			return
		}
	}
	c.memory.Missed()
}

// mode is what configuration, person, place and client allow.
func (s *Server) mode(c *call, caller *identity.Caller) inject.Mode {
	h := c.head
	m := inject.Mode{
		Until: c.mem.until, Generation: c.mem.generation, Recall: c.memory.Recall, Nobody: c.mem.promises.stranger,
		Ingest: c.memory.Ingest && !caller.Temporary && !c.mem.subagent, Replay: c.route.replays(),
	}
	if caller.Off || c.mem.place.Repo.Ignore || c.memory.Rules.skips(h.RequestURI(), c.conv.Model) {
		return inject.Mode{Until: c.mem.until, Generation: c.mem.generation, Reason: inject.ReasonOptOut}
	}
	if reason := c.memory.Rules.refuses(&c.mem.place); reason != inject.ReasonNone {
		return inject.Mode{Until: c.mem.until, Generation: c.mem.generation, Reason: reason}
	}
	for _, v := range h.PeekAll(memoryHeader) {
		for word := range bytes.SplitSeq(v, []byte{','}) {
			switch strings.ToLower(string(bytes.TrimSpace(word))) {
			case "", "on":
			case "recall":
				m.Ingest = false
			case "ingest":
				m.Recall, m.Reason = false, inject.ReasonOptOut
			default: // off, and what may be meant so
				return inject.Mode{Until: c.mem.until, Generation: c.mem.generation, Reason: inject.ReasonOptOut}
			}
		}
	}
	return m
}

// session finds the session of a conversation that has no id, by where it takes
// place and what was said in it: after a turn it is known how the next request
// must begin. first says that the conversation begins with this request.
func (s *Server) session(ctx context.Context, c *call) (session string, first bool) {
	last := [16]byte(c.chain[c.conv.Last])
	if id, ok := s.pending(ctx, c, last); ok {
		return id, false
	}
	// An answer ends each beginning that was remembered; the newest first.
	var answered [][16]byte
	for i := range c.conv.Answers {
		if f := [16]byte(c.chain[i]); len(answered) == 0 || answered[len(answered)-1] != f {
			answered = append(answered, f)
		}
	}
	if id, ok := s.answered(ctx, c, answered); ok {
		return id, false
	}
	// An earlier turn whose answer was never seen to its end: the client may
	// have kept a part of it.
	var asked [][16]byte
	for i := c.conv.Last - 1; i >= 0; i-- {
		if c.conv.Messages[i].Person {
			asked = append(asked, c.chain[i])
		}
	}
	if id, ok := s.pending(ctx, c, asked...); ok {
		return id, false
	}
	// The beginning may have been cut off, the message too that the first answer
	// left belongs to. Known here is what the model has answered, in this place:
	// a greeting that a client writes itself is not.
	for i := c.conv.Last - 1; i >= 0; i-- {
		if c.conv.Messages[i].Role != dialect.RoleAssistant {
			continue
		}
		if text := c.conv.Text(i); len(text) >= telling {
			if id, ok := s.answered(ctx, c, [][16]byte{c.mem.at.here.Link(dialect.RoleAssistant, text)}); ok {
				return id, false
			}
			break
		}
	}
	// The answer may have ended between the two questions: a turn is pending
	// until its answer is known.
	if id, ok := s.answered(ctx, c, answered); ok {
		return id, false
	}
	session = "session:" + rand.Text()
	if len(answered) > 0 {
		// Other replicas that know nothing of it come to the same.
		session = "session:" + hex.EncodeToString(answered[len(answered)-1][:])
	}
	c.memory.Sessions.SetPending(ctx, last, session)
	if len(answered) > 0 {
		// The same history again, with this message or another, is the same
		// conversation, though nothing of it was seen.
		c.memory.Sessions.PutLater(answered[0], session)
	}
	return session, true
}

// pending finds the session of the first conversation that has no answer yet.
func (s *Server) pending(ctx context.Context, c *call, fingerprints ...[16]byte) (session string, ok bool) {
	return c.memory.Sessions.Pending(ctx, fingerprints...)
}

// answered finds the session in which one of those answers ended.
func (s *Server) answered(ctx context.Context, c *call, fingerprints [][16]byte) (session string, ok bool) {
	if len(fingerprints) == 0 {
		return "", false
	}
	session, ok, err := c.memory.Sessions.Find(ctx, fingerprints)
	if err != nil {
		s.log.Warn("a session cannot be looked up", "error", err)
	}
	return session, ok
}
