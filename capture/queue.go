package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// queue adapts the outbox to delivery: it renders turns as messages and maintains the
// outbox's counts.
type queue struct{ *outbox }

var _ deliver.Ledger = queue{}

func (q queue) Groups(found func(group string, fresh bool)) error { return q.spool.Groups(found) }

func (q queue) InDoubt(found func(deliver.Item)) error {
	return q.spool.InDoubt(func(e ledger.Entry) { found(q.item(&e)) })
}

func (q queue) Next(ctx context.Context, group string, n int) ([]deliver.Item, error) {
	entries, err := q.spool.Next(ctx, group, n)
	items := make([]deliver.Item, len(entries))
	for i := range entries {
		items[i] = q.item(&entries[i])
	}
	return items, err
}

func (q queue) item(e *ledger.Entry) deliver.Item {
	return deliver.Item{Entry: *e, Messages: episodesOf(&e.Turn, e.Scope, e.Have, q.opts().Episodes, q.opts().MaxChars, time.Now())}
}

func entriesOf(items []deliver.Item) []ledger.Entry {
	out := make([]ledger.Entry, len(items))
	for i := range items {
		out[i] = items[i].Entry
	}
	return out
}

func (q queue) MarkSent(items []deliver.Item) error {
	return q.spool.MarkSent(entriesOf(items))
}

func (q queue) Requeue(items []deliver.Item, reason string) error {
	return q.spool.Requeue(entriesOf(items), reason)
}

func (q queue) MarkDelivered(items []deliver.Item, verified bool) error {
	gone, err := q.spool.MarkDelivered(entriesOf(items), verified, time.Now())
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held.Pending = q.held.Pending.Minus(gone)
	q.totals.Delivered += gone.Turns
	if verified {
		q.totals.Verified += gone.Turns
	}
	return nil
}

func (q queue) MarkDead(it deliver.Item, reason string) error {
	gone, err := q.spool.MarkDead(&it.Entry, reason)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held.Pending = q.held.Pending.Minus(gone)
	q.held.Dead = q.held.Dead.Plus(gone)
	return nil
}
