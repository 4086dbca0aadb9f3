package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// queue is the ledger as delivery knows it: it makes messages of turns, and
// keeps the pipeline's counts.
type queue struct{ *outbox }

var _ deliver.Ledger = queue{}

func (q queue) Groups(found func(group string, fresh bool)) error { return q.spool.Groups(found) }

func (q queue) InDoubt(found func(deliver.Item)) error {
	return q.spool.InDoubt(func(group string, e ledger.Entry) { found(q.item(group, &e)) })
}

func (q queue) Next(ctx context.Context, group string, n int) ([]deliver.Item, error) {
	entries, err := q.spool.Next(ctx, group, n)
	items := make([]deliver.Item, len(entries))
	for i := range entries {
		items[i] = q.item(group, &entries[i])
	}
	return items, err
}

func (q queue) item(group string, e *ledger.Entry) deliver.Item {
	return deliver.Item{Entry: *e, Group: group, Messages: episodesOf(&e.Turn, e.Scope, e.Have, q.opts().Episodes, q.opts().MaxChars, time.Now())}
}

func entriesOf(items []deliver.Item) []ledger.Entry {
	out := make([]ledger.Entry, len(items))
	for i := range items {
		out[i] = items[i].Entry
	}
	return out
}

func (q queue) MarkSent(group string, items []deliver.Item) error {
	return q.spool.MarkSent(group, entriesOf(items))
}

func (q queue) Requeue(group string, items []deliver.Item, reason string) error {
	return q.spool.Requeue(group, entriesOf(items), reason)
}

func (q queue) MarkDelivered(group string, items []deliver.Item, verified bool) error {
	gone, err := q.spool.MarkDelivered(group, entriesOf(items), verified, time.Now())
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

func (q queue) MarkDead(group string, it deliver.Item, reason string) error {
	gone, err := q.spool.MarkDead(group, &it.Entry, reason)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held.Pending = q.held.Pending.Minus(gone)
	q.held.Dead = q.held.Dead.Plus(gone)
	return nil
}
