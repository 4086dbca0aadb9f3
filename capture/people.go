package capture

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Turns implements Queue.
func (b *outbox) Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error) {
	return b.spool.Items(ctx, o)
}

// Retry implements Queue.
func (b *outbox) Retry(numbers []int64) (int, error) {
	groups, back, err := b.spool.Retry(numbers)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	b.held.Dead = b.held.Dead.Minus(back)
	b.held.Pending = b.held.Pending.Plus(back)
	b.mu.Unlock()
	for _, g := range groups {
		b.loop.Wake(g, true)
	}
	b.loop.Test()
	return back.Turns, nil
}

// Drop implements Queue.
func (b *outbox) Drop(numbers []int64) (int, error) {
	gone, err := b.spool.DropDead(numbers)
	if err != nil {
		return 0, err
	}
	return b.noteDropped(gone, "an operator dropped them"), nil
}
