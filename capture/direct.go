package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// manyTurns go straight to a memory that is a file. Fewer are not worth a commit
// of their own there.
const manyTurns = 64

// addDirect writes new turns to the memory, where that proves that they are kept,
// and then notes them in the ledger as delivered: so their texts are written
// once. It returns those that go the usual way, with how many were kept.
//
// Should the process end between the two writes, the ledger does not know what the
// memory holds. Whoever brings these turns again has them written to it under the
// same names, of which it takes each once.
func (p *Pipeline) addDirect(ctx context.Context, turns []ledger.Turn) (rest []ledger.Turn, kept int) {
	if p.replicas != nil || !p.opts().Memory.Durable() || len(turns) < manyTurns {
		return turns, 0
	}
	var order []string
	groups := make(map[string][]ledger.Turn)
	for i := range turns {
		t := &turns[i]
		if len(t.Targets) != 1 || t.Open || t.Backfill {
			return turns, 0
		}
		g := t.Targets[0].Group
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], *t)
	}
	for _, g := range order {
		left, n := p.addToGroup(ctx, g, groups[g])
		rest, kept = append(rest, left...), kept+n
	}
	return rest, kept
}

// addToGroup is addDirect for one group. What fails goes the usual way, which
// says what is wrong.
func (p *Pipeline) addToGroup(ctx context.Context, group string, turns []ledger.Turn) (rest []ledger.Turn, kept int) {
	rest = turns
	_, _ = p.loop.Alone(group, func() error {
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
		if fresh = p.prepare(fresh); len(fresh) < manyTurns {
			return nil
		}
		var messages []graphiti.Message
		for i := range fresh {
			messages = append(messages, messagesOf(&fresh[i], fresh[i].Targets[0].Scope, 0, p.opts().MaxChars, time.Now())...)
		}
		if err := p.opts().Memory.Write(ctx, group, messages); err != nil {
			return err
		}
		all, err := p.disk.AddDelivered(ctx, fresh, time.Now())
		if err != nil {
			return err
		}
		rest, kept = known, p.noteKept(fresh, all)
		p.noteDirect(all)
		if p.opts().OnStored != nil {
			p.opts().OnStored(group)
		}
		return nil
	})
	return rest, kept
}

func (p *Pipeline) noteDirect(all []ledger.Added) {
	n := 0
	for i := range all {
		n += len(all[i].Groups)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals.Delivered += n
	p.totals.Verified += n
}
