package inject

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Decision is what was decided about a turn: the block that stands before its
// message in every request, or none.
type Decision struct {
	Block  string // empty: none
	Facts  int
	Unkept bool // the turn was not to be kept, and never is
}

// stored is how the number of facts is stored: below zero for a turn that is
// not to be kept.
func (d Decision) stored() int {
	if d.Unkept {
		return -1 - d.Facts
	}
	return d.Facts
}

// forgotten reports whether there was a block that was emptied, because what it
// showed was to be forgotten.
func (d Decision) forgotten() bool { return d.Block == "" && d.Facts > 0 }

func decision(block string, stored int) Decision {
	if stored < 0 {
		return Decision{block, -1 - stored, true}
	}
	return Decision{block, stored, false}
}

// Blocks keeps decisions over the life of a conversation, restarts included.
// Implementations do not retain the slices.
type Blocks interface {
	// Lookup calls found, before it returns, for each key about which there is
	// a decision, with when the request came in for which it was made. It
	// answers from memory where it can.
	Lookup(ctx context.Context, keys [][16]byte, found func(i int, block string, facts int, since time.Time)) error

	// Blank empties the block of a decision.
	Blank(key [16]byte) error

	// Keep stores a decision and returns the one in force, which is an earlier
	// one where there was one, and shows nothing where one of the groups was
	// forgotten since the request came in. It is stored when Keep returns.
	Keep(ctx context.Context, key [16]byte, block string, facts int, since time.Time, groups ...string) (string, int, error)
}

// Mode says what may be done for one request.
type Mode struct {
	Recall bool
	Ingest bool
	Replay bool   // nothing is decided: only what was is repeated
	Nobody bool   // nobody's memory is searched: nothing is found
	Reason Reason // why not, where something is off

	// Until is when a request must go on, with or without memory. Zero: after
	// Options.Timeout.
	Until time.Time
}

// storing is the part of a request's time, one of so many, that is left for
// storing what was decided.
const storing = 8

// Plan is what is to be done with one request.
type Plan struct {
	Inserts []dialect.Insert
	Outcome Outcome

	// Searched are the looks for facts that the newest turn took; none where
	// nothing new was decided.
	Searched []Searched

	// Forgotten says that the conversation has lost a block, so that what the
	// provider saw of it before is not its beginning any more.
	Forgotten bool

	// Turn is the id of the turn that the request belongs to, stable over
	// retries, tool rounds, restarts and replicas; empty when it is of none.
	Turn   string
	Since  time.Time         // when its first request came in; zero: this is it
	Recall bool              // the next turn may be prepared for
	Write  []graphiti.Target // the groups that the turn is to be kept in

	// Unseen are those of the newest earlier turns, in their order, of which
	// this process knows nothing: the conversation went on elsewhere, or
	// before a restart that may have come between an answer and its keeping.
	Unseen []Unseen
}

// Unseen is an earlier turn that may not have been kept.
type Unseen struct {
	Turn    Key
	Message int       // what the person said
	Since   time.Time // when its first request came in; zero: there was none

	back  int  // how many turns before the newest
	doubt bool // whether it was to be kept was not to be known in time
}

// Redact takes credentials out of a text, before it is kept or asked for. It
// gives up at a time, when there is one; then there is no text.
type Redact func(text string, by time.Time) (redacted string, ok bool)

// Options configures a Memory. All fields are required.
type Options struct {
	Search Searcher
	Facts  FactCache
	Blocks Blocks
	Reads  func(w graphiti.Who, about bool) []graphiti.Target // the groups to search, in order of preference
	Writes func(graphiti.Who) []graphiti.Target

	Timeout    time.Duration // the most that a request may wait, storing included
	Background time.Duration // for a search that goes on behind the request
	MaxFacts   int
	MaxChars   int           // of a block, in characters
	StaleAfter time.Duration // facts older than this are marked
	Guard      Guard         // of facts that read like instructions
	Drift      float64       // likeness of what is found to what is visible from which nothing new is shown; 0: never
	Share      float64       // of the model's context window, in characters, that a block may take; 0: MaxChars counts alone
	Snapshots  Snapshots     // short-term memory; nil: none
	Redact     Redact        // nil: nothing is taken out
	Prefetch   bool          // after each turn, for the next one
	Compaction bool          // who summarises a conversation is told what is known
	Unseen     int           // most earlier turns in Plan.Unseen that nobody knew
	Log        *slog.Logger
}

// Memory decides what is inserted into requests. It is safe for concurrent
// use.
type Memory struct {
	o      atomic.Pointer[Options]
	base   context.Context // of searches that outlive their request
	cancel context.CancelFunc

	warm warmed

	// forgets counts how often something was forgotten: what was found before
	// must not be shown after.
	forgets atomic.Int64
	forget  sync.Mutex // for Forgot
	plans   epochs

	mu      sync.Mutex // guards what follows
	flights map[flightKey]*flight
	closed  bool
	running sync.WaitGroup
}

// New returns a Memory that is ready for use.
func New(o Options) *Memory {
	m := &Memory{flights: make(map[flightKey]*flight)}
	m.o.Store(&o)
	m.base, m.cancel = context.WithCancel(context.Background())
	return m
}

// opts are the options in force.
func (m *Memory) opts() *Options { return m.o.Load() }

// Set changes how the memory decides, from the next request on. Search, Facts,
// Blocks and Snapshots must stay what they are.
func (m *Memory) Set(o Options) { m.o.Store(&o) }

// Close ends the searches that go on in the background and waits for them.
func (m *Memory) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
}

// Plan decides about one request: which blocks are repeated, and what the
// newest turn gets. chain holds the conversation's fingerprints, and first
// says that the session was unknown until now, so that nothing can have been
// decided about it. Whatever goes wrong, a plan comes back within the timeout.
func (m *Memory) Plan(c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode Mode) (p Plan) {
	start := time.Now()
	epoch := m.plans.enter()
	defer func() {
		m.plans.leave(epoch)
		if r := recover(); r != nil {
			m.opts().Log.Error("recall panicked", "error", fmt.Sprint(r))
			p = Plan{Outcome: Outcome{Status: StatusError}}
		}
		p.Outcome.Took = time.Since(start)
	}()
	if c.Last < 0 {
		return Plan{Outcome: Outcome{Status: StatusSkipped, Reason: ReasonNoUserMessage}}
	}
	until := mode.Until
	if until.IsZero() {
		until = start.Add(m.opts().Timeout)
	}
	// Storing what is found is given the last moment.
	t := turn{c: c, first: first, began: start, until: until, deadline: until.Add(-m.opts().Timeout / storing), forgets: m.forgets.Load()}
	t.lookUp(m.opts().Blocks, chain, who.Session, first)
	p.Inserts, p.Forgotten = t.repeated(), t.forgotten()
	if mode.Replay {
		if newest := t.earlier[len(t.earlier)-1]; newest.Block != "" {
			p.Inserts = append(p.Inserts, c.Insert(c.Last, newest.Block))
			p.Outcome = outcomeOf(newest, SourceSticky)
			return p
		}
		p.Outcome = Outcome{Status: StatusEmpty}
		return p
	}
	if c.Kind == dialect.KindTurn {
		p.Turn, p.Since, p.Recall = t.key().String(), t.since[len(t.since)-1], mode.Recall
		if mode.Ingest {
			p.Write = m.opts().Writes(who)
			p.Unseen = t.unseen(m.opts().Unseen)
		}
	}
	if c.Kind == dialect.KindSummary && c.Newest >= c.Last {
		return m.summary(&t, who, mode, p)
	}
	p.Outcome = m.decide(&t, who, mode)
	p.Searched = t.looks
	if t.decision.Block != "" {
		p.Inserts = append(p.Inserts, c.Insert(c.Last, t.decision.Block))
	}
	return p
}

// Forgot says that groups have been emptied: searches under way find nothing
// any more, and what they found is not shown. It returns when the plans that
// were being made are made.
func (m *Memory) Forgot() {
	m.forget.Lock()
	defer m.forget.Unlock()
	m.forgets.Add(1)
	m.mu.Lock()
	clear(m.flights)
	m.mu.Unlock()
	m.warm.clear()
	m.plans.wait(2 * m.opts().Timeout)
}

// decide finds the newest turn's decision: the one that was made, or a new one
// that is stored before it is used.
func (m *Memory) decide(t *turn, who graphiti.Who, mode Mode) Outcome {
	last := len(t.keys) - 1
	switch {
	case t.found[last] && t.earlier[last].Block == "" && t.forgotten():
		return Outcome{Status: StatusOff, Reason: ReasonForgotten}
	case t.found[last]:
		t.decision = t.earlier[last]
		o := outcomeOf(t.decision, SourceSticky)
		if t.decision.Block == "" && !mode.Recall {
			o = Outcome{Status: StatusOff, Reason: mode.Reason}
		}
		return o
	case t.err != nil:
		// What was decided is not known, so nothing new may be: it could not
		// be stored either.
		m.opts().Log.Warn("kept blocks cannot be read", "error", t.err)
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	case t.c.Kind != dialect.KindTurn:
		return Outcome{Status: StatusSkipped, Reason: KindReason(t.c.Kind)}
	}
	var d Decision
	var o Outcome
	switch {
	case !mode.Recall:
		o = Outcome{Status: StatusOff, Reason: mode.Reason}
	case t.forgotten():
		o = Outcome{Status: StatusOff, Reason: ReasonForgotten}
	case mode.Nobody:
		o = Outcome{Status: StatusEmpty}
	case t.c.Answered():
		// A tool round of a turn about which nothing is known: it began
		// without a block, or the state was lost. It goes on without.
		o = Outcome{Status: StatusEmpty}
	default:
		d, o = m.recall(t, who, query(t.c))
	}
	d.Unkept = !mode.Ingest
	return m.keep(t, d, o)
}

// keep stores the decision; one that cannot be stored is not used.
func (m *Memory) keep(t *turn, d Decision, o Outcome) Outcome {
	ctx, cancel := context.WithDeadline(context.Background(), t.until)
	defer cancel()
	if m.forgets.Load() != t.forgets {
		d, o = Decision{Unkept: d.Unkept}, Outcome{Status: StatusEmpty}
	}
	block, facts, err := m.opts().Blocks.Keep(ctx, t.key(), d.Block, d.stored(), t.began, t.groups...)
	if err != nil {
		m.opts().Log.Warn("a block cannot be kept and is not inserted", "error", err)
		if d.Block == "" {
			return o
		}
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	}
	kept := decision(block, facts)
	if kept.Block != "" && m.forgets.Load() != t.forgets { // it may have been kept after the others were emptied
		if err := m.opts().Blocks.Blank(t.key()); err != nil {
			m.opts().Log.Error("a block whose facts were to be forgotten is still kept", "error", err)
		}
		return Outcome{Status: StatusEmpty}
	}
	t.decision = kept
	if kept.Block != d.Block { // a request for the same turn was faster
		return outcomeOf(kept, SourceSticky)
	}
	return o
}

func outcomeOf(d Decision, s Source) Outcome {
	if d.Block == "" {
		return Outcome{Status: StatusEmpty, Source: s}
	}
	return Outcome{Status: StatusRecalled, Facts: d.Facts, Chars: utf8.RuneCountInString(d.Block), Source: s}
}

// recall searches for the newest turn and makes a block of what was found.
func (m *Memory) recall(t *turn, who graphiti.Who, query string) (Decision, Outcome) {
	query, ok := m.question(query, t.deadline)
	if !ok {
		return Decision{}, Outcome{Status: StatusTimeout}
	}
	reads := m.opts().Reads(who, aboutPerson(t.c.Text(t.c.Last)))
	for _, r := range reads {
		t.groups = append(t.groups, r.Group)
	}
	facts, atOnce := m.prepared(snapshotKey(who), query, reads)
	deadline := t.deadline
	if atOnce {
		deadline = time.Time{} // what is not cached is looked up behind
	}
	found, looks, source, err := m.search(query, reads, deadline)
	t.looks = looks
	if err != nil && facts != nil {
		found, source, err = facts, SourceStale, nil
		if atOnce {
			source = SourceCache
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Decision{}, Outcome{Status: StatusTimeout}
	case err != nil:
		return Decision{}, Outcome{Status: StatusError}
	}
	d := Decision{}
	before := m.resumed(t, who)
	ch := m.chooser(t)
	for _, l := range before {
		ch.max -= utf8.RuneCountInString(l) + len("- \n")
	}
	d.Block, d.Facts = formatBlock(append(before, lines(ch.choose(scoped(reads, found)))...))
	return d, outcomeOf(d, source)
}

// Choose decides about facts as it would in a conversation that begins.
func (m *Memory) Choose(found []Scoped) []Candidate {
	return m.chooser(&turn{c: &dialect.Conversation{}}).choose(found)
}

func (m *Memory) chooser(t *turn) *chooser {
	return &chooser{
		now: time.Now(), staleAfter: m.opts().StaleAfter, ownTurns: t.episodes(), visible: visibleIn(t.blocks()),
		guard: m.opts().Guard, drift: m.opts().Drift, count: m.opts().MaxFacts, max: min(m.opts().MaxChars, roomIn(t.c.Model, m.opts().Share)),
	}
}

func scoped(reads []graphiti.Target, found [][]graphiti.Fact) []Scoped {
	out := make([]Scoped, len(found))
	for i := range found {
		out[i] = Scoped{reads[i].Scope, found[i]}
	}
	return out
}
