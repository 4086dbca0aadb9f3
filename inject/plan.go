package inject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Mode limits the effects of memory on one request.
type Mode struct {
	Recall bool
	Ingest bool
	Replay bool   // repeat stored decisions and make no new ones
	Nobody bool   // search no groups
	Silent bool   // the message asks to forget something, so that it recalls nothing
	Asked  bool   // the client asks for memory, so that proof mode does not withhold it
	Reason Reason // why Recall is off
	Cut    bool   // the client has just replaced the history, though the request does not show it

	// Beside is the actual kind of a request that looks like a turn, if its session
	// contradicts that.
	Beside dialect.Kind

	// Unseen is true if a program continues the newest turn, whose earlier requests were not
	// seen here.
	Unseen bool

	// Generation is the forget generation at the request's arrival. Writes for the request
	// carry it.
	Generation int64
}

// Plan holds the blocks, groups and outcome of one request.
type Plan struct {
	Inserts []dialect.Insert
	Outcome Outcome

	// Searched lists the searches for the newest turn. It is empty without a new decision.
	Searched []Searched

	// Decided reports whether this request made the newest turn's decision. Other requests
	// of the turn repeat it.
	Decided bool

	// Forgotten reports whether a forget emptied one of the conversation's blocks, so that
	// the provider's cached prefix no longer matches.
	Forgotten bool

	// Turn is the ID of the request's turn, or "". It is stable over retries, tool rounds,
	// restarts and replicas.
	Turn       string
	Generation int64             // of the turn's first request
	Recall     bool              // note the turn for its session
	Write      []graphiti.Target // groups that store the turn
	Block      string            // block of the newest turn, or ""
	Unanswered Unanswered        // the block of a turn without an answer

	// Unseen lists the newest earlier turns that may not be stored, in order. Another
	// process may have handled them, or a restart may have prevented storing an answer.
	Unseen []Unseen

	// Began is the index of the first message of a person that has a decision, or of the newest.
	// The client put the messages before it.
	Began int
}

// Unseen is an earlier turn that may not be stored.
type Unseen struct {
	Turn       TurnKey
	Message    int   // index of the person's message
	Generation int64 // of the turn's first request, or of a later one
	Waits      bool  // until its conversation continues

	back int // number of turns before the newest, or before the first with a decision
}

// Plan decides which blocks one request repeats and which block its newest turn gets. chain
// holds the conversation's fingerprints. first skips the lookup of decisions, because the
// session is new. Plan handles all failures and returns when ctx ends; without a deadline,
// the timeout of the settings applies.
func (m *Planner) Plan(ctx context.Context, c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode Mode) (p Plan) {
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("recall panicked", "error", fmt.Sprint(r))
			p = Plan{Outcome: Outcome{Status: StatusError}}
		}
	}()
	o := m.opts()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	until, _ := ctx.Deadline()
	// Reserve the end of the timeout for storage: an eighth, but at most 50 ms or a sixteenth,
	// whichever is longer.
	kind := cmp.Or(c.Kind, mode.Beside)
	if mode.Unseen {
		kind = dialect.KindTurn
	}
	t := &turn{c: c, who: who, kind: kind, first: first, o: o, mode: mode, until: until, deadline: until.Add(-min(o.Timeout/8, max(50*time.Millisecond, o.Timeout/16)))}
	m.lookUp(ctx, t, chain, who)
	p.Generation = mode.Generation
	p.Inserts, p.Forgotten = t.repeated(), t.forgotten()
	m.plan(t, who, &p)
	if d := t.resumed; d != nil && d.Block != "" {
		p.insert(c.Insert(t.resumedAt, d.Block))
	}
	return p
}

// insert adds an insert in the order of the body.
func (p *Plan) insert(in dialect.Insert) {
	i := len(p.Inserts)
	for i > 0 && p.Inserts[i-1].At > in.At {
		i--
	}
	p.Inserts = slices.Insert(p.Inserts, i, in)
}

// plan plans the newest turn, or the request about it.
func (m *Planner) plan(t *turn, who graphiti.Who, p *Plan) {
	c, mode := t.c, t.mode
	if mode.Replay {
		p.Outcome = Outcome{Status: StatusEmpty, Reason: ReasonNothing}
		p.repeatNewest(t)
		return
	}
	if t.kind == dialect.KindTurn && c.Last >= 0 {
		p.Turn, p.Recall = t.key().String(), mode.Recall
		if mode.Ingest {
			p.Write = t.o.Writes(who)
			p.Unseen = t.unseen()
			p.Began = t.at[t.began()]
		}
	}
	switch {
	case t.kind == dialect.KindSummary && c.Newest >= c.Last:
		m.summary(t, who, p)
		return
	case (t.kind == dialect.KindTurn || t.kind == dialect.KindMachine) && c.Resumes():
		m.resume(t, who, p)
		return
	case c.Last < 0:
		p.Outcome = Outcome{Status: StatusSkipped, Reason: ReasonNoUserMessage}
		return
	}
	p.Outcome = m.decide(t, who)
	p.Searched, p.Decided = t.looks, t.decided
	if t.decision == nil {
		return
	}
	if t.decision.Block != "" {
		p.Block = t.decision.Block
		block := c.Insert(c.Last, t.decision.Block)
		p.Inserts = append(p.Inserts, block)
		if !c.Answered() {
			p.Unanswered = Unanswered{t.key(), t.decision, block.At, t.o.Timeout}
		}
	}
	if p.Turn != "" {
		p.Generation = t.decision.Generation
	}
}

// repeatNewest repeats the newest turn's block.
func (p *Plan) repeatNewest(t *turn) {
	if d := t.newest(); d != nil && d.Block != "" {
		p.Inserts = append(p.Inserts, t.c.Insert(t.c.Last, d.Block))
		p.Outcome = outcomeOf(d, SourceSticky)
	}
}

// decide returns the outcome of the newest turn. A new decision is stored before use.
func (m *Planner) decide(t *turn, who graphiti.Who) Outcome {
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
		if made.Block == "" && !t.mode.Recall {
			o = Outcome{Status: StatusOff, Reason: t.mode.Reason}
		}
		return o
	case t.err != nil:
		// An earlier decision may exist, and a new one could not be stored either.
		t.o.Log.Warn("read decisions failed", "error", t.err)
		t.decided = t.kind == dialect.KindTurn && !t.c.Answered()
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	case t.kind != dialect.KindTurn:
		return Outcome{Status: StatusSkipped, Reason: kindReasons[t.kind]}
	}
	var d Decision
	var o Outcome
	switch {
	case !t.mode.Recall:
		o = Outcome{Status: StatusOff, Reason: t.mode.Reason}
	case t.forgotten():
		o = Outcome{Status: StatusOff, Reason: ReasonForgotten}
	case t.mode.Nobody:
		o = Outcome{Status: StatusEmpty, Reason: ReasonNobody}
	case t.mode.Silent:
		o = Outcome{Status: StatusEmpty, Reason: ReasonRoutine}
	case t.c.Answered():
		// A tool round without a decision: the turn began without a block, or the state was
		// lost. It continues without a block.
		o = Outcome{Status: StatusEmpty, Reason: ReasonNothing}
	default:
		d, o = m.recall(t, who)
	}
	t.decided = true
	if d.Ingest = t.mode.Ingest; d.Block == "" || o.Reason == ReasonWithheld {
		d.Reason = string(o.Reason)
	}
	o = m.keep(t, d, o)
	if t.decided && t.o.Proof != nil {
		t.prove()
	}
	return o
}

// keep stores a decision. A block that cannot be stored is not used.
func (m *Planner) keep(t *turn, d Decision, o Outcome) Outcome {
	ctx, cancel := context.WithDeadline(context.Background(), t.until)
	defer cancel()
	d.Generation = t.mode.Generation
	kept, err := t.o.Decisions.Keep(ctx, t.key(), d, t.groups...)
	if err != nil {
		t.o.Log.Warn("store block failed, not inserted", "error", err)
		if d.Block == "" {
			return o
		}
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	}
	t.decision = kept
	if kept.Block == d.Block {
		return o
	}
	if kept.Generation == d.Generation && kept.Block == "" { // a forget removed the results
		return Outcome{Status: StatusEmpty, Reason: ReasonNothing}
	}
	t.decided = false // another request of the turn decided first
	return outcomeOf(kept, SourceSticky)
}

func outcomeOf(d *Decision, s Source) Outcome {
	if d.Block == "" {
		return Outcome{Status: StatusEmpty, Source: s, Reason: Reason(d.Reason)}
	}
	return Outcome{Status: StatusRecalled, Facts: d.Facts, Chars: utf8.RuneCountInString(d.Block), Source: s}
}

// read sets the groups to search for a turn. apart reports whether one of them is the person's
// own, for the facts that matter in all projects.
func (t *turn) read(who graphiti.Who) (apart bool) {
	var said []byte
	if t.c.Last >= 0 {
		said, _ = t.said()
	}
	t.owner, t.reads = who.Owner(), t.o.Reads(who, words.Personal(string(graphiti.Truncate(said, maxQuery))))
	person, apart := t.o.Beside(who)
	if apart = apart && !slices.Contains(t.reads, person); apart {
		t.reads = append(t.reads, person)
	}
	for _, r := range t.reads {
		t.groups = append(t.groups, r.Group)
	}
	return apart
}

// recall searches for the newest turn and makes a block of the results.
func (m *Planner) recall(t *turn, who graphiti.Who) (Decision, Outcome) {
	said, first := t.said()
	query, ok := m.question(query(t.c, said, first), t.deadline)
	if !ok {
		return Decision{}, Outcome{Status: StatusTimeout}
	}
	apart := t.read(who)
	reads := t.reads
	before := m.opening(t, who)
	if t.o.MinScore > 0 && !asks(said) {
		return t.withoutSearch(before, StatusEmpty, ReasonRoutine)
	}
	found, looks, err := m.search(query, reads, t.deadline)
	t.looks = looks
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return t.withoutSearch(before, StatusTimeout, ReasonNone)
	case err != nil:
		return t.withoutSearch(before, StatusError, ReasonNone)
	}
	ch := chooserOf(t)
	ch.apart = apart
	ch.openWith(before)
	all := ch.choose(scoped(reads, found))
	return t.show(before, all, ch.minScore, SourceLive, ch.silence(all))
}

// talk identifies the conversation in proof mode.
func (t *turn) talk() proof.Talk {
	return proof.Talk{Owner: t.who.Owner(), Session: t.who.Session, Groups: t.groups, Generation: t.mode.Generation}
}

// withholds reports whether proof mode withholds the lines of a block, except rules, preferences
// and the conversation's own notes.
func (t *turn) withholds(opening, found []Candidate) bool {
	if t.o.Proof == nil {
		return false
	}
	t.found = slices.DeleteFunc(t.found, func(l string) bool { return !slices.Contains(linesOfAll(opening), l) })
	for i := range found {
		if found[i].Verdict == Shown {
			t.found = append(t.found, found[i].Line)
		}
	}
	if len(opening)+len(t.found) == 0 {
		return false
	}
	talk := t.talk()
	had := slices.ContainsFunc(t.earlier, func(d *Decision) bool { return d != nil && d.Block != "" })
	ctx, cancel := context.WithDeadline(context.Background(), t.until)
	defer cancel()
	return t.o.Proof.Withholds(ctx, &talk, had, t.mode.Asked) && len(t.found) > 0
}

// prove adds the turn to its conversation's trial. Subagents have no person's message.
func (t *turn) prove() {
	e := proof.Event{Talk: t.talk(), Asked: t.mode.Asked}
	if t.mode.Ingest {
		said, _ := t.said()
		e.Text = string(graphiti.Truncate(said, maxQuery))
	}
	for _, l := range t.found {
		e.Lines = append(e.Lines, statement(l))
	}
	t.o.Proof.Add(e)
}

// withoutSearch makes a decision of the opening alone: the search failed or was unnecessary.
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

// show makes a decision of the opening and the shown results. why explains an empty block.
func (t *turn) show(opening, found []Candidate, minScore float64, source Source, why Reason) (d Decision, o Outcome) {
	if t.withholds(opening, found) {
		opening = slices.DeleteFunc(opening, func(c Candidate) bool { return c.Fact == nil && slices.Contains(t.found, c.Line) })
		dismiss(found, Withheld)
		why = ReasonWithheld
	}
	d.Block, d.Facts = formatBlock(append(linesOfAll(opening), lines(found)...), standing(opening), !slices.ContainsFunc(t.blocks(), framed))
	d.Pieces = piecesOf(t.owner, opening, found, t.reads, minScore)
	if o = outcomeOf(&d, source); d.Block == "" || why == ReasonWithheld {
		o.Reason = why
	}
	return d, o
}

// standing returns the number of the opening's lines from the card.
func standing(opening []Candidate) (n int) {
	for i := range opening {
		if opening[i].Fact != nil {
			n++
		}
	}
	return n
}

// linesOfAll returns the lines of the candidates.
func linesOfAll(opening []Candidate) (lines []string) {
	for i := range opening {
		lines = append(lines, opening[i].Line)
	}
	return lines
}

// seen are the reasons of verdicts on lines that the model sees anyway.
var reasonOf = map[Verdict]Reason{Visible: ReasonVisible, OwnWords: ReasonVisible, Told: ReasonTold}

// silence returns the reason for a block without results.
func (ch *chooser) silence(all []Candidate) Reason {
	why := ReasonNothing
	for i := range all {
		switch v := all[i].Verdict; {
		case v == Weak:
			return ReasonWeak
		case reasonOf[v] != "" && ch.strong(all[i].Fact):
			why = reasonOf[v]
		case why == ReasonNothing && v == NotValid:
			why = ReasonOutdated
		case why == ReasonNothing:
			why = ReasonWeak
		}
	}
	return why
}

// Choose judges search results for a text at the start of a conversation. least is the
// strength required of the best result.
func (m *Planner) Choose(text string, found []Scoped) (all []Candidate, least float64) {
	ch := chooserOf(&turn{c: &dialect.Conversation{}, o: m.opts()})
	all = ch.choose(found)
	if ch.minScore > 0 && !asks([]byte(text)) {
		dismiss(all, Weak)
	}
	return all, ch.minScore
}

func chooserOf(t *turn) *chooser {
	visible, last := statementsIn(t.blocks()), ""
	for _, at := range t.at {
		last = string(graphiti.Truncate(t.c.Text(at), maxChars))
		visible.add(last)
	}
	for s := range words.Sentences(last) { // the rule that the message states is not repeated
		visible.add(s)
	}
	return &chooser{
		now: t.o.Now(), staleAfter: t.o.StaleAfter, ownTurns: t.episodes(), history: t.c, visible: visible, written: sync.OnceValue(func() func(string) bool { return written(t.c) }),
		told:     sync.OnceValue(func() func(string) bool { return told(t.c) }),
		minScore: t.o.MinScore, count: t.o.MaxFacts, max: t.o.room(t),
	}
}

func scoped(reads []graphiti.Target, found [][]graphiti.Fact) []Scoped {
	out := make([]Scoped, len(found))
	for i := range found {
		out[i] = Scoped{reads[i].Scope, found[i]}
	}
	return out
}
