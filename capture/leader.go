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
	name  string
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
	Name      string
	UnderWay  int
	Lost      int
	Failing   *time.Time
	Stalled   *time.Time
	Unlisted  *time.Time
	Diagnosis graphiti.Diagnosis
	Breaker   string
	LastError string
	Remedy    string
}

// join makes a pipeline share the queue in Redis; local is its own ledger.
func (p *Pipeline) join(local *ledger.Ledger) {
	all := replica.New(p.opts().Shared.DB, p.opts().MaxTurns, p.opts().MaxBytes)
	p.spool = all
	p.replicas = &replicas{
		name: p.opts().Shared.Name, local: local, spool: all,
		ended: make(chan struct{}), asked: make(chan struct{}),
	}
	p.promoted = make(map[string]bool)
}

// replicaStatusLocked adds the replicas' state.
func (p *Pipeline) replicaStatusLocked(s *QueueStatus) {
	t := p.replicas
	if t == nil {
		return
	}
	s.Replica, s.Here, s.Dropped = t.name, t.waits, s.Dropped+t.dropped
	s.Deliverer, s.Delivers = t.report.Name, t.leading
	switch {
	case t.leading:
		s.Deliverer = t.name
	case t.report.Name == t.name: // from before
		s.Deliverer = ""
	case t.report.Name != "":
		s.UnderWay, s.Lost, s.Breaker = t.report.UnderWay, t.report.Lost, t.report.Breaker
		s.Failing, s.Stalled, s.LastError = t.report.Failing, t.report.Stalled, t.report.LastError
		s.Remedy, s.Unlisted, s.Diagnosis = t.report.Remedy, t.report.Unlisted, t.report.Diagnosis
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
func (p *Pipeline) runElection() {
	t := p.replicas
	defer close(t.ended)
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	for {
		err := contained(func() error { return errors.Join(p.electOnce(), p.boundLocal(context.Background())) })
		if err != nil && !errors.Is(err, redis.ErrDown) {
			p.opts().Log.Warn("cannot work on the shared queue", "error", err)
		}
		select {
		case <-tick.C:
		case <-t.asked:
		case <-p.ended:
			p.stepDown()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = t.spool.LeaveLease(ctx) // it ends by itself
			return
		}
	}
}

func (p *Pipeline) electOnce() error {
	t, ctx := p.replicas, context.Background()
	p.mu.Lock()
	leading, stale := t.leading, !t.leading && t.leave != nil
	p.mu.Unlock()
	if stale {
		p.stepDown()
	}
	began := time.Now()
	switch {
	case leading:
		held, isWanted, err := t.spool.KeepLease(ctx)
		switch {
		case err != nil:
			return err // the timer decides
		case held && (!isWanted || t.wanted.Load() > 0): // the other has to wait
			p.mu.Lock()
			t.until.Reset(time.Until(began.Add(replica.LeaseFor - leadMargin)))
			p.mu.Unlock()
		default:
			p.stepDown()
			_ = t.spool.LeaveLease(ctx) // it ends by itself
		}
	case p.stopped(): // a process that ends takes no lease
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
		if err := p.takeOver(began); err != nil {
			p.stepDown()
			return errors.Join(err, t.spool.LeaveLease(ctx))
		}
	}
	return errors.Join(p.refresh(ctx), p.flushLocalQueue(ctx))
}

// takeOver starts delivery with the lease that was taken at began.
func (p *Pipeline) takeOver(began time.Time) error {
	t := p.replicas
	ctx, cancel := context.WithCancel(p.base)
	p.mu.Lock()
	t.leave = cancel
	p.mu.Unlock()
	if err := p.deliver(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	t.leading, t.led = true, ctx
	t.until = time.AfterFunc(time.Until(began.Add(replica.LeaseFor-leadMargin)), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.leading = false
		cancel()
	})
	p.mu.Unlock()
	t.busy.Add(1)
	// Ends when leave is called.
	go p.followStream(ctx)
	p.opts().Log.Info("became leader: this replica delivers turns")
	return nil
}

// followStream wakes delivery when any replica has added turns.
func (p *Pipeline) followStream(ctx context.Context) {
	defer p.replicas.busy.Done()
	for ctx.Err() == nil {
		err := contained(func() error { return p.replicas.spool.Follow(ctx, leadEvery, p.loop.Wake) })
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// stepDown ends delivery here. It returns when nothing is in flight.
func (p *Pipeline) stepDown() {
	t := p.replicas
	p.mu.Lock()
	was := t.leave
	t.leading = false
	if was != nil {
		was()
	}
	if t.until != nil {
		t.until.Stop()
	}
	p.mu.Unlock()
	t.busy.Wait()
	p.loop.Wait()
	p.mu.Lock()
	t.leave, t.until, t.report = nil, nil, report{}
	p.mu.Unlock()
	if was != nil {
		p.opts().Log.Info("no longer leader: another replica delivers turns")
	}
}

// leadsLocked reports whether this process delivers.
func (p *Pipeline) leadsLocked() bool { return p.replicas == nil || p.replicas.leading }

// asLeader waits until this process is the leader, and keeps it the leader until
// release is called. The context that it returns ends with the leadership.
func (p *Pipeline) asLeader(ctx context.Context) (_ context.Context, release func(), err error) {
	t := p.replicas
	if t == nil {
		return ctx, func() {}, nil
	}
	t.wanted.Add(1)
	for {
		p.mu.Lock()
		if t.leading {
			t.busy.Add(1)
			led := t.led
			p.mu.Unlock()
			ctx, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(led, cancel)
			return ctx, func() {
				stop()
				cancel()
				t.wanted.Add(-1)
				t.busy.Done()
			}, nil
		}
		p.mu.Unlock()
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
func (p *Pipeline) refresh(ctx context.Context) error {
	t := p.replicas
	sizes, totals, err := t.spool.Counts(ctx)
	if err != nil {
		return err
	}
	promoted, err := t.spool.Promoted(ctx)
	if err != nil {
		return err
	}
	d := p.loop.Status()
	p.mu.Lock()
	p.held, p.totals, p.promoted = sizes, totals, promoted
	leading := t.leading
	if leading {
		t.report = reportOf(t.name, &d)
	}
	mine := t.report
	p.mu.Unlock()
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
	p.mu.Lock()
	t.report = theirs
	p.mu.Unlock()
	return err
}

func reportOf(name string, d *deliver.Status) report {
	return report{
		Name: name, UnderWay: d.InFlight, Lost: d.Lost, Breaker: d.Breaker,
		Failing: at(d.Failing), LastError: d.LastError, Remedy: d.Remedy,
		Stalled: at(d.Stalled), Unlisted: at(d.Unlisted), Diagnosis: d.Diagnosis,
	}
}

// flushLocalQueue moves the turns of the local queue to Redis. The stream leaves
// out a turn that another replica has added already.
func (p *Pipeline) flushLocalQueue(ctx context.Context) error {
	t := p.replicas
	if err := p.flushCutTurns(ctx); err != nil {
		return err
	}
	for {
		var seqs []int64
		err := t.local.Undelivered(ctx, chunk, func(group, said string, born time.Time, e ledger.Entry) error {
			_, err := t.spool.Append(ctx, &e.Turn, said, graphiti.Target{Scope: e.Scope, Group: group}, born)
			if err == nil {
				seqs = append(seqs, e.Seq)
			}
			return err
		})
		if moved := t.local.Remove(seqs); moved != nil {
			return errors.Join(err, moved)
		}
		if len(seqs) > 0 {
			p.opts().Log.Info("flushed local queue to redis", "turns", len(seqs))
		}
		if err != nil || len(seqs) < chunk {
			return err
		}
	}
}

// warnOfLocal warns at the end of turns that only this replica holds.
func (p *Pipeline) warnOfLocal() {
	n, err := p.replicas.local.Sizes(context.Background())
	if err == nil && n.Pending.Turns > 0 {
		p.opts().Log.Warn("turns are left in this replica's data_dir and nowhere else: keep it, and start a replica there again", "turns", n.Pending.Turns)
	}
}

// boundLocal keeps the local queue within its limits.
func (p *Pipeline) boundLocal(ctx context.Context) error {
	n, err := p.replicas.local.Sizes(ctx)
	if err != nil {
		return err
	}
	t, err := p.replicas.local.Totals()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.replicas.waits, p.replicas.dropped = n.Pending.Turns, t.Dropped
	p.mu.Unlock()
	over := p.opts().over(n)
	if over == (ledger.Size{}) {
		return nil
	}
	gone, err := p.replicas.local.Cut(over)
	p.evicted.Add(int64(gone.All().Turns))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countDropsLocked(gone.All().Turns, "redis is down, and this replica's own queue is full; the oldest turns were dropped")
	p.logDropsLocked(time.Minute)
	return err
}

// stopped reports whether no more turns are taken.
func (p *Pipeline) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
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
