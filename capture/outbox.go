package capture

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/justsaid"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// outbox stores turns for a remote memory and delivers them, until their delivery is
// verified.
type outbox struct {
	*settings
	promoted
	memory   deliver.Backend
	log      *slog.Logger
	spool    ledger.Store
	disk     *ledger.Ledger // this process's own file; the same as spool unless replicas share it
	loop     *deliver.Loop
	evicted  atomic.Int64  // turns dropped because of the spool's limits
	stop     chan struct{} // closed by Shutdown
	ended    chan struct{} // closed when delivery has stopped
	worker   sync.WaitGroup
	base     context.Context // of all background work
	abort    context.CancelFunc
	replicas *replicas // nil unless other processes share the spool
	recent   newest
	cutting  sync.Mutex // serializes cuts: two would remove the same excess twice

	mu     sync.Mutex // protects the fields below
	held   ledger.Sizes
	totals ledger.Totals
	drops  map[string]*drops // logged drops, by reason
}

func openOutbox(set *settings, o *Options, stop chan struct{}, redact func(string) string, t deliver.Timing, openFor time.Duration) (*outbox, error) {
	s, err := ledger.Open(o.Path)
	if err != nil {
		return nil, err
	}
	b := &outbox{settings: set, memory: o.Memory, log: o.Log, spool: s.Store(), disk: s, stop: stop, ended: make(chan struct{}), promoted: promoted{groups: make(map[string]bool)}}
	b.base, b.abort = context.WithCancel(context.Background())
	b.loop = deliver.New(deliver.Options{
		Ledger: queue{b}, Memory: o.Memory, Apart: o.Apart, Verify: o.Verify,
		Timing: t, Timeout: o.Timeout, OpenFor: openFor,
		OnDelivered: o.OnDelivered, OnStored: o.OnStored, Redact: redact, Log: o.Log,
		OnSeen: func(group string, ids map[string]string) { b.recent.Seen(group, ids) },
	})
	if o.Shared != nil {
		b.join(o.Shared, s)
	}
	b.recent = b.openRecent(o.Path)
	b.Withhold(o.Withheld, false)
	if b.replicas == nil {
		if err := b.deliver(b.base); err != nil {
			b.abort()
			return nil, errors.Join(err, b.recent.Close(), s.Close())
		}
	}
	b.worker.Go(func() { everyMinute(stop, b.upkeepNow) })
	if b.replicas != nil {
		go b.runElection()
	}
	return b, nil
}

// others is the interval at which the index checks the outbox for turns of other replicas.
const others = 500 * time.Millisecond

// newest is the index of the turns that the memory may not have processed.
type newest interface {
	Wake()
	Search(ctx context.Context, group, query string, max int) ([]graphiti.Fact, error)
	Block(groups []string, missed bool)
	Seen(group string, ids map[string]string)
	Close() error
}

// noneNewest is an empty index.
type noneNewest struct{}

func (noneNewest) Wake()                          {}
func (noneNewest) Block([]string, bool)           {}
func (noneNewest) Seen(string, map[string]string) {}
func (noneNewest) Close() error                   { return nil }
func (noneNewest) Search(context.Context, string, string, int) ([]graphiti.Fact, error) {
	return nil, nil
}

// openRecent opens an index that follows the outbox. Its file is next to the spool's file.
func (b *outbox) openRecent(spool string) newest {
	o := justsaid.Options{
		Path: filepath.Join(filepath.Dir(spool), "recent.db"), Outbox: b.spool, Log: b.log,
		For: func() time.Duration { return b.opts().RecentFor },
		Say: func(t *ledger.Turn, scope graphiti.Scope) []graphiti.Row {
			return messagesOf(t, scope, 0, b.opts().MaxChars, time.Now())
		},
	}
	if b.replicas != nil {
		o.Every = others
	}
	x, err := justsaid.Open(o)
	if err != nil {
		o.Log.Warn("open index of recent messages failed, they are not found until Graphiti has processed them", "error", err)
		return noneNewest{}
	}
	return x
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
	promoted, err := b.spool.Promoted(context.Background())
	if err != nil {
		return err
	}
	b.set(promoted)
	b.mu.Lock()
	b.held, b.totals = held, totals
	b.mu.Unlock()
	return b.loop.Start(ctx, b.stop, deliver.Known{Instance: instance, Listed: totals.Verified > 0})
}

// Add stores turns and wakes delivery. If replicas share a spool, Add stores the turns
// there, or locally while Redis is unreachable.
func (b *outbox) Add(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	all, err := b.spool.Add(ctx, turns, time.Now())
	if err != nil && b.replicas != nil && ctx.Err() == nil {
		all, err = b.replicas.local.Add(ctx, turns, time.Now())
	}
	if err != nil {
		return nil, err
	}
	b.note(turns, all)
	b.recent.Wake()
	b.mu.Lock()
	for i := range turns {
		for _, g := range all[i].Groups {
			if b.replicas == nil { // else the leader finds them in the stream
				b.loop.Wake(g, !turns[i].Backfill)
			}
		}
		b.held.Pending = b.held.Pending.Plus(all[i].Size)
	}
	if b.replicas != nil {
		b.held = b.replicas.spool.Held()
	}
	over := b.opts().over(b.held)
	b.mu.Unlock()
	if over != (ledger.Size{}) {
		b.makeRoom()
	}
	return all, nil
}

// CutOff stores the record locally while Redis is unreachable.
func (b *outbox) CutOff(ctx context.Context, t *ledger.Turn) error {
	err := b.spool.CutOff(ctx, t, time.Now())
	if err != nil && b.replicas != nil && ctx.Err() == nil {
		return b.replicas.local.CutOff(ctx, t, time.Now())
	}
	return err
}

func (b *outbox) Whole(ctx context.Context, turns []ledger.Turn) ([]bool, error) {
	return b.spool.Whole(ctx, turns)
}

func (b *outbox) apply(paused bool) {
	o := b.opts()
	b.loop.Set(o.timing(), o.Timeout, paused)
	if b.replicas != nil {
		b.replicas.spool.Bound(o.MaxTurns, o.MaxBytes)
	}
	b.makeRoom()
}

// close stops delivery and closes the file. b.stop must be closed.
func (b *outbox) close(ctx context.Context) error {
	defer context.AfterFunc(ctx, b.abort)()
	b.worker.Wait()
	b.loop.Wait()
	ended := b.recent.Close()
	close(b.ended)
	b.abort()
	if b.replicas != nil {
		<-b.replicas.ended
	}
	b.mu.Lock()
	b.logDropsLocked(0)
	b.mu.Unlock()
	if b.replicas != nil {
		b.warnOfLocal()
		return errors.Join(ended, b.replicas.local.Close())
	}
	return errors.Join(ended, b.spool.Close())
}

// Fault implements Groups.
func (b *outbox) Fault() *sqlite.Fault { return b.disk.Fault() }

// Check implements Groups.
func (b *outbox) Check() *sqlite.Fault { return b.disk.Check() }
