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
	// leadEvery is how often the lease is renewed, or sought.
	leadEvery = time.Second

	// leadMargin is how long before its lease ends a replica stops to deliver.
	leadMargin = time.Second

	// chunk is how many turns are moved to the others at a time.
	chunk = 200
)

// Shared is the state that replicas share.
type Shared struct {
	DB   *redis.DB
	Name string // of this replica, for people
}

// team is what a pipeline needs where several replicas share a spool: one of
// them delivers, and all of them take turns in.
//
//	following ──lease taken──► taking over ──read──► leading
//	    ▲                                               │
//	    └──calls ended◄── stepping down ◄──lease lost, wanted, or Redis gone
type team struct {
	name  string
	local *ledger.Ledger // where turns wait while the others cannot be reached
	spool *replica.Queue

	ended  chan struct{}
	asked  chan struct{}  // somebody here wants to lead
	busy   sync.WaitGroup // calls, and what people asked for, that need the lead
	wanted atomic.Int32   // how many here want to lead

	// Guarded by Pipeline.mu.
	leading bool
	led     context.Context    // of what needs the lead, while leading
	leave   context.CancelFunc // ends it
	until   *time.Timer        // calls leave before the lease ends
	report  report             // of who leads, as it was read last
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

// join has a pipeline share its spool with others; local is its own.
func (p *Pipeline) join(local *ledger.Ledger) {
	all := replica.New(p.opts().Shared.DB, p.opts().MaxTurns, p.opts().MaxBytes)
	p.spool = all
	p.team = &team{
		name: p.opts().Shared.Name, local: local, spool: all,
		ended: make(chan struct{}), asked: make(chan struct{}),
	}
	p.promoted = make(map[string]bool)
}

// teamStatusLocked adds what is known of the others.
func (p *Pipeline) teamStatusLocked(s *QueueStatus) {
	t := p.team
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

// lead is the loop that seeks the lease, keeps it, and brings to the others
// what waits here.
func (p *Pipeline) lead() {
	t := p.team
	defer close(t.ended)
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	for {
		err := contained(func() error { return errors.Join(p.leadOnce(), p.boundLocal(context.Background())) })
		if err != nil && !errors.Is(err, redis.ErrDown) {
			p.opts().Log.Warn("the shared spool cannot be worked on", "error", err)
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

func (p *Pipeline) leadOnce() error {
	t, ctx := p.team, context.Background()
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
	case p.stopped(): // nobody is left to lead
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
	return errors.Join(p.refresh(ctx), p.bring(ctx))
}

// takeOver begins to deliver.
func (p *Pipeline) takeOver(began time.Time) error {
	t := p.team
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
	p.opts().Log.Info("this replica delivers what the replicas remember")
	return nil
}

// followStream tells the state of turns that any replica has added.
func (p *Pipeline) followStream(ctx context.Context) {
	defer p.team.busy.Done()
	for ctx.Err() == nil {
		err := contained(func() error { return p.team.spool.Follow(ctx, leadEvery, p.loop.Wake) })
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// stepDown ends delivery here. It returns when nothing is under way.
func (p *Pipeline) stepDown() {
	t := p.team
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
		p.opts().Log.Info("this replica does not deliver any more; another one does")
	}
}

// leadsLocked reports whether this process delivers.
func (p *Pipeline) leadsLocked() bool { return p.team == nil || p.team.leading }

// asLeader returns when this process delivers, and has it do so until release
// is called; the context ends when it does not any more.
func (p *Pipeline) asLeader(ctx context.Context) (_ context.Context, release func(), err error) {
	t := p.team
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

// refresh reads what other replicas have changed, and tells them how it goes.
func (p *Pipeline) refresh(ctx context.Context) error {
	t := p.team
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

// bring adds to the shared spool what waits in the local one. What is there
// already, because another replica was told the same, is left out.
func (p *Pipeline) bring(ctx context.Context) error {
	t := p.team
	if err := p.bringCut(ctx); err != nil {
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
			p.opts().Log.Info("turns that waited here are with the others now", "turns", len(seqs))
		}
		if err != nil || len(seqs) < chunk {
			return err
		}
	}
}

// warnOfLocal says at the end that turns are where no other replica finds them.
func (p *Pipeline) warnOfLocal() {
	n, err := p.team.local.Sizes(context.Background())
	if err == nil && n.Pending.Turns > 0 {
		p.opts().Log.Warn("turns wait in this replica's data_dir and nowhere else: keep it, and start a replica there again", "turns", n.Pending.Turns)
	}
}

// boundLocal keeps what waits here within bounds.
func (p *Pipeline) boundLocal(ctx context.Context) error {
	n, err := p.team.local.Sizes(ctx)
	if err != nil {
		return err
	}
	t, err := p.team.local.Totals()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.team.waits, p.team.dropped = n.Pending.Turns, t.Dropped
	p.mu.Unlock()
	over := p.opts().over(n)
	if over == (ledger.Size{}) {
		return nil
	}
	gone, err := p.team.local.Cut(over)
	p.evicted.Add(int64(gone.All().Turns))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countDropsLocked(gone.All().Turns, "redis is down, and this replica's own spool is full; these were the oldest")
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
			err = fmt.Errorf("work on the shared spool panicked: %v", r)
		}
	}()
	return f()
}
