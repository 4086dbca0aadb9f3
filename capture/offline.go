package capture

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

// Offline looks into the spool of a proxy that does not run. Nothing is
// delivered, and nobody else may use the file meanwhile.
type Offline struct{ spool store }

// OpenOffline opens the spool at path.
func OpenOffline(path string) (*Offline, error) {
	s, err := openSpool(path)
	if err != nil {
		return nil, err
	}
	return &Offline{s}, nil
}

// OpenShared looks into the spool that replicas share.
func OpenShared(db *redis.DB) *Offline { return &Offline{newShared(db, 0, 0)} }

// Status counts what the spool holds.
func (f *Offline) Status(ctx context.Context) (QueueStatus, error) {
	held, err := f.spool.sizes(ctx)
	if err != nil {
		return QueueStatus{}, err
	}
	t, err := f.spool.totals()
	if err != nil {
		return QueueStatus{}, err
	}
	s := QueueStatus{
		Pending: held.pending.turns, Dead: held.dead.turns, Bytes: held.pending.bytes + held.dead.bytes,
		Delivered: t.delivered, Verified: t.verified, Dropped: t.dropped,
	}
	oldest, err := f.spool.oldest()
	if err == nil && !oldest.IsZero() {
		s.Oldest = &oldest
	}
	return s, err
}

// Letters is Pipeline.Letters.
func (f *Offline) Letters(ctx context.Context, o ListOptions) ([]Letter, int, error) {
	return f.spool.letters(ctx, o)
}

// Retry is Pipeline.Retry; the turns are delivered when a proxy runs.
func (f *Offline) Retry(numbers []int64) (int, error) {
	_, back, err := f.spool.retry(numbers)
	return back.turns, err
}

// Drop is Pipeline.Drop.
func (f *Offline) Drop(numbers []int64) (int, error) {
	gone, err := f.spool.dropDead(numbers)
	return gone.dead.turns, err
}

// Close closes the file.
func (f *Offline) Close() error { return f.spool.close() }
