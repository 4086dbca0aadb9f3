package inject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/singleflight"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// Mode says what may be done for one request.
type Mode struct {
	Recall bool
	Ingest bool
	Replay bool   // nothing is decided: only what was is repeated
	Nobody bool   // nobody's memory is searched: nothing is found
	Reason Reason // why not, where something is off

	// Beside is the kind of a request that reads like a turn but, judging by its
	// session, is not one.
	Beside dialect.Kind

	// Generation is how often something was forgotten when the request
	// arrived. What is written for it carries that number.
	Generation int64
}

// Plan is what is to be done with one request.
type Plan struct {
	Inserts []dialect.Insert
	Outcome Outcome

	// Searched are the lookups that the newest turn took; none where
	// nothing new was decided.
	Searched []Searched

	// Forgotten says that the conversation has lost a block, so that what the
	// provider saw of it before is not its beginning any more.
	Forgotten bool

	// Turn is the id of the turn that the request belongs to, stable over
	// retries, tool rounds, restarts and replicas; empty when it is of none.
	Turn       string
	Generation int64             // of its first request
	Recall     bool              // the next turn may be prepared for
	Write      []graphiti.Target // the groups that the turn is to be kept in

	// Unseen are those of the newest earlier turns, in their order, of which
	// this process knows nothing: the conversation went on elsewhere, or
	// before a restart that may have come between an answer and its keeping.
	Unseen []Unseen
}

// Unseen is an earlier turn that may not have been kept.
type Unseen struct {
	Turn       TurnKey
	Message    int   // what the person said
	Generation int64 // of its first request, or of one behind it

	back  int  // how many turns before the newest
	doubt bool // whether it was to be kept was not to be known in time
}

// Redact takes credentials out of a text, before it is kept or asked for. It
// gives up at a time, when there is one; then there is no text.
type Redact func(text string, by time.Time) (redacted string, ok bool)

// Services are what a Memory works with. They stay what they are; what is nil does
// nothing.
type Services struct {
	Search    Searcher
	Facts     FactCache
	Decisions Decisions
	Snapshots Snapshots // short-term memory
	Opening   Opening   // what conversations begin with
	Redact    Redact
	Memo      *memo.Memo // what is known of the sessions of the moment
	Log       *slog.Logger
}

// Groups are those of a caller.
type Groups interface {
	Reads(w graphiti.Who, about bool) []graphiti.Target // to search, in order of preference
	Writes(w graphiti.Who) []graphiti.Target
}

// Settings control decisions.
type Settings struct {
	Timeout    time.Duration // the most that a request may wait, storing included
	Background time.Duration // for a search that goes on behind the request
	MaxFacts   int           // of a block
	Asked      int           // of a search, in each group
	MaxChars   int           // of a block, in characters
	StaleAfter time.Duration // facts older than this are marked
	Guard      Guard         // of facts that read like instructions
	MinScore   float64       // strength that one of the facts found must have, from 0 to 1; 0: none
	Drift      float64       // likeness of what is found to what is visible from which nothing new is shown; 0: never
	Share      float64       // of the model's context window, in characters, that a block may take; 0: MaxChars counts alone
	Window     int           // of models that are not known, in tokens
	NoWait     bool          // a request does not wait for a search
	CardChars  int           // of the card, in characters; 0: none
	Resume     time.Duration // how long ago the last conversation may be to be mentioned in a new one; 0: it never is
	Prefetch   bool          // after each turn, for the next one
	Similar    float64       // likeness of a question's terms to those of what was looked up after the turn before from which that answers at once
	Compaction bool          // who summarises a conversation is told what is known
	Unseen     int           // most earlier turns in Plan.Unseen that nobody knew
}

// options are what is in force.
type options struct {
	*Services
	Groups
	Settings
}

// Memory decides what is inserted into requests. It is safe for concurrent
// use.
type Memory struct {
	o      atomic.Pointer[options]
	base   context.Context // of searches that outlive their request
	cancel context.CancelFunc

	flights singleflight.Group // searches under way
	times   times              // of searches
	warming chan struct{}      // holds a token for each prefetch under way

	mu      sync.Mutex // guards what follows
	closed  bool
	running sync.WaitGroup
}

// New returns a Memory that is ready for use.
func New(s Services, g Groups, set Settings) *Memory {
	m := &Memory{warming: make(chan struct{}, prefetches)}
	m.o.Store(&options{s.orNothing(), g, set})
	m.base, m.cancel = context.WithCancel(context.Background())
	return m
}

// opts are the options in force.
func (m *Memory) opts() *options { return m.o.Load() }

// Set changes how the memory decides, from the next request on.
func (m *Memory) Set(g Groups, set Settings) { m.o.Store(&options{m.opts().Services, g, set}) }

// Close ends the searches that go on in the background and waits for them.
func (m *Memory) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
}

// begin reports whether something may begin that Close is to wait for. It ends
// with running.Done.
func (m *Memory) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.running.Add(1)
	return true
}

// Plan decides about one request: which blocks are repeated, and what the
// newest turn gets. chain holds the conversation's fingerprints, and first
// says that the session was unknown until now, so that nothing can have been
// decided about it. Whatever goes wrong, a plan comes back when ctx ends, or within
// the timeout where that has no deadline.
func (m *Memory) Plan(ctx context.Context, c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode Mode) (p Plan) {
	start := time.Now()
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("recall panicked", "error", fmt.Sprint(r))
			p = Plan{Outcome: Outcome{Status: StatusError}}
		}
		p.Outcome.Took = time.Since(start)
	}()
	if c.Last < 0 {
		return Plan{Outcome: Outcome{Status: StatusSkipped, Reason: ReasonNoUserMessage}}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, start.Add(m.opts().Timeout))
		defer cancel()
	}
	until, _ := ctx.Deadline()
	// Storing what is found is given the last moment.
	t := turn{c: c, kind: cmp.Or(c.Kind, mode.Beside), lists: pooled.Get().(*lists), first: first, guest: !mode.Ingest, generation: mode.Generation, until: until, deadline: until.Add(graphiti.SearchTime(m.opts().Timeout) - m.opts().Timeout)}
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
			p.Write = m.opts().Writes(who)
			p.Unseen = t.unseen(m.opts().Unseen)
		}
	}
	if t.kind == dialect.KindSummary && c.Newest >= c.Last {
		return m.summary(&t, who, mode, p)
	}
	p.Outcome = m.decide(&t, who, mode)
	p.Searched = t.looks
	if t.decision == nil {
		return p
	}
	if t.decision.Block != "" {
		m.show(&t, who)
		p.Inserts = append(p.Inserts, c.Insert(c.Last, t.decision.Block))
	}
	if p.Turn != "" {
		p.Generation = t.decision.Generation
	}
	return p
}

// recall searches for the newest turn and makes a block of what was found.
func (m *Memory) recall(t *turn, who graphiti.Who, query string) (Decision, Outcome) {
	query, ok := m.question(query, t.deadline)
	if !ok {
		return Decision{}, Outcome{Status: StatusTimeout}
	}
	reads := m.opts().Reads(who, words.Personal(string(cut(t.c.Text(t.c.Last), maxQuery))))
	for _, r := range reads {
		t.groups = append(t.groups, r.Group)
	}
	weighed := t.own == (TurnKey{}) && m.opts().MinScore > 0 // what a whole conversation is about is no question
	before := m.opening(t, who)
	weighs := m.opts().Search.Weighs()
	if said := t.c.Text(t.c.Last); weighed && !asks(said) && (weighs || !asksBriefly(said)) {
		return alone(before, StatusEmpty, ReasonRoutine)
	}
	facts, atOnce := m.prepared(t.sessionID(who), query, t.generation, reads)
	deadline := t.deadline
	if atOnce || m.opts().NoWait {
		deadline = time.Time{} // what is not cached is looked up behind
	}
	found, looks, source, err := m.search(query, t.generation, reads, deadline)
	t.looks = looks
	missed := StatusError // what it comes to where nothing else is known
	if errors.Is(err, context.DeadlineExceeded) {
		missed = StatusTimeout
	}
	switch {
	case err != nil && facts == nil:
		return alone(before, missed, ReasonNone)
	case err != nil && atOnce:
		found, source = facts, SourceCache
	case err != nil:
		found, source = facts, SourceStale
	}
	ch := m.chooser(t)
	opened, _ := formatBlock(before)
	ch.opening = linesIn([]string{opened})
	if !weighed {
		ch.minScore = 0
	}
	if !weighs {
		ch.elsewhere = otherSubjectOf(query)
	}
	ch.count -= len(before)
	for _, l := range before {
		ch.max -= utf8.RuneCountInString(l) + len("- \n")
	}
	all := ch.choose(scoped(reads, found))
	chosen := lines(all)
	if source == SourceStale && err != nil && len(chosen) == 0 { // what was prepared does not answer
		return alone(before, missed, ReasonNone)
	}
	return show(append(before, chosen...), source, silence(all))
}

// alone decides to show what is known without a search: no search was needed, or it
// failed.
func alone(lines []string, status Status, why Reason) (d Decision, o Outcome) {
	d, o = show(lines, SourceLive, why)
	if len(lines) == 0 {
		o.Source = ""
	}
	if status != StatusEmpty {
		o.Status = status
	}
	return d, o
}

// show decides to show lines; why says why there are none.
func show(lines []string, source Source, why Reason) (d Decision, o Outcome) {
	d.Block, d.Facts = formatBlock(lines)
	if o = outcomeOf(&d, source); d.Block == "" {
		o.Reason = why
	}
	return d, o
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
		case Unneeded:
		default:
			if why == ReasonNothing {
				why = ReasonWeak
			}
		}
	}
	return why
}

// Choose decides about the facts that were found for a text as it would in a
// conversation that begins with it. least is the strength that one of them must have.
func (m *Memory) Choose(text string, found []Scoped) (all []Candidate, least float64) {
	ch := m.chooser(&turn{c: &dialect.Conversation{}, lists: new(lists)})
	all = ch.choose(found)
	if ch.minScore > 0 && !asks([]byte(text)) {
		dismiss(all, Weak)
	}
	return all, ch.minScore
}

func (m *Memory) chooser(t *turn) *chooser {
	return &chooser{
		now: time.Now(), staleAfter: m.opts().StaleAfter, ownTurns: t.episodes(), visible: linesIn(t.blocks()),
		guard: m.opts().Guard, minScore: m.opts().MinScore, drift: m.opts().Drift, count: m.opts().MaxFacts, max: m.opts().room(t),
	}
}

func scoped(reads []graphiti.Target, found [][]graphiti.Fact) []Scoped {
	out := make([]Scoped, len(found))
	for i := range found {
		out[i] = Scoped{reads[i].Scope, found[i]}
	}
	return out
}
