package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Owned implements Groups.
func (b *outbox) Owned(ctx context.Context, owner string) ([]ledger.Owned, error) {
	return b.spool.Owned(ctx, owner)
}

// SessionGroups implements Groups.
func (b *outbox) SessionGroups(ctx context.Context, session string) ([]ledger.Owned, error) {
	return b.spool.SessionGroups(ctx, session)
}

// Waiting implements Queue.
func (b *outbox) Waiting(ctx context.Context, part ledger.Part) (list []graphiti.Row, err error) {
	err = b.spool.Waiting(ctx, part, func(e ledger.Entry) error {
		for _, r := range messagesOf(&e.Turn, e.Scope, e.Have, b.opts().MaxChars, time.Now()) {
			r.Group, r.Waiting = part.Group, true
			r.Identify()
			list = append(list, r)
		}
		return nil
	})
	return list, err
}

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
