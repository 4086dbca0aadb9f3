package inject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Mode says what may be done for one request.
type Mode struct {
	Recall bool
	Ingest bool
	Replay bool   // decisions are repeated, and none is made
	Nobody bool   // nobody's memory is searched: nothing is found
	Reason Reason // why Recall is off
	Late   bool   // Recall is off because the project was not found in time

	// Beside is the kind of a request that reads like a turn but, judging by its
	// session, is not one.
	Beside dialect.Kind

	// Generation is the number of forgets when the request arrived. What is written for
	// the request carries it.
	Generation int64
}

// Plan is what is to be done with one request.
type Plan struct {
	Inserts []dialect.Insert
	Outcome Outcome

	// Searched are the searches for the newest turn; empty if nothing new was decided.
	Searched []Searched

	// Decided says that the newest turn was decided about for this request. Other requests
	// of the turn repeat what was decided.
	Decided bool

	// Forgotten says that the conversation has lost a block, so that its beginning is
	// not the one that the provider saw before.
	Forgotten bool

	// Turn is the id of the turn that the request belongs to, stable over retries, tool
	// rounds, restarts and replicas; empty if the request belongs to none.
	Turn       string
	Generation int64             // of its first request
	Recall     bool              // the next turn may be prepared for
	Write      []graphiti.Target // the groups that the turn is to be kept in
	Block      string            // the block of the newest turn; empty: there is none
	open       unanswered        // its decision, while the turn has no answer

	// Unseen are the newest earlier turns that this process does not know, in their
	// order. Either the conversation went on elsewhere, or a restart may have come
	// between an answer and its recording.
	Unseen []Unseen
}

// Unseen is an earlier turn that may not have been kept.
type Unseen struct {
	Turn       TurnKey
	Message    int   // index of what the person said
	Generation int64 // of its first request, or of one behind it

	back  int  // how many turns before the newest
	doubt bool // whether it was to be kept was not to be known in time
}

// Plan decides about one request: which blocks are repeated, and what the newest turn
// gets. chain holds the conversation's fingerprints. first says that the session was
// unknown until now, so that no decision about it can exist. Plan returns a plan
// whatever goes wrong, at the latest when ctx ends; a ctx without a deadline gets the
// timeout of the settings.
func (m *Memory) Plan(ctx context.Context, c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode Mode) (p Plan) {
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("recall panicked", "error", fmt.Sprint(r))
			p = Plan{Outcome: Outcome{Status: StatusError}}
		}
	}()
	if c.Last < 0 {
		return Plan{Outcome: Outcome{Status: StatusSkipped, Reason: ReasonNoUserMessage}}
	}
	o := m.opts()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	until, _ := ctx.Deadline()
	// Storing what is found is given the last moment.
	t := turn{c: c, kind: cmp.Or(c.Kind, mode.Beside), lists: pooled.Get().(*lists), first: first, o: o, mode: mode, until: until, deadline: until.Add(graphiti.SearchTime(o.Timeout) - o.Timeout)}
	defer pooled.Put(t.lists)
	m.lookUp(ctx, &t, chain, who)
	p.Generation = mode.Generation
	p.Inserts, p.Forgotten = t.repeated(), t.forgotten()
	if mode.Replay {
		if newest := t.earlier[len(t.earlier)-1]; newest != nil && newest.Block != "" {
			p.Inserts = append(p.Inserts, c.Insert(c.Last, newest.Block))
			p.Outcome = outcomeOf(newest, SourceSticky)
			return p
		}
		p.Outcome = Outcome{Status: StatusEmpty, Reason: ReasonNothing}
		return p
	}
	if t.kind == dialect.KindTurn {
		p.Turn, p.Recall = t.key().String(), mode.Recall
		if mode.Ingest {
			p.Write = t.o.Writes(who)
			p.Unseen = t.unseen()
		}
	}
	if t.kind == dialect.KindSummary && c.Newest >= c.Last {
		return m.summary(&t, who, p)
	}
	p.Outcome = m.decide(&t, who)
	p.Searched, p.Decided = t.looks, t.decided
	if t.decision == nil {
		return p
	}
	if t.decision.Block != "" {
		m.show(&t, who)
		p.Block = t.decision.Block
		block := c.Insert(c.Last, t.decision.Block)
		p.Inserts = append(p.Inserts, block)
		if !c.Answered() {
			p.open = unanswered{t.key(), t.decision, block.At, o.Timeout}
		}
	}
	if p.Turn != "" {
		p.Generation = t.decision.Generation
	}
	return p
}

// decide finds the newest turn's decision: the one that was made, or a new one
// that is stored before it is used.
func (m *Memory) decide(t *turn, who graphiti.Who) Outcome {
	made := t.earlier[len(t.earlier)-1]
	switch {
	case made != nil && made.Block == "" && t.forgotten():
		t.decision = made
		return Outcome{Status: StatusOff, Reason: ReasonForgotten}
	case made != nil && (made.Block != "" || made.Ingest) && t.isOptOut():
		m.optOut(t, made)
		return Outcome{Status: StatusOff, Reason: t.mode.Reason}
	case made != nil:
		t.decision = made
		o := outcomeOf(made, SourceSticky)
		if made.Block == "" && !t.mode.Recall && !t.mode.Late {
			o = Outcome{Status: StatusOff, Reason: t.mode.Reason}
		}
		return o
	case t.err != nil:
		// What was decided is not known, so nothing new may be: it could not
		// be stored either.
		t.o.Log.Warn("decisions cannot be read", "error", t.err)
		t.decided = t.kind == dialect.KindTurn && !t.c.Answered()
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	case t.kind != dialect.KindTurn:
		return Outcome{Status: StatusSkipped, Reason: kindReasons[t.kind]}
	}
	var d Decision
	var o Outcome
	switch {
	case t.mode.Late:
		o = Outcome{Status: StatusTimeout}
	case !t.mode.Recall:
		o = Outcome{Status: StatusOff, Reason: t.mode.Reason}
	case t.forgotten():
		o = Outcome{Status: StatusOff, Reason: ReasonForgotten}
	case t.mode.Nobody:
		o = Outcome{Status: StatusEmpty, Reason: ReasonNobody}
	case t.c.Answered():
		// A tool round of a turn about which nothing is known: it began
		// without a block, or the state was lost. It goes on without.
		o = Outcome{Status: StatusEmpty, Reason: ReasonNothing}
	default:
		d, o = m.recall(t, who, query(t.c, m.opts().Search.Weighs()))
	}
	t.decided = true
	if d.Ingest = t.mode.Ingest; d.Block == "" {
		d.Reason = string(o.Reason)
	}
	return m.keep(t, d, o)
}

// keep stores the decision; one that cannot be stored is not used.
func (m *Memory) keep(t *turn, d Decision, o Outcome) Outcome {
	ctx, cancel := context.WithDeadline(context.Background(), t.until)
	defer cancel()
	d.Generation = t.mode.Generation
	kept, err := t.o.Decisions.Keep(ctx, t.key(), d, t.groups...)
	if err != nil {
		t.o.Log.Warn("a block cannot be kept and is not inserted", "error", err)
		if d.Block == "" {
			return o
		}
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	}
	t.decision = kept
	if kept.Block == d.Block {
		return o
	}
	if kept.Generation == d.Generation && kept.Block == "" { // what was found was forgotten since
		return Outcome{Status: StatusEmpty, Reason: ReasonNothing}
	}
	t.decided = false // a request for the same turn was faster
	return outcomeOf(kept, SourceSticky)
}

func outcomeOf(d *Decision, s Source) Outcome {
	if d.Block == "" {
		return Outcome{Status: StatusEmpty, Source: s, Reason: Reason(d.Reason)}
	}
	return Outcome{Status: StatusRecalled, Facts: d.Facts, Chars: utf8.RuneCountInString(d.Block), Source: s}
}

// recall searches for the newest turn and makes a block of what was found.
func (m *Memory) recall(t *turn, who graphiti.Who, query string) (Decision, Outcome) {
	query, ok := m.question(query, t.deadline)
	if !ok {
		return Decision{}, Outcome{Status: StatusTimeout}
	}
	reads := t.o.Reads(who, words.Personal(string(cut(t.c.Text(t.c.Last), maxQuery))))
	t.reads, t.owner = reads, who.Owner()
	for _, r := range reads {
		t.groups = append(t.groups, r.Group)
	}
	weighed := t.own == (TurnKey{}) && t.o.MinScore > 0 // what a whole conversation is about is no question
	before := m.opening(t, who)
	weighs := m.opts().Search.Weighs()
	if said := t.c.Text(t.c.Last); weighed && !asks(said) && (weighs || !asksBriefly(said)) {
		return t.withoutSearch(before, StatusEmpty, ReasonRoutine)
	}
	facts, atOnce := m.prepared(t.sessionID(who), query, t.mode.Generation, reads)
	deadline := t.deadline
	if atOnce || t.o.NoWait {
		deadline = time.Time{} // what is not cached is looked up behind
	}
	recent := m.said(query, reads, t.deadline)
	found, looks, source, err := m.search(query, t.mode.Generation, reads, deadline)
	t.looks = looks
	missed := StatusError // what it comes to where nothing else is known
	if errors.Is(err, context.DeadlineExceeded) {
		missed = StatusTimeout
	}
	switch {
	case err != nil && facts == nil && count(recent) == 0:
		return t.withoutSearch(before, missed, ReasonNone)
	case err != nil && facts == nil:
	case err != nil && atOnce:
		found, source = facts, SourceCache
	case err != nil:
		found, source = facts, SourceStale
	}
	recent = unlearnt(recent, found)
	ch := chooserOf(t)
	opened, _ := formatBlock(linesOfAll(before))
	ch.opening = linesIn([]string{opened})
	if !weighed {
		ch.minScore = 0
	}
	if !weighs {
		ch.elsewhere = otherSubjectOf(query)
	}
	ch.count -= len(before)
	for i := range before {
		ch.max -= utf8.RuneCountInString(before[i].Line) + len("- \n")
	}
	all := ch.choose(append(scoped(reads, recent), scoped(reads, found)...))
	shown := anyShown(all)
	switch {
	case err != nil && (!atOnce || facts == nil) && !shown: // what was prepared does not answer
		return t.withoutSearch(before, missed, ReasonNone)
	case shown && !anyShown(all[count(recent):]):
		source = SourceLocal
	}
	return t.show(before, all, ch.minScore, source, silence(all))
}

func anyShown(all []Candidate) bool {
	return slices.ContainsFunc(all, func(c Candidate) bool { return c.Verdict == Shown })
}

// withoutSearch decides to show what is known without a search: no search was needed, or
// it failed.
func (t *turn) withoutSearch(opening []Candidate, status Status, why Reason) (d Decision, o Outcome) {
	d, o = t.show(opening, nil, 0, SourceLive, why)
	if len(opening) == 0 {
		o.Source = ""
	}
	if status != StatusEmpty {
		o.Status = status
	}
	return d, o
}

// show decides to show what a block begins with, and behind it those of what was found
// that are to be shown; why says why there is nothing.
func (t *turn) show(opening, found []Candidate, minScore float64, source Source, why Reason) (d Decision, o Outcome) {
	d.Block, d.Facts = formatBlock(append(linesOfAll(opening), lines(found)...))
	d.Pieces = piecesOf(t.owner, opening, found, t.reads, minScore)
	if o = outcomeOf(&d, source); d.Block == "" {
		o.Reason = why
	}
	return d, o
}

// linesOfAll are the lines of what a block begins with.
func linesOfAll(opening []Candidate) (lines []string) {
	for i := range opening {
		lines = append(lines, opening[i].Line)
	}
	return lines
}

// silence says why nothing of what was found is shown.
func silence(all []Candidate) Reason {
	why := ReasonNothing
	for i := range all {
		switch all[i].Verdict {
		case Weak:
			return ReasonWeak
		case Visible, OwnWords, NoDrift:
			why = ReasonVisible
		default:
			if why == ReasonNothing {
				why = ReasonWeak
			}
		}
	}
	return why
}

// Choose decides about the facts that were found for a text, as in a conversation that
// begins with the text. least is the strength that one of the facts must have.
func (m *Memory) Choose(text string, found []Scoped) (all []Candidate, least float64) {
	ch := chooserOf(&turn{c: &dialect.Conversation{}, o: m.opts(), lists: new(lists)})
	all = ch.choose(found)
	if ch.minScore > 0 && !asks([]byte(text)) {
		dismiss(all, Weak)
	}
	return all, ch.minScore
}

func chooserOf(t *turn) *chooser {
	return &chooser{
		now: time.Now(), staleAfter: t.o.StaleAfter, ownTurns: t.episodes(), visible: linesIn(t.blocks()),
		guard: t.o.Guard, minScore: t.o.MinScore, drift: t.o.Drift, count: t.o.MaxFacts, max: t.o.room(t),
	}
}

func scoped(reads []graphiti.Target, found [][]graphiti.Fact) []Scoped {
	out := make([]Scoped, len(found))
	for i := range found {
		out[i] = Scoped{reads[i].Scope, found[i]}
	}
	return out
}
