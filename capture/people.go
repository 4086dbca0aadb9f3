package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Groups lists the groups that were written to, or those of one owner.
func (p *Pipeline) Groups(ctx context.Context, owner string) ([]ledger.Owned, error) {
	return p.spool.Owned(ctx, owner)
}

// SessionGroups lists the groups that hold recent turns of a session.
func (p *Pipeline) SessionGroups(ctx context.Context, session string) ([]ledger.Owned, error) {
	return p.spool.SessionGroups(ctx, session)
}

// Waiting calls f for each turn of a part that waits or is dead, with what would
// be written of it.
func (p *Pipeline) Waiting(ctx context.Context, part ledger.Part, f func(graphiti.Message) error) error {
	return p.spool.Waiting(ctx, part, func(e ledger.Entry) error {
		for _, m := range messagesOf(&e.Turn, e.Scope, e.Have, p.opts().MaxChars, time.Now()) {
			if err := f(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// Turns lists turns in the spool, the oldest first, and says how many there
// are in all.
func (p *Pipeline) Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error) {
	return p.spool.Items(ctx, o)
}

// Retry has dead turns delivered again: those of the numbers, or all when
// there are none. It returns how many.
func (p *Pipeline) Retry(numbers []int64) (int, error) {
	groups, back, err := p.spool.Retry(numbers)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	p.held.Dead = p.held.Dead.Minus(back)
	p.held.Pending = p.held.Pending.Plus(back)
	p.mu.Unlock()
	for _, g := range groups {
		p.loop.Wake(g, true)
	}
	return back.Turns, nil
}

// Drop removes dead turns for good: those of the numbers, or all when there
// are none. It returns how many.
func (p *Pipeline) Drop(numbers []int64) (int, error) {
	gone, err := p.spool.DropDead(numbers)
	if err != nil {
		return 0, err
	}
	return p.noteDropped(gone, "an operator dropped them"), nil
}
