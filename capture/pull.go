package capture

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// FactStore stores facts with their source messages.
type FactStore interface {
	Pull(ctx context.Context, group string, facts []graphiti.Distilled) error

	// Copied makes turns wait to be copied once they have distilled facts.
	Copied()

	// Distils reports whether a model here will distil facts from a new message. Its turn is then
	// copied with these facts only.
	Distils(m *graphiti.Row) bool

	// FactsIn returns the texts of the facts that were distilled from messages.
	FactsIn(ctx context.Context, group string, names []string) ([]string, error)
}

const (
	// maxImports is the most groups that wait to be imported. The next request of a further one
	// asks again.
	maxImports = 4096

	// pullTimeout bounds the calls about one episode, and importTimeout those about a group.
	pullTimeout   = 30 * time.Second
	importTimeout = 10 * time.Minute

	// readAtOnce is the number of episodes that one query of the ledger returns. After a failure the puller
	// waits for firstPause, twice as long after each further one, but at most for lastPause.
	readAtOnce = 100
	firstPause = time.Second
	lastPause  = time.Hour

	mostWords = 1000 // most words of a message to compare with a fact
)

// puller reads facts and earlier messages from Graphiti. The episodes to read are in the ledger.
type puller struct {
	*Pipeline
	from   graphiti.Arrivals // nil disables it
	leads  func() bool       // only one process reads facts
	facts  FactStore
	groups chan ledger.Turn // owners of the histories to import
	added  chan struct{}    // there are episodes to read; capacity 1: further wakes add nothing

	mu    sync.Mutex           // protects asked
	asked map[string]time.Time // last import by group
}

func newPuller(of *Pipeline, o *Options, leads func() bool) *puller {
	p := &puller{Pipeline: of, leads: leads, facts: o.Facts,
		groups: make(chan ledger.Turn, maxImports), added: make(chan struct{}, 1), asked: make(map[string]time.Time)}
	if o.Facts != nil {
		p.from, _ = o.Graph.(graphiti.Arrivals)
	}
	return p
}

// run reads episodes and imports histories in turn, until ctx ends.
func (p *puller) run(ctx context.Context) {
	pause, rest := firstPause, time.NewTimer(time.Nanosecond) // see deliver.Loop.Run
	defer rest.Stop()
	for {
		var owner ledger.Turn
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		case <-p.added:
		case owner = <-p.groups:
		}
		var next time.Duration
		err := contained(func() (err error) {
			if len(owner.Targets) > 0 {
				err = p.perform(ctx, &owner)
			}
			if err == nil {
				next, err = p.readSome(ctx)
			}
			return err
		})
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil:
			p.log.Warn("read facts or messages of Graphiti failed", "error", err)
			rest.Reset(pause)
			pause = min(2*pause, lastPause)
		default:
			pause = firstPause
			if rest.Stop(); next > 0 {
				rest.Reset(next)
			}
		}
	}
}

// readSome reads the facts of the first episodes of the ledger, and returns the time until the
// next, or 0 without one. An episode without facts is read once more: on FalkorDB, which has no
// transactions, Graphiti stores it before its facts.
func (p *puller) readSome(ctx context.Context) (next time.Duration, err error) {
	if !p.leads() {
		return 0, nil
	}
	list, err := p.Unread(ctx, readAtOnce)
	for i := range list {
		done, err := p.read(ctx, &list[i])
		if done = done || err == nil && list[i].Tries > 0; !done {
			next = firstPause
		}
		if err := cmp.Or(ctx.Err(), errors.Join(err, p.Read(&list[i], done))); err != nil {
			return 0, err
		}
	}
	if len(list) == readAtOnce {
		next = time.Nanosecond
	}
	return next, err
}

// perform stores the messages of a group that only Graphiti has, and the episodes to read.
func (p *puller) perform(ctx context.Context, owner *ledger.Turn) error {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	group := owner.Targets[0].Group
	last, generation, err := p.Imported(ctx, group)
	if owner.Generation = generation; err == nil && time.Since(last) >= importAgain {
		err = p.importSince(ctx, owner, last)
	}
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.asked, group) // the next request asks again
	}
	return err
}

// seen stores episodes to read.
func (p *puller) seen(list []ledger.Unread) {
	if p.from == nil || len(list) == 0 {
		return
	}
	if err := p.AddUnread(list); err != nil {
		p.log.Warn("record episodes to read failed", "error", err)
	}
	p.wake()
}

// wake has the ledger read.
func (p *puller) wake() {
	select {
	case p.added <- struct{}{}:
	default:
	}
}

// read stores the facts of an episode, and reports whether it needs no other read.
func (p *puller) read(ctx context.Context, u *ledger.Unread) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	e := u.Episode
	var said []graphiti.Row
	for r, err := range p.Rows(ctx, u.Group, graphiti.Filter{Names: u.Names, Text: true}) {
		if err != nil {
			return false, err
		}
		said, e.Text = append(said, r), strings.TrimSpace(e.Text+"\n"+r.Text)
	}
	if len(said) < len(u.Names) { // forgotten meanwhile: Graphiti deletes the episode
		return true, nil
	}
	if own, err := p.facts.FactsIn(ctx, u.Group, u.Names); err != nil || len(own) > 0 { // Graphiti has our own facts
		return err == nil, err
	}
	found, err := p.from.FactsOf(ctx, u.Group, &e)
	if err != nil || len(found) == 0 {
		return false, err
	}
	facts := make([]graphiti.Distilled, 0, len(found))
	for _, f := range found {
		f.Text = p.Redacted(f.Text)
		facts = append(facts, pulled(&f, &e, sourcesOf(f.Text, said)))
	}
	err = p.facts.Pull(ctx, u.Group, facts)
	return err == nil, err
}

// sourcesOf returns the names of the messages of an episode that a fact is from: those of the turn with the
// most of its words.
func sourcesOf(fact string, said []graphiti.Row) (names []string) {
	most, of := 0, words.Of(fact, subjectWords)
	n := make(map[graphiti.TurnID]int)
	for _, r := range said {
		n[r.Turn] += common(of, words.Of(r.Text, mostWords))
		most = max(most, n[r.Turn])
	}
	for _, r := range said {
		if n[r.Turn] == most {
			names = append(names, r.Name)
		}
	}
	return names
}

// pulled returns a fact of an episode. Graphiti lists a fact that the episode ended, too: that
// fact is from other episodes.
func pulled(f *graphiti.Fact, e *graphiti.Row, names []string) graphiti.Distilled {
	d := graphiti.Distilled{Name: graphiti.PulledPrefix + f.UUID, Text: f.Text, Role: graphiti.RoleUser, Since: f.ValidAt, Until: f.InvalidAt, Made: time.Now()}
	if d.Since.IsZero() {
		d.Since = e.Said
	}
	if d.Until.IsZero() {
		d.Until = f.ExpiredAt
	}
	if len(f.Episodes) == 0 && d.Until.IsZero() || slices.Contains(f.Episodes, e.Key) {
		d.Sources, d.Episode = names, e.Key
	}
	return d
}

// importLater implements Import.
func (p *puller) importLater(owner ledger.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range owner.Targets {
		if time.Since(p.asked[t.Group]) < importAgain || p.from == nil {
			continue
		}
		one := owner
		one.Targets = []graphiti.Target{t}
		select {
		case p.groups <- one:
			p.asked[t.Group] = time.Now()
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

// importSince is perform after the last import, whenever that was.
func (p *puller) importSince(ctx context.Context, owner *ledger.Turn, last time.Time) error {
	group := owner.Targets[0].Group
	withdrawn, err := p.Ledger.Withdrawn(ctx, group)
	if err != nil {
		return err
	}
	retain := p.opts().Retain.For([]ledger.Owned{{Owner: owner.Owner, Key: owner.Workspace}})
	forgotten := func(r *graphiti.Row) bool {
		return retain > 0 && time.Since(r.Said) > retain || slices.ContainsFunc(withdrawn, func(w ledger.Withdrawn) bool { return len(w.Means(r)) > 0 })
	}
	var turns []ledger.Turn
	episodes := make(map[string][]ledger.Unread) // by turn
	store := func(least int) error {
		if len(turns) < least {
			return nil
		}
		var fresh []ledger.Unread
		all, err := p.add(ctx, turns, p.Keep)
		for i := range all {
			if len(all[i].Groups) > 0 {
				fresh = append(fresh, episodes[turns[i].ID]...)
			}
		}
		turns, episodes = turns[:0], make(map[string][]ledger.Unread)
		p.seen(fresh)
		return err
	}
	each := func(e graphiti.Row) error { // with both sides of a turn, or one
		if err := store(importBatch); err != nil {
			return err
		}
		first := true
		for _, r := range e.Sides() {
			if forgotten(&r) {
				continue
			}
			r.Name = cmp.Or(r.Name, r.Key)
			t := p.historic(owner, &r)
			if turns = joined(turns, t); first {
				episodes[t.ID], first = append(episodes[t.ID], ledger.NewUnread(group, &r)), false
			}
		}
		return nil
	}
	if last.IsZero() {
		err = p.from.Export(ctx, group, each)
	} else {
		var list []graphiti.Row
		list, err = p.from.Episodes(ctx, group, importLast)
		for i := 0; i < len(list) && err == nil; i++ {
			err = each(list[i])
		}
	}
	if err == nil {
		err = store(1)
	}
	if err != nil {
		return err
	}
	return p.SetImported(group)
}

// historic returns a message of Graphiti's as a turn.
func (p *puller) historic(owner *ledger.Turn, r *graphiti.Row) ledger.Turn {
	t, text := *owner, p.Redacted(r.Text)
	turn, ok := graphiti.TurnOf(r.Name)
	if t.ID = turn; !ok {
		t.ID = r.Name
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
	t.Restored = []ledger.Restored{{Name: r.Name, Speaker: r.Speaker, Role: r.Role, Source: r.Source}}
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
