package capture

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/replica"
)

// Offline looks into the spool of a proxy that does not run. Nothing is
// delivered, and nobody else may use the file meanwhile.
type Offline struct{ spool ledger.Store }

// NewOffline takes an open ledger, and closes it.
func NewOffline(l *ledger.Ledger) *Offline { return &Offline{l.Store()} }

// OpenShared looks into the spool that replicas share.
func OpenShared(db *redis.DB) *Offline { return &Offline{replica.New(db, 0, 0).Store()} }

// Status counts what the spool holds.
func (f *Offline) Status(ctx context.Context) (QueueStatus, error) {
	held, err := f.spool.Sizes(ctx)
	if err != nil {
		return QueueStatus{}, err
	}
	t, err := f.spool.Totals()
	if err != nil {
		return QueueStatus{}, err
	}
	s := QueueStatus{
		Pending: held.Pending.Turns, Dead: held.Dead.Turns, Bytes: held.Pending.Bytes + held.Dead.Bytes,
		Delivered: t.Delivered, Verified: t.Verified, Dropped: t.Dropped,
	}
	oldest, err := f.spool.Oldest()
	s.Oldest = at(oldest)
	return s, err
}

// Turns is Pipeline.Turns.
func (f *Offline) Turns(ctx context.Context, o ledger.ListOptions) ([]ledger.Item, int, error) {
	return f.spool.Items(ctx, o)
}

// Retry is Pipeline.Retry; the turns are delivered when a proxy runs.
func (f *Offline) Retry(numbers []int64) (int, error) {
	_, back, err := f.spool.Retry(numbers)
	return back.Turns, err
}

// Drop is Pipeline.Drop.
func (f *Offline) Drop(numbers []int64) (int, error) {
	gone, err := f.spool.DropDead(numbers)
	return gone.Dead.Turns, err
}

// Close closes the file.
func (f *Offline) Close() error { return f.spool.Close() }
