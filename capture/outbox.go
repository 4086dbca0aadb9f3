package capture

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// outbox copies the turns of a memory to Graphiti, until their delivery is verified.
type outbox struct {
	*ownFile
	memory  deliver.Backend
	spool   ledger.Store // where copies wait: the ledger
	loop    *deliver.Loop
	evicted atomic.Int64  // copies dropped because of the limits
	stop    chan struct{} // closed by Shutdown
	ended   chan struct{} // closed when delivery has stopped
	worker  sync.WaitGroup
	pulls   *puller
	base    context.Context // of all background work
	abort   context.CancelFunc
	cutting sync.Mutex // serializes cuts: two would remove the same excess twice

	mu     sync.Mutex // protects the fields below
	held   ledger.Sizes
	totals ledger.Totals
	drops  map[string]*drops // logged drops, by reason
}

func openOutbox(k *ownFile, o *Options, stop chan struct{}, redact func(string) string, t deliver.Timing, openFor time.Duration) (*outbox, error) {
	k.Copied()
	b := &outbox{ownFile: k, memory: o.Graph, spool: k.Store(), stop: stop, ended: make(chan struct{})}
	b.base, b.abort = context.WithCancel(context.Background())
	b.pulls = newPuller(b.base, k, o, redact)
	b.loop = deliver.New(deliver.Options{
		Ledger: queue{b}, Memory: o.Graph, Apart: o.Apart, Verify: o.Verify,
		Timing: t, Timeout: o.Timeout, OpenFor: openFor,
		OnDelivered: o.OnDelivered, OnStored: o.OnStored, Redact: redact, Log: o.Log,
		OnSeen: b.seen,
	})
	b.Withhold(o.Withheld)
	if err := b.deliver(b.base); err != nil {
		b.abort()
		return nil, err
	}
	b.worker.Go(func() { everyMinute(stop, b.upkeepNow) })
	return b, nil
}

func (o *Bounds) timing() deliver.Timing { return deliver.DefaultTiming(o.MaxBatch, o.StallAfter) }

// deliver loads the spool's counts and starts delivery, which ends when stop is closed or
// ctx is done.
func (b *outbox) deliver(ctx context.Context) error {
	held, err := b.spool.Sizes(context.Background())
	if err != nil {
		return err
	}
	totals, err := b.spool.Totals()
	if err != nil {
		return err
	}
	instance, err := b.spool.Instance()
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.held, b.totals = held, totals
	b.mu.Unlock()
	return b.loop.Start(ctx, b.stop, deliver.Known{Instance: instance, Listed: totals.Verified > 0})
}

// seen has the facts of listed episodes read.
func (b *outbox) seen(group string, episodes []graphiti.Row) {
	list := make([]ledger.Unread, len(episodes))
	for i := range episodes {
		list[i] = ledger.NewUnread(group, &episodes[i])
	}
	b.pulls.seen(list)
}

// Add stores turns and wakes delivery.
func (b *outbox) Add(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	all, err := b.add(ctx, turns, b.Ledger.Add)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	for i := range turns {
		for _, g := range all[i].Groups {
			b.loop.Wake(g, !turns[i].Backfill)
		}
		b.held.Pending = b.held.Pending.Plus(all[i].Size)
	}
	over := b.opts().over(b.held)
	b.mu.Unlock()
	if over != (ledger.Size{}) {
		b.makeRoom()
	}
	return all, nil
}

func (b *outbox) apply(paused bool) {
	o := b.opts()
	b.loop.Set(o.timing(), o.Timeout, paused)
	b.pulls.pause(paused)
	b.makeRoom()
}

// close stops delivery. b.stop must be closed.
func (b *outbox) close(ctx context.Context) error {
	defer context.AfterFunc(ctx, b.abort)()
	b.worker.Wait()
	b.loop.Wait()
	close(b.ended)
	b.abort()
	b.pulls.done.Wait()
	b.mu.Lock()
	b.logDropsLocked(0)
	waiting := b.held.Pending.Turns
	b.mu.Unlock()
	if waiting > 0 {
		b.log.Info("undelivered turns stay in the queue, and are delivered after the next start", "turns", waiting)
	}
	return b.ownFile.close(ctx)
}
