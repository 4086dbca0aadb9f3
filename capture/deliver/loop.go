package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// parallel is the most concurrent calls.
	parallel = 8

	// Retries need not become rare: the circuit breaker stops calls to a memory that is
	// down.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 20 * time.Second

	// maxRetryAfter limits a server's Retry-After.
	maxRetryAfter = time.Hour
)

// Options configures a Loop.
type Options struct {
	Ledger      Ledger
	Memory      Backend
	Apart       bool // each group has a worker of its own
	Verify      bool // acceptance is not a proof of delivery
	Timing      Timing
	Timeout     time.Duration            // of a call
	OpenFor     time.Duration            // time until the open circuit breaker is half-open
	OnDelivered func(Delivery)           // called for turns with a Trace
	OnStored    func(group string)       // called after a group has received turns
	Redact      func(text string) string // removes credentials from a server's messages
	Log         *slog.Logger

	// OnSeen is called with the listed messages of turns before these are marked as delivered.
	OnSeen func(group string, episodes []graphiti.Row)
}

// Known is the stored knowledge about the memory when a Loop starts.
type Known struct {
	Instance string // distinguishes this ledger from other ledgers on the same memory
	Listed   bool   // a listing has shown stored messages
}

// Loop performs the actions of its machines. It is safe for concurrent use.
//
//	stopped ──Start──► running ──stop closed, or context done──► ending ──Wait──► stopped
//
// An item already marked as sent at the start is in doubt: an earlier process or another
// replica sent it.
type Loop struct {
	o       Options
	breaker *Breaker
	slots   chan struct{} // limits concurrent calls

	workers sync.WaitGroup
	ended   *sync.Cond // on mu: signals the end of an action

	mu       sync.Mutex // protects the fields below
	timing   Timing
	timeout  time.Duration
	off      bool // delivery is disabled by configuration
	run      run
	holds    holds
	pace     pace      // of finished turns
	lost     int       // turns lost since the process started
	failLog  time.Time // last log entry about failing delivery
	writes   int       // starts and ends of calls that sent turns
	wroteAt  time.Time // time of the last of these
	cleared  int       // value of writes when everything was processed, or negative if unknown
	barriers int       // running calls of Barrier
	refused  time.Time // last time the memory rejected everything
	database string    // last known database of the memory, or ""
}

// run is the state of a Loop between Start and Wait.
type run struct {
	ctx     context.Context // of the calls
	cancel  context.CancelFunc
	stop    <-chan struct{}
	closed  bool   // no further workers are started
	probe   string // the group for barriers
	sight   *sight
	workers map[string]*worker // by group if groups are apart, else a single one with key ""
	asked   time.Time          // end of the Retry-After delay
	paused  time.Time          // no actions before this time
	down    bool               // after the pause, one call checks whether the memory is up
	probing bool               // that call is in progress
	search  error              // of the last search for a barrier
	gone    bool               // the last call found the memory out of reach

	failures failures
	failing  bool // failing delivery was logged
}

func stopped() run {
	return run{closed: true, cancel: func() {}, sight: &sight{}, failures: make(failures)}
}

// worker is a machine with a channel that wakes its goroutines.
type worker struct {
	*machine
	wake chan struct{} // capacity 1: further wakes add nothing
}

// holds is the set of groups that must not be sent to.
type holds struct {
	withheld map[string]bool // until the next Withhold
	paused   map[string]int  // number of Pause calls; these groups are not polled either
	owing    int             // groups with failed ledger writes
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

// confirm reports whether turns stay in flight until they are verified.
func (l *Loop) confirm() bool { return l.o.Verify }

// Set changes the timing and the timeout of a call. off suspends delivery.
func (l *Loop) Set(t Timing, timeout time.Duration, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timing, l.timeout, l.off = t, timeout, off
	for _, w := range l.run.workers {
		w.timing = t
	}
	l.restartStallTimersLocked()
}

// restartStallTimersLocked restarts all stall timers, because the groups were not polled for a while.
func (l *Loop) restartStallTimersLocked() {
	for _, w := range l.run.workers {
		w.restartStallTimer(time.Now())
		w.signal()
	}
}

// Start starts the delivery of the ledger's turns. Delivery ends when stop is closed or ctx
// is done, which also cancels running calls.
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

// doubts returns the turns that may or may not have been accepted. If acceptance is the
// proof of delivery, it requeues them instead.
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

// Wait returns when all workers have ended. stop must be closed, or the context done.
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

// Wake records that the ledger has pending turns for a group; fresh reports whether some
// are not backfilled.
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

// workerLocked returns the worker of a group, starting it if necessary.
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
	n := 1 // turns in flight have one order
	if !l.confirm() {
		n = parallel
	}
	for range n {
		l.workers.Add(1)
		// Ends with the run, or when its group has no more work.
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

// work performs a machine's actions one after the other. On stop it still sends due turns,
// unless that would leave them in doubt.
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

// next returns a machine's next action; over reports whether the worker must end.
func (l *Loop) next(w *worker, ctx context.Context, stop <-chan struct{}) (a action, wait time.Duration, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stopping := false
	select {
	case <-stop:
		stopping = true
	default:
	}
	if ctx.Err() != nil || stopping && l.confirm() { // no time left to verify anything
		return action{}, 0, true
	}
	if a, wait = l.askLocked(w); a.kind != nothing {
		w.signal() // another goroutine may find more work
		return a, 0, false
	}
	if w.own != "" && w.idle() {
		delete(l.run.workers, w.own)
		return action{}, 0, true
	}
	return action{}, wait, stopping
}

// askLocked returns the machine's next action, unless delivery is off, paused or down.
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
	if was.IsZero() && !w.stalled.IsZero() && l.stalledLocked().Equal(w.stalled) { // log the first stall only
		l.o.Log.Error("memory accepts messages without storing them, delivery paused",
			"since", w.stalled, "to_do", l.stallLocked().Remedy())
	}
	return a, wait
}

// perform performs an action. A panic in it does not end delivery.
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
			_ = l.writeBarrier(ctx, w, true) // a later poll shows the result
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
		l.o.Log.Error("delivery action panicked, retrying", "error", err)
		w.broke(a, time.Now())
		l.run.probing = l.run.probing && a.kind != probe
	}
	w.done(a)
	l.ended.Broadcast()
}

// probe checks whether the memory is up again. The result reaches the Loop through
// breakerChanged.
func (l *Loop) probe(ctx context.Context) {
	err := l.call(ctx, l.o.Memory.Health)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.probing = false
	if now := time.Now(); err != nil && !l.run.paused.After(now) {
		l.pauseLocked(now.Add(firstRetry)) // the breaker was not yet half-open
		l.signalAllLocked()
	}
}

// call makes one call to the memory with the configured timeout. It pauses all calls if the
// answer has a Retry-After.
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
	l.noticeReturn(err)
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

// noticeReturn has stalled workers tested as soon as a memory that was out of reach answers
// again: it has probably restarted.
func (l *Loop) noticeReturn(err error) {
	var op *net.OpError
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded):
		l.run.gone = true
	case err == nil && l.run.gone:
		l.run.gone = false
		l.testLocked()
	}
}

// Test has stalled workers tested at once.
func (l *Loop) Test() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.testLocked()
}

func (l *Loop) testLocked() {
	for _, w := range l.run.workers {
		w.testSoon(time.Now())
		w.signal()
	}
}

// pauseLocked stops all calls until a time, or until the end of a longer pause.
func (l *Loop) pauseLocked(until time.Time) {
	if until.After(l.run.paused) {
		l.run.paused = until
	}
	for _, w := range l.run.workers {
		w.restartStallTimer(until)
	}
}

// breakerChanged is called when the breaker opens or closes.
func (l *Loop) breakerChanged(open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if open {
		l.run.down = true
		l.pauseLocked(now.Add(l.o.OpenFor))
	} else {
		// A healthy memory may still have asked for a later time.
		l.run.down, l.run.paused = false, l.run.asked
		for _, w := range l.run.workers {
			w.soon(func() time.Time { return now.Add(rand.N(time.Second)) }) // #nosec G404 -- spreads load, no secret
		}
	}
	l.signalAllLocked()
}

// contained converts a panic into an error.
func contained(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("delivery panicked: %v", r)
		}
	}()
	return f()
}
