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
	memory   deliver.Backend
	spool    ledger.Store // where copies wait: the ledger, or the queue of replicas
	loop     *deliver.Loop
	evicted  atomic.Int64  // copies dropped because of the limits
	stop     chan struct{} // closed by Shutdown
	ended    chan struct{} // closed when delivery has stopped
	worker   sync.WaitGroup
	pulls    *puller
	base     context.Context // of all background work
	abort    context.CancelFunc
	replicas *replicas  // nil unless other processes share the spool
	where    string     // place of the queue, for the log
	cutting  sync.Mutex // serializes cuts: two would remove the same excess twice

	mu     sync.Mutex // protects the fields below
	held   ledger.Sizes
	totals ledger.Totals
	drops  map[string]*drops // logged drops, by reason
}

func openOutbox(k *ownFile, o *Options, stop chan struct{}, redact func(string) string, t deliver.Timing, openFor time.Duration) (*outbox, error) {
	k.Copied()
	b := &outbox{ownFile: k, where: "data_dir", memory: o.Graph, spool: k.Store(), stop: stop, ended: make(chan struct{})}
	b.base, b.abort = context.WithCancel(context.Background())
	b.pulls = newPuller(b.base, k, o, redact)
	b.loop = deliver.New(deliver.Options{
		Ledger: queue{b}, Memory: o.Graph, Apart: o.Apart, Verify: o.Verify,
		Timing: t, Timeout: o.Timeout, OpenFor: openFor,
		OnDelivered: o.OnDelivered, OnStored: o.OnStored, Redact: redact, Log: o.Log,
		OnSeen: b.seen,
	})
	if o.Shared != nil {
		b.join(o.Shared)
		b.where = "redis"
	}
	b.Withhold(o.Withheld)
	if b.replicas == nil {
		if err := b.deliver(b.base); err != nil {
			b.abort()
			return nil, err
		}
	}
	b.worker.Go(func() { everyMinute(stop, b.upkeepNow) })
	if b.replicas != nil {
		go b.runElection()
		b.worker.Go(b.handOver)
		b.pulls.done.Go(b.keepTheirs)
	}
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

// seen has the facts of listed episodes read, also by other replicas.
func (b *outbox) seen(group string, episodes []graphiti.Row) {
	list := make([]ledger.Unread, len(episodes))
	for i := range episodes {
		list[i] = ledger.NewUnread(group, &episodes[i])
		if b.replicas != nil {
			if err := b.replicas.publish(b.base, eventSeen, &list[i]); err != nil {
				b.log.Debug("tell other replicas of facts failed", "error", err)
			}
		}
	}
	b.pulls.seen(list)
}

// Add stores turns and wakes delivery. Replicas move the copies to their queue.
func (b *outbox) Add(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	all, err := b.add(ctx, turns, b.Ledger.Add)
	if err != nil {
		return nil, err
	}
	if b.replicas != nil {
		b.replicas.ask()
		return all, nil
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

// CutOff also tells the other replicas, unless Redis is unreachable.
func (b *outbox) CutOff(ctx context.Context, t *ledger.Turn) error {
	if b.replicas != nil {
		_ = b.spool.CutOff(ctx, t, time.Now()) // the ledger has the record
	}
	return b.ownFile.CutOff(ctx, t)
}

func (b *outbox) apply(paused bool) {
	o := b.opts()
	b.loop.Set(o.timing(), o.Timeout, paused)
	b.pulls.pause(paused)
	if b.replicas != nil {
		b.replicas.spool.Bound(o.MaxTurns, o.MaxBytes)
	}
	b.makeRoom()
}

// close stops delivery. b.stop must be closed.
func (b *outbox) close(ctx context.Context) error {
	defer context.AfterFunc(ctx, b.abort)()
	b.worker.Wait()
	if b.replicas != nil {
		_ = b.flushLocalQueue(b.base) // warnOfLocal reports what stays
	}
	b.loop.Wait()
	close(b.ended)
	b.abort()
	b.pulls.done.Wait()
	if b.replicas != nil {
		<-b.replicas.ended
	}
	b.mu.Lock()
	b.logDropsLocked(0)
	waiting := b.held.Pending.Turns
	b.mu.Unlock()
	if waiting > 0 {
		b.log.Info("undelivered turns stay in the queue, and are delivered after the next start", "turns", waiting, "queue", b.where)
	}
	if b.replicas != nil {
		b.warnOfLocal()
	}
	return b.ownFile.close(ctx)
}
