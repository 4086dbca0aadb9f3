package capture

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Offline provides access to the copies of a stopped proxy. It delivers nothing and needs
// exclusive access to the file.
type Offline struct {
	spool ledger.Store
	close func() error
}

// NewOffline returns an Offline that owns an open ledger.
func NewOffline(l *ledger.Ledger) *Offline { return &Offline{l.Store(), l.Close} }

// Status returns the counts of the spool.
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

// Turns implements Queue.
func (f *Offline) Turns(ctx context.Context, o ledger.ListOptions) ([]ledger.Item, int, error) {
	return f.spool.Items(ctx, o)
}

// Retry implements Queue; the next running proxy delivers the turns.
func (f *Offline) Retry(numbers []int64) (int, error) {
	_, back, err := f.spool.Retry(numbers)
	return back.Turns, err
}

// Drop implements Queue.
func (f *Offline) Drop(numbers []int64) (int, error) {
	gone, err := f.spool.DropDead(numbers)
	return gone.Dead.Turns, err
}

// Close closes the file.
func (f *Offline) Close() error { return f.close() }
