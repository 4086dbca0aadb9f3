package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// noteDelivered notes in the ledger that a group holds turns, and returns which of
// them it did not know.
type noteDelivered func(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error)

func (p *Pipeline) noteNow(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	return p.disk.AddDelivered(ctx, turns, time.Now())
}

// noteSoon is noteNow that does not wait for the disk.
func (p *Pipeline) noteSoon(_ context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	p.disk.AddDeliveredLater(turns, time.Now())
	all := make([]ledger.Added, len(turns))
	for i := range turns {
		all[i].Groups = []string{turns[i].Targets[0].Group}
	}
	return all, nil
}

// addDirect writes new turns to a memory that is a file, and notes them in the
// ledger as delivered: so their texts are written once, and one wait for the disk
// does for both. It returns those that go the usual way, and how many were kept.
//
// Should the process end between the two writes, the ledger does not know what the
// memory holds. A turn that comes again is then written again, under the same name,
// and the memory keeps one of each name.
func (p *Pipeline) addDirect(ctx context.Context, turns []ledger.Turn, note noteDelivered) (rest []ledger.Turn, kept int) {
	if p.replicas != nil || p.opts().Direct == nil {
		return turns, 0
	}
	var order []string
	groups := make(map[string][]ledger.Turn, 1)
	for i := range turns {
		t := &turns[i]
		if len(t.Targets) != 1 || t.Open || t.Backfill {
			return turns, 0 // the ledger decides which part of it
		}
		g := t.Targets[0].Group
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], *t)
	}
	for _, g := range order {
		left, n := p.addToGroup(ctx, g, groups[g], note)
		rest, kept = append(rest, left...), kept+n
	}
	return rest, kept
}

// addToGroup is addDirect for one group. What fails goes the usual way, which
// says what is wrong.
func (p *Pipeline) addToGroup(ctx context.Context, group string, turns []ledger.Turn, note noteDelivered) (rest []ledger.Turn, kept int) {
	rest = turns
	leave, ok := p.inTurn.enter(group, len(turns))
	if !ok {
		return rest, 0
	}
	defer leave()
	_, _ = p.loop.Alone(group, func() error {
		if fault := p.disk.Check(); fault != nil { // what it would note is lost
			return fault
		}
		isNew, err := p.disk.New(ctx, group, turns)
		if err != nil {
			return err
		}
		var fresh, known []ledger.Turn
		for i := range turns {
			if isNew[i] {
				fresh = append(fresh, turns[i])
			} else {
				known = append(known, turns[i])
			}
		}
		if fresh = p.prepare(fresh); len(fresh) == 0 {
			return nil
		}
		began := time.Now()
		var messages []graphiti.Message
		for i := range fresh {
			messages = append(messages, messagesOf(&fresh[i], fresh[i].Targets[0].Scope, 0, p.opts().MaxChars, began)...)
		}
		if err := p.disk.Own(ctx, fresh, began); err != nil {
			return err
		}
		if err := p.opts().Direct(context.WithoutCancel(ctx), group, messages); err != nil {
			return err
		}
		all, err := note(ctx, fresh)
		if err != nil {
			return err
		}
		rest, kept = known, p.noteKept(fresh, all)
		p.noteDirect(group, fresh, all, began)
		return nil
	})
	return rest, kept
}

// noteDirect counts what a group has got, and tells of it.
func (p *Pipeline) noteDirect(group string, turns []ledger.Turn, all []ledger.Added, began time.Time) {
	o := p.opts()
	p.mu.Lock()
	for i := range all {
		p.totals.Delivered += len(all[i].Groups)
		p.totals.Verified += len(all[i].Groups)
	}
	p.mu.Unlock()
	for i := range turns {
		if t := turns[i].Trace; t != "" && o.Told != nil {
			o.Told(deliver.Delivery{Trace: t, Group: group, Began: began, Verified: true})
		}
	}
	if o.OnStored != nil {
		o.OnStored(group)
	}
}
