package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	// leadEvery is the interval at which the leader renews its lease and other replicas try
	// to take it.
	leadEvery = time.Second

	// leadMargin is how long before the end of its lease a leader stops delivering.
	leadMargin = time.Second

	// chunk is the most turns moved from the local queue to Redis in one step.
	chunk = 200
)

// Shared is the state that replicas share.
type Shared struct {
	DB   *redis.DB
	Name string // of this replica, for display
}

// replicas is the state of an outbox that shares its queue with other replicas: all
// replicas add turns, and the leader delivers them.
//
//	following ──lease taken──► taking over ──read──► leading
//	    ▲                                               │
//	    └──calls ended◄── stepping down ◄──lease lost, wanted, or Redis gone
type replicas struct {
	*Shared
	spool *replica.Queue

	ended   chan struct{}
	asked   chan struct{} // wakes the election
	added   chan struct{} // wakes handOver; capacity 1: further wakes add nothing
	theirs  chan ledger.Turn
	busy    sync.WaitGroup // work that requires leadership
	wanted  atomic.Int32   // callers of asLeader
	handing sync.Mutex     // held while turns move from the ledger to Redis

	// Protected by outbox.mu.
	leading bool
	led     context.Context    // done when the leadership ends
	leave   context.CancelFunc // ends led
	until   *time.Timer        // calls leave before the lease ends
	report  report             // last known report of the leader
	waits   int                // number of turns that only the ledger has
	dropped int                // copies dropped from it
}

// report is the leader's state, published to the other replicas.
type report struct {
	Name string
	deliver.Progress
}

// join makes an outbox share the queue in Redis.
func (b *outbox) join(shared *Shared) {
	all := replica.New(shared.DB, b.opts().MaxTurns, b.opts().MaxBytes)
	b.spool = all.Store()
	b.replicas = &replicas{Shared: shared, spool: all, ended: make(chan struct{}), asked: make(chan struct{}), added: make(chan struct{}, 1), theirs: make(chan ledger.Turn, 10*chunk)}
}

// The beginnings of the events of a turn that a replica has stored, and of an episode that
// Graphiti lists.
const (
	eventTurn = "turn "
	eventSeen = "seen "
)

// sharedTurn is a turn of one group in such an event.
type sharedTurn struct {
	graphiti.Target
	Turn ledger.Turn
}

// Apply implements Queue.
func (b *outbox) Apply(event string) {
	if body, ok := strings.CutPrefix(event, eventSeen); ok {
		var u ledger.Unread
		if json.Unmarshal([]byte(body), &u) == nil && !b.leads() {
			b.pulls.seen([]ledger.Unread{u})
		}
	}
	body, ok := strings.CutPrefix(event, eventTurn)
	if !ok {
		return
	}
	var t sharedTurn
	if err := json.Unmarshal([]byte(body), &t); err != nil {
		b.log.Warn("read the turn of another replica failed", "error", err)
		return
	}
	t.Turn.Targets = []graphiti.Target{t.Target}
	select {
	case b.replicas.theirs <- t.Turn:
	case <-b.base.Done():
	}
}

// keepTheirs stores the turns of other replicas until the outbox closes.
func (b *outbox) keepTheirs() {
	for {
		var turns []ledger.Turn
		select {
		case <-b.base.Done():
			return
		case t := <-b.replicas.theirs:
			turns = append(turns, t)
		}
		for len(b.replicas.theirs) > 0 && len(turns) < chunk {
			turns = append(turns, <-b.replicas.theirs)
		}
		if err := contained(func() error { _, err := b.add(b.base, turns, b.Keep); return err }); err != nil {
			b.log.Warn("store the turns of other replicas failed", "error", err)
		}
	}
}

// share moves a turn to the queue of the replicas, and tells the others.
func (t *replicas) share(ctx context.Context, e *ledger.Entry, said string, born time.Time) error {
	target := graphiti.Target{Scope: e.Scope, Group: e.Group}
	if _, err := t.spool.Append(ctx, &e.Turn, said, target, born); err != nil {
		return err
	}
	return t.publish(ctx, eventTurn, sharedTurn{target, e.Turn})
}

// publish publishes an event.
func (t *replicas) publish(ctx context.Context, kind string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.DB.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		return redis.Publish(ctx, c, kind+string(body)).Err()
	})
}

// retract deletes the events of the turns of a part that are older than a generation.
func (t *replicas) retract(ctx context.Context, part ledger.Part, generation int64) error {
	return t.DB.Retract(ctx, func(event string) bool {
		body, ok := strings.CutPrefix(event, eventTurn)
		var one sharedTurn
		return ok && json.Unmarshal([]byte(body), &one) == nil && one.Group == part.Group && one.Turn.Generation < generation &&
			(part.Session+part.Message == "" || part.Means(&one.Turn))
	})
}

// ask wakes handOver.
func (t *replicas) ask() {
	select {
	case t.added <- struct{}{}:
	default:
	}
}

// handOver moves new turns to the queue of the replicas until the outbox closes.
func (b *outbox) handOver() {
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	for {
		err := contained(func() error { return b.flushLocalQueue(b.base) })
		if err != nil && !errors.Is(err, redis.ErrDown) && b.base.Err() == nil {
			b.log.Warn("share turns with other replicas failed", "error", err)
		}
		select {
		case <-b.stop:
			return
		case <-b.replicas.added:
		case <-tick.C:
		}
	}
}

// replicaStatusLocked sets the replica fields of a status.
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
	case t.report.Name == t.Name: // a report from an earlier leadership
		s.Deliverer = ""
	case t.report.Name != "":
		s.delivery(&t.report.Progress)
	}
	if d := t.spool.Down(); d != nil {
		s.SharedDown, s.SharedError = &d.Since, d.Why
		if !d.Full {
			s.Deliverer, s.Delivers = "", false
		}
	}
}

// runElection takes or renews the lease until the outbox closes.
func (b *outbox) runElection() {
	t := b.replicas
	defer close(t.ended)
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	for {
		err := contained(func() error { return errors.Join(b.electOnce(), b.boundLocal(context.Background())) })
		if err != nil && !errors.Is(err, redis.ErrDown) {
			b.log.Warn("access to the shared queue failed", "error", err)
		}
		select {
		case <-tick.C:
		case <-t.asked:
		case <-b.ended:
			b.stepDown()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = t.spool.LeaveLease(ctx) // on error it expires
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
			return err // the timer in takeOver handles the loss
		case held && (!isWanted || t.wanted.Load() > 0): // the other replica has to wait
			b.mu.Lock()
			t.until.Reset(time.Until(began.Add(replica.LeaseFor - leadMargin)))
			b.mu.Unlock()
		default:
			b.stepDown()
			_ = t.spool.LeaveLease(ctx) // on error it expires
		}
	case b.stopped(): // a closing process takes no lease
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
	return b.refresh(ctx)
}

// takeOver starts delivery under the lease taken at began.
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

// followStream wakes delivery when any replica adds turns.
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

// stepDown stops delivery on this replica. It returns when no call is in progress.
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

func (b *outbox) leads() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leadsLocked()
}

// leadsLocked reports whether this process delivers.
func (b *outbox) leadsLocked() bool { return b.replicas == nil || b.replicas.leading }

// asLeader waits until this process is the leader, and keeps it the leader until release is
// called. The returned context ends with the leadership.
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

// refresh reads the state shared by the replicas. The leader also publishes its report.
func (b *outbox) refresh(ctx context.Context) error {
	t := b.replicas
	sizes, totals, err := t.spool.Counts(ctx)
	if err != nil {
		return err
	}
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

// flushLocalQueue moves the copies that wait in the ledger to Redis, within the limits of its
// queue. The stream skips turns that another replica has already added.
func (b *outbox) flushLocalQueue(ctx context.Context) error {
	b.replicas.handing.Lock()
	defer b.replicas.handing.Unlock()
	for {
		var seqs []int64
		err := b.Undelivered(ctx, chunk, func(e ledger.Entry, said string, born time.Time) error {
			err := b.replicas.share(ctx, &e, said, born)
			if err == nil {
				seqs = append(seqs, e.Seq)
			}
			return err
		})
		if len(seqs) > 0 {
			err = errors.Join(err, b.HandedOver(seqs))
			b.mu.Lock()
			b.held = b.replicas.spool.Held()
			over := b.opts().over(b.held)
			b.mu.Unlock()
			if over != (ledger.Size{}) {
				b.makeRoom()
			}
		}
		if err != nil {
			return err
		}
		if len(seqs) < chunk {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.replicas.waits = 0
			return nil
		}
	}
}

// warnOfLocal logs turns that only this replica has.
func (b *outbox) warnOfLocal() {
	n, err := b.Sizes(context.Background())
	if err == nil && n.Pending.Turns > 0 {
		b.log.Warn("turns remain only in this replica's data_dir: preserve it and start a replica there again", "turns", n.Pending.Turns)
	}
}

// boundLocal enforces the limits of the local queue.
func (b *outbox) boundLocal(ctx context.Context) error {
	b.replicas.handing.Lock()
	defer b.replicas.handing.Unlock()
	n, err := b.Sizes(ctx)
	if err != nil {
		return err
	}
	t, err := b.Totals()
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
	gone, err := b.Cut(over)
	b.evicted.Add(int64(gone.All().Turns))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countDropsLocked(gone.All().Turns, "redis is down, and this replica's own queue is full; the oldest turns were dropped")
	b.logDropsLocked(time.Minute)
	return err
}

// stopped reports whether Shutdown has begun.
func (b *outbox) stopped() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

// contained converts a panic into an error.
func contained(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("work on the shared queue panicked: %v", r)
		}
	}()
	return f()
}
