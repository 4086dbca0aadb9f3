package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// parallel is how many calls are made at the same time.
	parallel = 8

	// Retries need not become rare: the circuit breaker makes no calls to a memory
	// that is down.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 20 * time.Second

	// maxRetryAfter bounds what a server may ask for.
	maxRetryAfter = time.Hour
)

// Options configures a Loop.
type Options struct {
	Ledger      Ledger
	Memory      Memory
	Apart       bool // each group has a worker of its own
	Verify      bool // acceptance is not taken for proof
	Timing      Timing
	Timeout     time.Duration            // of a call
	OpenFor     time.Duration            // the circuit breaker, before it is half-open
	OnDelivered func(Delivery)           // of a turn that has a Trace
	OnStored    func(group string)       // a group holds something new
	Redact      func(text string) string // takes credentials out of what a server says
	Log         *slog.Logger

	// OnSeen is called before turns that a listing shows are marked as delivered. ids are
	// those that the memory gave to the messages that are listed, by their names.
	OnSeen func(group string, ids map[string]string)
}

// Known is what is known of the memory when a Loop starts.
type Known struct {
	Instance string // names the ledger among others that write to the same memory
	Listed   bool   // a listing has shown what was written
}

// Loop performs what its machines decide. It is safe for concurrent use.
//
//	stopped ──Start──► running ──stop closed, or context done──► ending ──Wait──► stopped
//
// An item that is marked as sent when it starts is in doubt: an earlier process or
// another replica sent it.
type Loop struct {
	o       Options
	breaker *Breaker
	slots   chan struct{} // one for each call that may be made; full: callers wait

	workers sync.WaitGroup
	ended   *sync.Cond // on mu: an action has ended

	mu       sync.Mutex // guards what follows
	timing   Timing
	timeout  time.Duration
	off      bool // by configuration: nothing is delivered
	run      run
	holds    holds
	lost     int       // turns, since the process began
	failLog  time.Time // when it was logged that turns cannot be delivered
	writes   int       // beginnings and ends of calls that sent turns
	wroteAt  time.Time // when there was one last
	cleared  int       // writes, when all had been worked off; below zero: that is not known
	barriers int       // calls of Barrier that wait
	refused  time.Time // when the memory refused everything last
	database string    // the memory's, as it said last; empty: it never did
}

// run is what a Loop knows from Start to Wait.
type run struct {
	ctx     context.Context // of the calls
	cancel  context.CancelFunc
	stop    <-chan struct{}
	closed  bool   // no worker is started any more
	probe   string // the group that barriers are written to
	sight   *sight
	workers map[string]*worker // by group where they are apart, else one
	asked   time.Time          // until when the memory asked for no calls
	paused  time.Time          // nothing is done before
	down    bool               // and then one call asks whether the memory is up again
	probing bool               // a call asks whether it is over
	search  error              // of the last search for a message of our own

	failures failures
	failing  bool // it was logged that turns cannot be delivered
}

func stopped() run {
	return run{closed: true, cancel: func() {}, sight: &sight{}, failures: make(failures)}
}

// worker is a machine and what wakes those who ask it.
type worker struct {
	*machine
	wake chan struct{} // more than one wake says nothing new
}

// holds are groups to which nothing is sent.
type holds struct {
	withheld map[string]bool // until further notice
	paused   map[string]int  // while they are emptied, by how many; not looked at either
	owing    int             // groups of which something could not be written down
}

func (h *holds) send(group string) bool { return h.withheld[group] || h.paused[group] > 0 }
func (h *holds) look(group string) bool { return h.paused[group] > 0 }

// New returns a Loop that does nothing before Start.
func New(o Options) *Loop {
	l := &Loop{
		o: o, slots: make(chan struct{}, parallel), timing: o.Timing, timeout: o.Timeout,
		run: stopped(), holds: holds{paused: make(map[string]int)}, cleared: -1, wroteAt: time.Now(),
	}
	l.ended = sync.NewCond(&l.mu)
	l.breaker = NewBreaker(o.OpenFor, l.breakerChanged)
	return l
}

// confirm says that turns are in flight until they are seen.
func (l *Loop) confirm() bool { return l.o.Verify }

// Set changes the timing and the time that a call may take. While off is set, nothing is
// delivered.
func (l *Loop) Set(t Timing, timeout time.Duration, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timing, l.timeout, l.off = t, timeout, off
	for _, w := range l.run.workers {
		w.timing = t
	}
	l.excuseLocked()
}

// excuseLocked makes the silence of the memory count from now on, because nobody looked
// for a while.
func (l *Loop) excuseLocked() {
	for _, w := range l.run.workers {
		w.excuse(time.Now())
		w.signal()
	}
}

// Start begins to deliver what the ledger holds. It goes on until stop is
// closed or ctx ends, which also ends the calls that are in progress.
func (l *Loop) Start(ctx context.Context, stop <-chan struct{}, known Known) error {
	doubts, err := l.doubts()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	l.run = run{
		ctx: ctx, cancel: cancel, stop: stop, probe: probeGroup(known.Instance),
		sight: &sight{listed: known.Listed}, workers: make(map[string]*worker), failures: make(failures),
	}
	l.cleared, l.holds.owing = -1, 0
	now := time.Now()
	for _, it := range doubts {
		w := l.workerLocked(it.Group)
		w.inFlight(w.find(it.Group), []*flight{newFlight(it, now)}, true, false, now)
	}
	l.mu.Unlock()
	if err := l.o.Ledger.Groups(l.Wake); err != nil {
		cancel()
		l.Wait()
		return err
	}
	return nil
}

// doubts are what was sent before, and may be there or not. Where acceptance is
// taken for proof, it was not seen, and they are sent again.
func (l *Loop) doubts() (doubts []Item, err error) {
	if err := l.o.Ledger.InDoubt(func(it Item) { doubts = append(doubts, it) }); err != nil {
		return nil, err
	}
	l.dated(doubts)
	if l.confirm() {
		return doubts, nil
	}
	for _, it := range doubts {
		if err := l.o.Ledger.Requeue([]Item{it}, ""); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Wait returns when nothing is done any more. stop must be closed, or the
// context done.
func (l *Loop) Wait() {
	l.mu.Lock()
	l.run.closed = true
	l.mu.Unlock()
	l.workers.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.cancel()
	l.run = stopped()
}

// Wake says that turns wait in the ledger for a group; fresh says that not all
// of them are backfilled.
func (l *Loop) Wake(group string, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.closed {
		return // the next Start finds them
	}
	w := l.workerLocked(group)
	w.add(group, fresh)
	w.signal()
}

// workerLocked finds or starts the worker of a group.
func (l *Loop) workerLocked(group string) *worker {
	own := ""
	if l.o.Apart && l.confirm() {
		own = group
	}
	w := l.run.workers[own]
	if w != nil {
		return w
	}
	w = &worker{
		machine: newMachine(l.timing, l.run.sight, &l.holds, own, time.Now()),
		wake:    make(chan struct{}, 1),
	}
	l.run.workers[own] = w
	n := 1 // what is in flight has one order
	if !l.confirm() {
		n = parallel
	}
	for range n {
		l.workers.Add(1)
		// Ends with the run, or when there is nothing to do for its group.
		go l.work(w, l.run.ctx, l.run.stop)
	}
	return w
}

func (w *worker) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (l *Loop) signalAllLocked() {
	for _, w := range l.run.workers {
		w.signal()
	}
}

// work performs what a machine decides, one action after the other. When it is
// to stop it sends what is due, unless that would leave it in doubt.
func (l *Loop) work(w *worker, ctx context.Context, stop <-chan struct{}) {
	defer l.workers.Done()
	for {
		a, wait, over := l.next(w, ctx, stop)
		if over {
			return
		}
		if a.kind != nothing {
			l.perform(ctx, w, a)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		case <-stop:
		}
		timer.Stop()
	}
}

// next asks a machine; over says that there is nothing more to do for it.
func (l *Loop) next(w *worker, ctx context.Context, stop <-chan struct{}) (a action, wait time.Duration, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stopping := false
	select {
	case <-stop:
		stopping = true
	default:
	}
	if ctx.Err() != nil || stopping && l.confirm() { // there is no time to see anything arrive
		return action{}, 0, true
	}
	if a, wait = l.askLocked(w); a.kind != nothing {
		w.signal() // there may be work for another one
		return a, 0, false
	}
	if w.own != "" && w.idle() {
		delete(l.run.workers, w.own)
		return action{}, 0, true
	}
	return action{}, wait, stopping
}

// askLocked asks the machine, unless there is a pause.
func (l *Loop) askLocked(w *worker) (action, time.Duration) {
	now := time.Now()
	switch {
	case l.off:
		return action{}, longest
	case l.run.paused.After(now):
		return action{}, l.run.paused.Sub(now)
	case l.run.down && l.run.probing:
		return action{}, longest
	case l.run.down:
		l.run.probing = true
		return action{kind: probe}, 0
	}
	was := w.stalled
	a, wait := w.next(now)
	if was.IsZero() && !w.stalled.IsZero() && l.stalledLocked().Equal(w.stalled) { // it is the first one
		l.o.Log.Error("the memory accepts messages and keeps none; nothing is sent until it does, and nothing is lost",
			"since", w.stalled, "to_do", l.stallLocked().Remedy())
	}
	return a, wait
}

// perform does what was decided.
func (l *Loop) perform(ctx context.Context, w *worker, a action) {
	err := contained(func() error {
		switch a.kind {
		case send:
			l.send(ctx, w, a)
		case look:
			l.look(ctx, w, a)
		case settle:
			l.settle(w, a)
		case sendBarrier:
			_ = l.writeBarrier(ctx, w, true) // its result shows later
		case lookForBarrier:
			l.lookForBarrier(ctx, w)
		case removeBarrier:
			l.removeLeft(ctx, w)
		case probe:
			l.probe(ctx)
		case nothing:
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.o.Log.Error("delivery goes on after a mistake in it", "error", err)
		w.broke(a, time.Now())
		l.run.probing = l.run.probing && a.kind != probe
	}
	w.done(a)
	l.ended.Broadcast()
}

// probe asks whether the memory is up again; the breaker draws the
// consequences.
func (l *Loop) probe(ctx context.Context) {
	err := l.call(ctx, l.o.Memory.Health)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.probing = false
	if now := time.Now(); err != nil && !l.run.paused.After(now) {
		l.pauseLocked(now.Add(firstRetry)) // it was too early for the breaker
		l.signalAllLocked()
	}
}

// call makes one call to the memory, bounded in time. It pauses all calls when the
// answer asks for that.
func (l *Loop) call(ctx context.Context, f func(context.Context) error) error {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	timeout := l.timeout
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := l.breaker.Try(func() error { return contained(func() error { return f(ctx) }) })
	if asked := retryAfter(err); asked > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		until := time.Now().Add(asked)
		if until.After(l.run.asked) {
			l.run.asked = until
		}
		l.pauseLocked(until)
	}
	return err
}

// pauseLocked stops all calls until a time, or until a later one that was given
// before.
func (l *Loop) pauseLocked(until time.Time) {
	if until.After(l.run.paused) {
		l.run.paused = until
	}
	for _, w := range l.run.workers {
		w.excuse(until)
	}
}

// breakerChanged is called when the breaker opens and when it closes.
func (l *Loop) breakerChanged(open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if open {
		l.run.down = true
		l.pauseLocked(now.Add(l.o.OpenFor))
	} else {
		// That the memory answers is no reason to go on before it wants that.
		l.run.down, l.run.paused = false, l.run.asked
		for _, w := range l.run.workers {
			w.soon(func() time.Time { return now.Add(rand.N(time.Second)) }) // #nosec G404 -- spreads load, no secret
		}
	}
	l.signalAllLocked()
}

// contained turns a panic into an error: delivery goes on.
func contained(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("delivery panicked: %v", r)
		}
	}()
	return f()
}
