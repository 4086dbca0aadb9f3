package deliver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 10 * time.Second

	// maxRetryAfter limits a server's Retry-After.
	maxRetryAfter = time.Hour

	// lookEach is the time between two listings when many workers are listed.
	lookEach = 20 * time.Millisecond

	// opensAfter is the number of failed calls in a row after which the memory counts as down.
	opensAfter = 5
)

// Loop performs the actions of its senders, one at a time. Its methods may be called at any time.
type Loop struct {
	o    Options
	wake chan struct{} // capacity 1: further wakes add nothing

	mu      sync.Mutex // protects the fields below
	timing  Timing
	timeout time.Duration
	off     bool              // delivery is disabled by configuration
	asked   bool              // Test was called
	shown   Progress          // published state
	erased  map[string]erased // results of the last deletions in Graphiti, by group

	run // of the goroutine in Run
}

// run is the state of a Loop's goroutine.
type run struct {
	timing   Timing
	listed   bool               // a listing has shown stored messages
	blind    graphiti.Diagnosis // why listings show no turns: a copy then counts as delivered once it is accepted
	since    time.Time          // discovery of blind
	lookedAt time.Time          // last listing of a blind memory
	senders  map[string]*sender // by group if groups are apart, else one with the key ""
	woken    bool               // the ledger may have new copies
	owed     []func() error     // failed ledger writes, repeated before all else
	refused  map[int64]int      // accepted calls before the refusal of a copy, by its number
	accepted int                // accepted calls
	erasing  map[string]*erasing

	fails    int       // calls in a row that found the memory down
	until    time.Time // no calls before this time
	gone     bool      // the last call found the memory out of reach
	back     bool      // it is in reach again, and has probably restarted
	search   error     // of the last search for a silent worker
	failures failures
	failing  bool      // failing delivery was logged
	failLog  time.Time // last log entry about failing delivery
	lost     int
	usual    time.Duration // last known pace of a sender, for new ones
	episodes int           // accepted messages
	chars    int           // their bytes
}

// New returns a Loop that does nothing before Run. listed reports whether the memory has listed
// stored messages before.
func New(o Options, listed bool) *Loop {
	l := &Loop{o: o, wake: make(chan struct{}, 1), timing: o.Timing, timeout: o.Timeout, erased: make(map[string]erased)}
	l.run = run{listed: listed, refused: make(map[int64]int), erasing: make(map[string]*erasing), failures: make(failures)}
	l.shown.Breaker = "closed"
	return l
}

// Set changes the timing and the timeout of a call. off suspends delivery.
func (l *Loop) Set(t Timing, timeout time.Duration, off bool) {
	l.mu.Lock()
	l.timing, l.timeout, l.off = t, timeout, off
	l.mu.Unlock()
	l.Wake()
}

// Wake has the ledger read: it may have new copies, or new forgotten parts.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Test has silent workers tested at once.
func (l *Loop) Test() {
	l.mu.Lock()
	l.asked = true
	l.mu.Unlock()
	l.Wake()
}

// pollLedger is the interval at which the ledger is read without a Wake: other processes may have
// written to it.
const pollLedger = time.Second

// Run delivers until stop is closed or ctx is done, which also cancels a running call. A copy
// already marked as sent is in doubt: an earlier process sent it.
func (l *Loop) Run(ctx context.Context, stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.senders, l.woken, l.until = nil, true, time.Time{}
	l.owed, l.erasing = nil, make(map[string]*erasing) // another process may have had the lease
	tick := time.NewTicker(pollLedger)
	defer tick.Stop()
	for {
		wait := l.contained(ctx)
		l.publish()
		timer := time.NewTimer(max(wait, time.Nanosecond)) // a due one may crash synctest (Go 1.26)
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		select {
		case <-l.wake:
			l.woken = true
		case <-tick.C:
			l.woken = true
		case <-timer.C:
		case <-ctx.Done():
		case <-stop:
		}
		timer.Stop()
	}
}

// contained is step without panics.
func (l *Loop) contained(ctx context.Context) (wait time.Duration) {
	err := contained(func() error { wait = l.step(ctx); return nil })
	if err != nil {
		l.o.Log.Error("delivery panicked, retrying", "error", err)
		return time.Second
	}
	return wait
}

// step performs the actions that are due, and returns the time until the next.
func (l *Loop) step(ctx context.Context) time.Duration {
	now := time.Now()
	l.mu.Lock()
	timing, off, asked := l.timing, l.off, l.asked
	l.run.timing, l.asked = timing, false
	l.run.timing.LastLook = max(timing.LastLook, time.Duration(len(l.senders))*lookEach)
	l.mu.Unlock()
	if err := l.prepare(ctx, now); err != nil {
		l.failedAt(failing{}, err)
		return time.Second
	}
	if asked || l.back {
		l.back = false
		l.testAll(now)
	}
	if off {
		l.rested(now)
		return never
	}
	if l.until.After(now) {
		return l.until.Sub(now)
	}
	wait, acted := l.erase(ctx, now), false
	for _, own := range slices.Sorted(maps.Keys(l.senders)) {
		s := l.senders[own]
		a, w := s.next(time.Now())
		wait = min(wait, w)
		if a == rest {
			continue
		}
		acted = true
		if l.perform(ctx, s, a); ctx.Err() != nil || l.until.After(now) {
			break
		}
	}
	maps.DeleteFunc(l.senders, func(own string, s *sender) bool { return own != "" && s.idle() && l.erasing[own] == nil })
	if acted {
		return 0
	}
	return wait
}

// prepare repeats failed writes to the ledger, and reads it.
func (l *Loop) prepare(ctx context.Context, now time.Time) error {
	for len(l.owed) > 0 {
		if err := contained(l.owed[0]); err != nil {
			return err
		}
		l.owed = l.owed[1:]
	}
	if l.senders == nil {
		if err := l.resume(ctx, now); err != nil {
			return err
		}
	}
	if !l.woken {
		return nil
	}
	if !l.apart() {
		l.sender("").waits = true
	} else {
		groups, err := l.o.Ledger.Waiting(ctx)
		if err != nil {
			return err
		}
		for _, g := range groups {
			l.sender(g).waits = true
		}
	}
	if err := l.readWithdrawn(ctx); err != nil {
		return err
	}
	l.woken = false
	l.worked(failing{})
	return nil
}

func (l *Loop) apart() bool { return l.o.Apart && l.o.Verify }

// sender returns the sender of a group.
func (l *Loop) sender(group string) *sender {
	if !l.apart() {
		group = ""
	}
	s := l.senders[group]
	if s == nil {
		s = &sender{timing: &l.run.timing, group: group, pace: l.usual, unread: make(map[string]bool)}
		l.senders[group] = s
	}
	return s
}

// resume takes over the copies that an earlier process sent.
func (l *Loop) resume(ctx context.Context, now time.Time) error {
	sent, err := l.o.Ledger.Sent(ctx)
	if err != nil {
		return err
	}
	l.senders = make(map[string]*sender)
	for i := range sent {
		messages, err := l.o.Ledger.Messages(ctx, &sent[i])
		if err != nil {
			l.senders = nil
			return err
		}
		if !l.o.Verify || len(messages) == 0 {
			l.note(func() error { return l.o.Ledger.Requeue(&sent[i], "") })
			continue
		}
		s := l.sender(sent[i].Group)
		s.inFlight(newFlight(&sent[i], messages, now), true, now)
		s.flights[len(s.flights)-1].single = false
	}
	return nil
}

// rested restarts the timers of silence: no group was listed.
func (l *Loop) rested(now time.Time) {
	for _, s := range l.senders {
		s.sign = now
	}
}

func (l *Loop) testAll(now time.Time) {
	for _, s := range l.senders {
		s.testSoon(now)
	}
}

// perform performs an action.
func (l *Loop) perform(ctx context.Context, s *sender, a act) {
	if a == look {
		l.look(ctx, s)
		return
	}
	if a == test {
		if f := s.stops(); f != nil {
			s.drop(f)
			l.dead(&f.Copy, f.at, reasonPoison, errLost)
			return
		}
		l.silence(ctx, s)
		s.tested(time.Now())
	}
	l.send(ctx, s, a == test)
}

// note writes to the ledger, and has a failed write repeated before anything else.
func (l *Loop) note(write func() error) {
	if err := contained(write); err != nil {
		l.owed = append(l.owed, write)
		l.failedAt(failing{}, err)
	}
}

// call makes one call to the memory with the configured timeout. While the memory is down, or
// after a Retry-After, no calls are made for a while.
func (l *Loop) call(ctx context.Context, f func(context.Context) error) error {
	l.mu.Lock()
	timeout := l.timeout
	l.mu.Unlock()
	return l.callFor(ctx, timeout, f)
}

func (l *Loop) callFor(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := contained(func() error { return f(ctx) })
	now := time.Now()
	var op *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil && graphiti.Retryable(err):
		l.gone = l.gone || errors.As(err, &op) && op.Op == "dial" // a call that ended in the middle proves no restart
		if l.fails++; l.fails >= opensAfter {
			l.until = now.Add(retryIn(l.fails-opensAfter, err))
			l.rested(l.until)
		}
	default:
		l.fails, l.gone, l.back = 0, false, l.back || l.gone
	}
	if asked := retryAfter(err); asked > 0 {
		l.until = now.Add(asked)
		l.rested(l.until)
	}
	return err
}

// retryIn returns the delay before the next attempt: exponential with full jitter, and at
// least the server's Retry-After.
func retryIn(attempts int, err error) time.Duration {
	most := min(firstRetry<<min(attempts, 10), lastRetry)
	return max(rand.N(most)+1, retryAfter(err)) // #nosec G404 -- spreads load, no secret
}

// retryAfter returns the server's Retry-After, limited to maxRetryAfter.
func retryAfter(err error) time.Duration {
	var status *graphiti.StatusError
	if errors.As(err, &status) {
		return min(status.RetryAfter, maxRetryAfter)
	}
	return 0
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
