package capture

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// look looks for the turns of a group that are under way.
func (p *Pipeline) look(a action) {
	v, err := p.list(a.lane.group, a.n)
	var facts seen
	searched := false
	if err == nil && len(v.names) == 0 && !v.full {
		err = contained(func() (err error) { facts, searched, err = p.search(a); return err })
		if err == nil && len(facts.names) > 0 { // they may have come between the two
			v, err = p.list(a.lane.group, a.n)
		}
		searched = searched && len(v.names) == 0
	}
	if err != nil {
		p.notSeen(a, err)
		return
	}
	f := p.saw(a, v, facts, searched)
	p.conclude(a.lane, &f)
	if len(f.verified) > 0 && p.opts().OnStored != nil {
		p.opts().OnStored(a.lane.group)
	}
	if f.revived {
		p.opts().Log.Info("the memory keeps messages again; what it lost is sent again")
	}
	p.signal()
}

// list lists the last n of a group.
func (p *Pipeline) list(group string, n int) (v seen, err error) {
	err = contained(func() error {
		return p.call(func(ctx context.Context) (err error) {
			v, err = p.episodes(ctx, group, n)
			return err
		})
	})
	return v, err
}

// saw and notSeen tell the state what came of a look.
func (p *Pipeline) saw(a action, v, facts seen, searched bool) findings {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workedLocked(a)
	now := time.Now()
	if searched && len(facts.names) > 0 {
		p.hideLocked(true, now)
	}
	if searched && p.state.hidden {
		return p.state.sawFacts(a, facts, now)
	}
	f := p.state.saw(a, v, now)
	if len(f.verified) > 0 && p.state.lists() {
		p.opts().Log.Info("the memory lists what it holds again")
	}
	return f
}

// hideLocked notes that episodes cannot be listed, and says so once.
func (p *Pipeline) hideLocked(shown bool, now time.Time) {
	if p.state.hide(shown, now) {
		d := p.state.sightless()
		p.opts().Log.Warn("turns cannot be verified by a listing", "why", d.Says(), "to_do", d.Remedy())
	}
}

func (p *Pipeline) notSeen(a action, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.lookFailed(a.lane, time.Now())
	p.failedLocked(a, err)
}

// episodes are the names of the last n of a group.
func (p *Pipeline) episodes(ctx context.Context, group string, n int) (seen, error) {
	list, err := p.opts().Memory.Episodes(ctx, group, n)
	if errors.Is(err, graphiti.ErrTooLarge) {
		return seen{full: true, oldest: time.Now()}, nil // whatever is sought may be behind that
	}
	if err != nil {
		return seen{}, err
	}
	v := seen{names: make(map[string]bool, len(list)), full: len(list) >= n, clock: p.opts().Memory.Clock()}
	for i := range list {
		v.names[list[i].Name] = true
		if i == 0 || list[i].ValidAt.Before(v.oldest) {
			v.oldest = list[i].ValidAt
		}
	}
	return v, nil
}

// conclude writes down what follows from a look. What cannot be written stays
// under way, and is found again with the next look.
func (p *Pipeline) conclude(l *lane, f *findings) {
	var again []*under
	keep := func(turns []*under, err error) {
		if err != nil {
			p.opts().Log.Warn("a delivery cannot be noted", "error", err)
			again = append(again, turns...)
		}
	}
	keep(f.verified, p.settle(l.group, entriesOf(f.verified), true))
	keep(f.hidden, p.settle(l.group, entriesOf(f.hidden), false))
	p.tell(l.group, entriesOf(f.verified), handedAt(f.verified), true, nil)
	p.tell(l.group, entriesOf(f.hidden), handedAt(f.hidden), false, nil)
	p.tell(l.group, entriesOf(f.lost), handedAt(f.lost), false, errLost)
	p.tell(l.group, entriesOf(f.buried), handedAt(f.buried), false, errDead)
	lost := p.spool.Requeue(l.group, entriesOf(f.lost), "accepted by the memory, and lost there")
	keep(f.lost, lost)
	for _, u := range f.buried {
		keep([]*under{u}, p.putAside(l.group, &entriesOf([]*under{u})[0], "accepted by the memory and lost there each time; it may be what ends its worker"))
	}
	for _, u := range f.unknown {
		keep([]*under{u}, p.putAside(l.group, &entriesOf([]*under{u})[0], "a call ended in the middle, and this memory does not show whether it has the turn; graphiti-proxy queue retry sends it again"))
	}
	p.tell(l.group, entriesOf(f.unknown), handedAt(f.unknown), false, errDead)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(again) > 0 {
		p.state.handedAgain(l, again, time.Now())
	}
	if lost == nil && len(f.lost) > 0 {
		p.lost += len(f.lost)
		for _, u := range f.lost {
			p.state.add(l.group, !u.entry.Later)
		}
	}
}

func entriesOf(turns []*under) []ledger.Entry {
	out := make([]ledger.Entry, len(turns))
	for i, u := range turns {
		if out[i] = u.entry; u.blamed {
			out[i].Losses++ // in what is written down; in ours when that is done
		}
	}
	return out
}

// sendProbe writes a message of our own to a group of its own.
func (p *Pipeline) sendProbe() {
	name := probeName()
	start := p.ticks(nil)
	err := contained(func() error {
		return p.call(func(ctx context.Context) error {
			return p.opts().Memory.Write(ctx, p.probeGroup, probeMessage(name))
		})
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.probed(name, start, err == nil, time.Now())
}

func probeName() string { return graphiti.CheckNamePrefix + rand.Text() }

func probeMessage(name string) []graphiti.Message {
	return []graphiti.Message{{
		Name: name, RoleType: graphiti.RoleUser, Timestamp: time.Now(),
		Content: graphiti.CheckText, SourceDescription: `{"source":"graphiti-proxy","scope":"probe"}`,
	}}
}

// checkFacts counts the facts that a search shows of our own messages.
func (p *Pipeline) checkFacts() (n int, err error) {
	err = contained(func() error {
		return p.call(func(ctx context.Context) error {
			facts, err := p.opts().Memory.Search(ctx, []string{p.probeGroup}, graphiti.CheckText, shownFacts)
			n = len(facts)
			return err
		})
	})
	return n, err
}

// listsForSure reports whether the memory's database is one in which nothing is
// looked for in another place.
func (p *Pipeline) listsForSure() (sure bool) {
	_ = contained(func() error {
		return p.call(func(ctx context.Context) error { sure = p.database(ctx) == "neo4j"; return nil })
	})
	return sure
}

// database is what the memory says that it keeps things in. One that does not
// answer this time has what it had the last time.
func (p *Pipeline) database(ctx context.Context) (name string) {
	if m, ok := p.opts().Memory.(interface{ Database(context.Context) string }); ok {
		name = m.Database(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if name != "" {
		p.saidDatabase = name
	}
	return p.saidDatabase
}

// sightless says why turns are not verified by a listing.
func (s *state) sightless() graphiti.Diagnosis {
	switch {
	case s.unlisted.IsZero():
		return graphiti.NoDiagnosis
	case s.shown:
		return graphiti.Unlisted
	}
	return graphiti.Unshown
}

// stallLocked says why nothing is kept, as far as that shows.
func (p *Pipeline) stallLocked() graphiti.Diagnosis {
	if d := graphiti.Diagnose(p.searchErr); d != graphiti.NoDiagnosis {
		return d
	}
	switch {
	case p.state.timing.apart:
		return graphiti.ModelFails
	case !p.state.listed:
		return graphiti.NeverKept
	}
	return graphiti.WorkerDead
}

// judgeLocked decides what it means that a listing does not show a message of
// our own. Where a search shows it, episodes cannot be listed here. Where a
// search shows nothing either and no listing ever showed anything, that is so
// too for a memory whose workers outlive a failure; another one has lost its
// only worker, and a memory that did list before has stopped working.
func (p *Pipeline) judgeLocked(facts int, failed error, sure bool, now time.Time) {
	p.searchErr = failed
	switch {
	case failed != nil:
	case facts > 0:
		p.hideLocked(true, now)
	case !p.state.stalled.IsZero() && !p.state.listed && !sure && p.state.timing.apart:
		p.hideLocked(false, now)
	}
}

// lookForProbe looks whether a probe has arrived, and removes it.
func (p *Pipeline) lookForProbe(a action) {
	v, err := p.list(p.probeGroup, a.n)
	facts, failed, sure := 0, err, false
	if err == nil && len(v.names) == 0 {
		if facts, failed = p.checkFacts(); facts > 0 { // they may have come between the two
			v, err = p.list(p.probeGroup, a.n)
		}
		sure = p.listsForSure()
	}
	p.mu.Lock()
	if err == nil && len(v.names) == 0 {
		p.judgeLocked(facts, failed, sure, time.Now())
	}
	found, revived := p.state.sawProbes(v.names, err == nil, time.Now())
	if found {
		p.state.lists()
	}
	p.mu.Unlock()
	if revived {
		p.opts().Log.Info("the memory keeps messages again; what it lost is sent again")
	}
	if found {
		err := contained(func() error {
			return p.call(func(ctx context.Context) error { return p.opts().Memory.Forget(ctx, p.probeGroup) })
		})
		if err != nil {
			p.opts().Log.Debug("a probe is left in the memory", "error", err)
		}
	}
}
