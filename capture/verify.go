package capture

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// look looks for the turns of a group that are under way.
func (p *Pipeline) look(a action) {
	var v seen
	err := contained(func() error {
		return p.call(func(ctx context.Context) (err error) {
			v, err = p.episodes(ctx, a.lane.group, a.n)
			return err
		})
	})
	if err != nil {
		p.notSeen(a, err)
		return
	}
	f := p.saw(a, v)
	p.conclude(a.lane, &f)
	if len(f.verified) > 0 && p.opts().OnStored != nil {
		p.opts().OnStored(a.lane.group)
	}
	if f.revived {
		p.opts().Log.Info("the memory keeps messages again; what it lost is sent again")
	}
	p.signal()
}

// saw and notSeen tell the state what came of a look.
func (p *Pipeline) saw(a action, v seen) findings {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workedLocked(a)
	return p.state.saw(a, v, time.Now())
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
	lost := p.spool.takeBack(l.group, entriesOf(f.lost), "accepted by the memory, and lost there")
	keep(f.lost, lost)
	for _, u := range f.buried {
		keep([]*under{u}, p.putAside(l.group, &entriesOf([]*under{u})[0], "accepted by the memory and lost there each time; it may be what ends its worker"))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(again) > 0 {
		p.state.handedAgain(l, again, time.Now())
	}
	if lost == nil && len(f.lost) > 0 {
		p.lost += len(f.lost)
		for _, u := range f.lost {
			p.state.add(l.group, !u.entry.later)
		}
	}
}

func entriesOf(turns []*under) []entry {
	out := make([]entry, len(turns))
	for i, u := range turns {
		if out[i] = u.entry; u.blamed {
			out[i].losses++ // in what is written down; in ours when that is done
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

// probePrefix begins the names of messages of our own.
const probePrefix = "graphiti-proxy.probe."

func probeName() string { return probePrefix + rand.Text() }

func probeMessage(name string) []graphiti.Message {
	return []graphiti.Message{{
		Name: name, RoleType: graphiti.RoleUser, Timestamp: time.Now(),
		Content:           "This message of graphiti-proxy checks that the memory works. It is deleted again.",
		SourceDescription: `{"source":"graphiti-proxy","scope":"probe"}`,
	}}
}

// lookForProbe looks whether a probe has arrived, and removes it.
func (p *Pipeline) lookForProbe(a action) {
	var v seen
	err := contained(func() error {
		return p.call(func(ctx context.Context) (err error) {
			v, err = p.episodes(ctx, p.probeGroup, a.n)
			return err
		})
	})
	p.mu.Lock()
	found, revived := p.state.sawProbes(v.names, err == nil, time.Now())
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
