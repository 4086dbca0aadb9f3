package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/replica"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// leadEvery is how often the leader renews its lease, and the others try to
	// take it.
	leadEvery = time.Second

	// leadMargin is how long before its lease ends a leader stops delivering.
	leadMargin = time.Second

	// chunk is how many turns one step moves from the local queue to Redis.
	chunk = 200
)

// Shared is the state that replicas share.
type Shared struct {
	DB   *redis.DB
	Name string // of this replica, for people
}

// replicas is what a pipeline holds where several replicas share a queue: all
// of them add turns, and the leader delivers them.
//
//	following ──lease taken──► taking over ──read──► leading
//	    ▲                                               │
//	    └──calls ended◄── stepping down ◄──lease lost, wanted, or Redis gone
type replicas struct {
	*Shared
	local *ledger.Ledger // holds turns while Redis is down
	spool *replica.Queue

	ended  chan struct{}
	asked  chan struct{}  // wakes the election
	busy   sync.WaitGroup // work that only a leader may do
	wanted atomic.Int32   // callers of asLeader

	// Guarded by Pipeline.mu.
	leading bool
	led     context.Context    // ends with the leadership
	leave   context.CancelFunc // ends led
	until   *time.Timer        // calls leave before the lease ends
	report  report             // the leader's, as it was read last
	waits   int                // turns in local
	dropped int                // from local
}

// report is what a leader tells the others.
type report struct {
	Name string
	deliver.Status
}

// join makes a pipeline share the queue in Redis; local is its own ledger.
func (b *outbox) join(shared *Shared, local *ledger.Ledger) {
	all := replica.New(shared.DB, b.opts().MaxTurns, b.opts().MaxBytes)
	b.spool = all.Store()
	b.replicas = &replicas{
		Shared: shared, local: local, spool: all,
		ended: make(chan struct{}), asked: make(chan struct{}),
	}
}

// replicaStatusLocked adds the replicas' state.
func (b *outbox) replicaStatusLocked(s *QueueStatus) {
	t := b.replicas
	if t == nil {
		return
	}
	s.Replica, s.Here, s.Dropped = t.Name, t.waits, s.Dropped+t.dropped
	s.Deliverer, s.Delivers = t.report.Name, t.leading
	switch {
	case t.leading:
		s.Deliverer = t.Name
	case t.report.Name == t.Name: // from before
		s.Deliverer = ""
	case t.report.Name != "":
		s.delivery(&t.report.Status)
	}
	if d := t.spool.Down(); d != nil {
		s.SharedDown, s.SharedError = &d.Since, d.Why
		if !d.Full {
			s.Deliverer, s.Delivers = "", false
		}
	}
}

// runElection takes the lease or renews it, and flushes the local queue to
// Redis, until the pipeline ends.
func (b *outbox) runElection() {
	t := b.replicas
	defer close(t.ended)
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	for {
		err := contained(func() error { return errors.Join(b.electOnce(), b.boundLocal(context.Background())) })
		if err != nil && !errors.Is(err, redis.ErrDown) {
			b.log.Warn("cannot work on the shared queue", "error", err)
		}
		select {
		case <-tick.C:
		case <-t.asked:
		case <-b.ended:
			b.stepDown()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = t.spool.LeaveLease(ctx) // it ends by itself
			return
		}
	}
}

func (b *outbox) electOnce() error {
	t, ctx := b.replicas, context.Background()
	b.mu.Lock()
	leading, stale := t.leading, !t.leading && t.leave != nil
	b.mu.Unlock()
	if stale {
		b.stepDown()
	}
	began := time.Now()
	switch {
	case leading:
		held, isWanted, err := t.spool.KeepLease(ctx)
		switch {
		case err != nil:
			return err // the timer decides
		case held && (!isWanted || t.wanted.Load() > 0): // the other has to wait
			b.mu.Lock()
			t.until.Reset(time.Until(began.Add(replica.LeaseFor - leadMargin)))
			b.mu.Unlock()
		default:
			b.stepDown()
			_ = t.spool.LeaveLease(ctx) // it ends by itself
		}
	case b.stopped(): // a process that ends takes no lease
	default:
		take := t.spool.TakeLease
		if t.wanted.Load() > 0 {
			take = t.spool.AskForLease
		}
		held, err := take(ctx)
		if err != nil {
			return err
		}
		if !held {
			break
		}
		if err := b.takeOver(began); err != nil {
			b.stepDown()
			return errors.Join(err, t.spool.LeaveLease(ctx))
		}
	}
	return errors.Join(b.refresh(ctx), b.flushLocalQueue(ctx))
}

// takeOver starts delivery with the lease that was taken at began.
func (b *outbox) takeOver(began time.Time) error {
	t := b.replicas
	ctx, cancel := context.WithCancel(b.base)
	b.mu.Lock()
	t.leave = cancel
	b.mu.Unlock()
	if err := b.deliver(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	t.leading, t.led = true, ctx
	t.until = time.AfterFunc(time.Until(began.Add(replica.LeaseFor-leadMargin)), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.leading = false
		cancel()
	})
	b.mu.Unlock()
	t.busy.Add(1)
	// Ends when leave is called.
	go b.followStream(ctx)
	b.log.Info("became leader: this replica delivers turns")
	return nil
}

// followStream wakes delivery when any replica has added turns.
func (b *outbox) followStream(ctx context.Context) {
	defer b.replicas.busy.Done()
	for ctx.Err() == nil {
		err := contained(func() error { return b.replicas.spool.Follow(ctx, leadEvery, b.loop.Wake) })
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// stepDown ends delivery here. It returns when nothing is in flight.
func (b *outbox) stepDown() {
	t := b.replicas
	b.mu.Lock()
	was := t.leave
	t.leading = false
	if was != nil {
		was()
	}
	if t.until != nil {
		t.until.Stop()
	}
	b.mu.Unlock()
	t.busy.Wait()
	b.loop.Wait()
	b.mu.Lock()
	t.leave, t.until, t.report = nil, nil, report{}
	b.mu.Unlock()
	if was != nil {
		b.log.Info("no longer leader: another replica delivers turns")
	}
}

// leadsLocked reports whether this process delivers.
func (b *outbox) leadsLocked() bool { return b.replicas == nil || b.replicas.leading }

// asLeader waits until this process is the leader, and keeps it the leader until
// release is called. The context that it returns ends with the leadership.
func (b *outbox) asLeader(ctx context.Context) (_ context.Context, release func(), err error) {
	t := b.replicas
	if t == nil {
		return ctx, func() {}, nil
	}
	t.wanted.Add(1)
	for {
		b.mu.Lock()
		if t.leading {
			t.busy.Add(1)
			led := t.led
			b.mu.Unlock()
			ctx, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(led, cancel)
			return ctx, func() {
				stop()
				cancel()
				t.wanted.Add(-1)
				t.busy.Done()
			}, nil
		}
		b.mu.Unlock()
		select {
		case t.asked <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
			t.wanted.Add(-1)
			if d := t.spool.Down(); d != nil {
				return nil, nil, fmt.Errorf("redis is down since %s: %s", d.Since.Format(time.RFC3339), d.Why)
			}
			return nil, nil, fmt.Errorf("wait for the replica that delivers: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// refresh reads what other replicas have changed. A leader reports its state.
func (b *outbox) refresh(ctx context.Context) error {
	t := b.replicas
	sizes, totals, err := t.spool.Counts(ctx)
	if err != nil {
		return err
	}
	promoted, err := t.spool.Promoted(ctx)
	if err != nil {
		return err
	}
	b.set(promoted)
	d := b.loop.Status()
	b.mu.Lock()
	b.held, b.totals = sizes, totals
	leading := t.leading
	if leading {
		t.report = report{t.Name, d}
	}
	mine := t.report
	b.mu.Unlock()
	if leading {
		body, err := json.Marshal(mine)
		if err != nil {
			return err
		}
		return t.spool.Report(ctx, body)
	}
	var theirs report
	body, err := t.spool.Reported(ctx)
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &theirs)
	}
	b.mu.Lock()
	t.report = theirs
	b.mu.Unlock()
	return err
}

// flushLocalQueue moves the turns of the local queue to Redis. The stream leaves
// out a turn that another replica has added already.
func (b *outbox) flushLocalQueue(ctx context.Context) error {
	t := b.replicas
	if err := b.flushCutTurns(ctx); err != nil {
		return err
	}
	for {
		var seqs []int64
		err := t.local.Undelivered(ctx, chunk, func(e ledger.Entry, said string, born time.Time) error {
			_, err := t.spool.Append(ctx, &e.Turn, said, graphiti.Target{Scope: e.Scope, Group: e.Group}, born)
			if err == nil {
				seqs = append(seqs, e.Seq)
			}
			return err
		})
		if moved := t.local.HandedOver(seqs); moved != nil {
			return errors.Join(err, moved)
		}
		if len(seqs) > 0 {
			b.log.Info("flushed local queue to redis", "turns", len(seqs))
		}
		if err != nil || len(seqs) < chunk {
			return err
		}
	}
}

// flushCutTurns moves what the local ledger knows of cut turns to Redis.
func (b *outbox) flushCutTurns(ctx context.Context) error {
	for {
		list, err := b.replicas.local.Cuts(ctx, chunk)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := b.replicas.spool.NoteCuts(ctx, list); err != nil {
			return err
		}
		if err := b.replicas.local.RemoveCuts(list); err != nil {
			return err
		}
	}
}

// warnOfLocal warns at the end of turns that only this replica holds.
func (b *outbox) warnOfLocal() {
	n, err := b.replicas.local.Sizes(context.Background())
	if err == nil && n.Pending.Turns > 0 {
		b.log.Warn("turns are left in this replica's data_dir and nowhere else: keep it, and start a replica there again", "turns", n.Pending.Turns)
	}
}

// boundLocal keeps the local queue within its limits.
func (b *outbox) boundLocal(ctx context.Context) error {
	n, err := b.replicas.local.Sizes(ctx)
	if err != nil {
		return err
	}
	t, err := b.replicas.local.Totals()
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.replicas.waits, b.replicas.dropped = n.Pending.Turns, t.Dropped
	b.mu.Unlock()
	over := b.opts().over(n)
	if over == (ledger.Size{}) {
		return nil
	}
	gone, err := b.replicas.local.Cut(over)
	b.evicted.Add(int64(gone.All().Turns))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countDropsLocked(gone.All().Turns, "redis is down, and this replica's own queue is full; the oldest turns were dropped")
	b.logDropsLocked(time.Minute)
	return err
}

// stopped reports whether no more turns are taken.
func (b *outbox) stopped() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

// contained turns a panic into an error: the loop goes on.
func contained(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("work on the shared queue panicked: %v", r)
		}
	}()
	return f()
}
