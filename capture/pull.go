package capture

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// FactStore stores facts with their source messages.
type FactStore interface {
	Pull(ctx context.Context, group string, facts []graphiti.Distilled) error
}

// source is a Graphiti whose facts and history can be read.
type source interface {
	FactsOf(ctx context.Context, group string, episode *graphiti.Row) ([]graphiti.Fact, error)
	Rows(ctx context.Context, group string, f graphiti.Filter) iter.Seq2[graphiti.Row, error]
}

const (
	// maxPulls is the most episodes that wait to be read. Further ones are read by the next
	// import of their group.
	maxPulls = 4096

	// pullTimeout bounds the calls about one episode, and importTimeout those about a group.
	pullTimeout   = 30 * time.Second
	importTimeout = 10 * time.Minute
)

// puller reads facts and earlier messages from Graphiti.
type puller struct {
	*ownFile
	from   source // nil disables it
	facts  FactStore
	redact func(text string) string
	base   context.Context
	work   chan pull
	done   sync.WaitGroup

	mu      sync.Mutex           // protects the fields below
	asked   map[string]time.Time // last import by group
	history int                  // imports that are not finished
	paused  chan struct{}        // closed at the end of a pause; nil without one
}

// pull is an episode of a group to read, or the history of a group.
type pull struct {
	group   string
	episode *graphiti.Row // nil for the history
	names   []string      // of the messages of the episode
	owner   ledger.Turn   // of the history
}

// newPuller returns a puller that works until base ends.
func newPuller(base context.Context, k *ownFile, o *Options, redact func(string) string) *puller {
	p := &puller{ownFile: k, facts: o.Facts, redact: redact, base: base, work: make(chan pull, maxPulls), asked: make(map[string]time.Time)}
	if o.Facts != nil {
		p.from, _ = o.Graph.(source)
	}
	p.done.Go(p.run)
	return p
}

func (p *puller) run() {
	for {
		select {
		case <-p.base.Done():
			return
		case w := <-p.work:
			err := contained(func() error { return p.perform(p.base, &w) })
			if err != nil && p.base.Err() == nil {
				p.log.Warn("read facts or messages of Graphiti failed", "error", err)
			}
		}
	}
}

// pause stops calls to Graphiti, or resumes them.
func (p *puller) pause(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case paused && p.paused == nil:
		p.paused = make(chan struct{})
	case !paused && p.paused != nil:
		close(p.paused)
		p.paused = nil
	}
}

// mayCall waits for the end of a pause. It returns false at the end of the process.
func (p *puller) mayCall() bool {
	p.mu.Lock()
	paused := p.paused
	p.mu.Unlock()
	if paused == nil {
		return true
	}
	select {
	case <-paused:
		return p.mayCall()
	case <-p.base.Done():
		return false
	}
}

func (p *puller) perform(ctx context.Context, w *pull) error {
	if w.episode != nil {
		ctx, cancel := context.WithTimeout(ctx, pullTimeout)
		defer cancel()
		return p.read(ctx, w.group, w.episode, w.names)
	}
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	err := p.importAll(ctx, w)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.history--; err != nil {
		delete(p.asked, w.group) // the next request asks again
	}
	return err
}

// imports returns the number of unfinished imports.
func (p *puller) imports() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.history
}

// seen queues an episode of a group.
func (p *puller) seen(group string, episode *graphiti.Row, names []string) {
	if p.from == nil {
		return
	}
	select {
	case p.work <- pull{group: group, episode: episode, names: names}:
	default:
	}
}

// sidesOf returns the names of the messages of an episode.
func sidesOf(e *graphiti.Row) (names []string) {
	for _, side := range e.Sides() {
		names = append(names, side.Name)
	}
	return names
}

// read stores the facts of an episode.
func (p *puller) read(ctx context.Context, group string, e *graphiti.Row, names []string) error {
	if !p.mayCall() {
		return nil
	}
	found, err := p.from.FactsOf(ctx, group, e)
	if err != nil || len(found) == 0 {
		return err
	}
	facts := make([]graphiti.Distilled, 0, len(found))
	for _, f := range graphiti.WithoutChecks([]string{group}, found) {
		f.Text = p.redact(f.Text)
		facts = append(facts, pulled(&f, e, names))
	}
	if err := p.facts.Pull(ctx, group, facts); err != nil {
		return err
	}
	p.OnStored(group)
	return nil
}

// pulled returns a fact of an episode. Graphiti lists a fact that the episode ended, too: that
// fact is from other episodes.
func pulled(f *graphiti.Fact, e *graphiti.Row, names []string) graphiti.Distilled {
	d := graphiti.Distilled{Name: "graphiti." + f.UUID, Text: f.Text, Role: graphiti.RoleUser, Since: f.ValidAt, Until: f.InvalidAt, Made: time.Now()}
	if d.Since.IsZero() {
		d.Since = e.Said
	}
	if d.Until.IsZero() {
		d.Until = f.ExpiredAt
	}
	if len(f.Episodes) == 0 && d.Until.IsZero() || slices.Contains(f.Episodes, e.Key) {
		d.Sources = names
	}
	return d
}

// Import implements Queue.
func (p *puller) Import(owner ledger.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range owner.Targets {
		if time.Since(p.asked[t.Group]) < importAgain || p.from == nil {
			continue
		}
		one := owner
		one.Targets = []graphiti.Target{t}
		select {
		case p.work <- pull{group: t.Group, owner: one}:
			p.asked[t.Group] = time.Now()
			p.history++
		default:
		}
	}
}

const (
	// importBatch is the number of turns per write of an import, so that it does not block others.
	importBatch = 200

	// importAgain is the interval of imports of a group, and importLast the number of its last
	// episodes to read again: other programs may have written them.
	importAgain = time.Hour
	importLast  = 1000
)

// importAll stores the messages of a group that only Graphiti has, with their facts.
func (p *puller) importAll(ctx context.Context, w *pull) error {
	last, generation, err := p.Imported(ctx, w.group)
	if err != nil || time.Since(last) < importAgain || !p.mayCall() {
		return err
	}
	f := graphiti.Filter{Text: true}
	if !last.IsZero() {
		f.Last = importLast
	}
	w.owner.Generation = generation
	var turns []ledger.Turn
	var fresh []graphiti.Row
	episodes := make(map[string][]graphiti.Row) // by turn
	store := func(least int) error {
		if len(turns) < least {
			return nil
		}
		all, err := p.add(ctx, turns, p.Keep)
		for i := range all {
			if len(all[i].Groups) > 0 {
				fresh = append(fresh, episodes[turns[i].ID]...)
			}
		}
		turns, episodes = turns[:0], make(map[string][]graphiti.Row)
		return err
	}
	key := ""
	for r, err := range p.from.Rows(ctx, w.group, f) {
		if err == nil && strings.HasPrefix(r.Name, graphiti.CheckNamePrefix) {
			continue
		}
		if err == nil && r.Key != key { // both sides of a turn may have one
			err = store(importBatch)
		}
		if err != nil {
			return err
		}
		t := p.historic(&w.owner, &r)
		if turns = joined(turns, t); r.Key != key {
			key = r.Key
			episodes[t.ID] = append(episodes[t.ID], graphiti.Row{Key: r.Key, Name: r.Name, Text: r.Text, Said: r.Said, Source: r.Source, Role: r.Role, Facts: r.Facts})
		}
	}
	if err := store(1); err != nil {
		return err
	}
	for i := range fresh {
		if err := p.read(ctx, w.group, &fresh[i], sidesOf(&fresh[i])); err != nil {
			return err
		}
	}
	return p.SetImported(w.group)
}

// historic returns a message of Graphiti's as a turn.
func (p *puller) historic(owner *ledger.Turn, r *graphiti.Row) ledger.Turn {
	t, text := *owner, p.redact(r.Text)
	turn, ok := graphiti.TurnOf(r.Name)
	if t.ID = turn; !ok {
		t.ID = cmp.Or(r.Name, r.Key)
	}
	t.SessionHash, t.Said, t.Answered = r.Session, r.Said, r.Said
	if r.Role == graphiti.RoleAssistant {
		t.Assistant = text
	} else {
		t.User = text
	}
	if c, ok := graphiti.ParseCurated(r.Text); ok && r.Role == graphiti.RoleSystem {
		t.Kind = c.Kind
	}
	t.Restored = []ledger.Restored{{Name: cmp.Or(r.Name, r.Key), Speaker: r.Speaker, Role: r.Role, Source: r.Source}}
	return t
}

// joined appends a message to turns, or to the last one if it is its answer.
func joined(turns []ledger.Turn, t ledger.Turn) []ledger.Turn {
	if n := len(turns); n > 0 && turns[n-1].ID == t.ID && turns[n-1].Assistant == "" && t.Assistant != "" {
		last := &turns[n-1]
		last.Assistant, last.Answered = t.Assistant, t.Answered
		last.Restored = append(last.Restored, t.Restored...)
		return turns
	}
	return append(turns, t)
}
