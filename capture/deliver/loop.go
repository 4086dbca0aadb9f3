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

	// pollLedger is the interval at which the ledger is read without a Wake: other processes may
	// have written to it.
	pollLedger = time.Second
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
	timing  Timing
	timeout time.Duration
	listed  bool               // a listing has shown stored messages
	senders map[string]*sender // by group if groups are apart, else one with the key ""; nil before resume
	woken   bool               // the ledger may have new copies
	erasing map[string]*erasing

	blamed map[int64]blame // failed copies, by their number
	blames int
	taken  int // copies that the memory has taken

	fails    int       // failed calls in a row
	down     bool      // the last failure was no refusal
	until    time.Time // no calls before this time
	gone     bool      // the last call found the memory out of reach
	search   error     // of the last search for a quiet worker
	failures failures
	failing  bool      // failing delivery was logged
	failLog  time.Time // last log entry about failing delivery
	lost     int
	usual    time.Duration // last known pace of a sender, for new ones
	episodes int           // accepted messages
}

// New returns a Loop that does nothing before Run. listed reports whether the memory has listed
// stored messages before.
func New(o Options, listed bool) *Loop {
	l := &Loop{o: o, wake: make(chan struct{}, 1), timing: o.Timing, timeout: o.Timeout, erased: make(map[string]erased)}
	l.run = run{listed: listed, blamed: make(map[int64]blame), failures: make(failures)}
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

// Run delivers until ctx is done, which also cancels a running call.
func (l *Loop) Run(ctx context.Context) {
	l.senders, l.woken, l.until = nil, true, time.Time{}
	l.erasing = make(map[string]*erasing) // another process may have had the lease
	tick := time.NewTicker(pollLedger)
	defer tick.Stop()
	for {
		wait := l.contained(ctx)
		l.publish()
		timer := time.NewTimer(max(wait, time.Nanosecond)) // a due one may crash synctest (Go 1.26)
		if ctx.Err() != nil {
			return
		}
		select {
		case <-l.wake:
			l.woken = true
		case <-tick.C:
			l.woken = true
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// contained is step without panics. After a panic or a failure of the ledger, the loop forgets its
// flights and reads them from the ledger, as after a start.
func (l *Loop) contained(ctx context.Context) (wait time.Duration) {
	var err error
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("delivery panicked: %v", r)
		}
		if l.report(ofLedger, err); err != nil {
			l.senders, l.woken, wait = nil, true, pollLedger
		}
	}()
	wait, err = l.step(ctx)
	return wait
}

// step performs the actions that are due, and returns the time until the next. It fails if the
// ledger does.
func (l *Loop) step(ctx context.Context) (time.Duration, error) {
	l.mu.Lock()
	timing, off, asked := l.timing, l.off, l.asked
	l.run.timing, l.run.timeout, l.asked = timing, l.timeout, false
	l.run.timing.LastLook = max(timing.LastLook, time.Duration(len(l.senders))*lookEach)
	l.mu.Unlock()
	if err := l.read(ctx); err != nil {
		return 0, err
	}
	if asked {
		l.testAll()
	}
	switch now := time.Now(); {
	case off:
		return never, nil
	case l.until.After(now):
		return l.until.Sub(now), nil
	}
	wait, err := l.erase(ctx)
	for _, own := range slices.Sorted(maps.Keys(l.senders)) {
		if err != nil || ctx.Err() != nil || l.until.After(time.Now()) {
			return 0, err
		}
		s := l.senders[own]
		switch now := time.Now(); {
		case s.flight == nil && !s.waits: // nothing to do
			if own != "" && l.erasing[own] == nil {
				delete(l.senders, own)
			}
		case !due(s.at, now, &wait):
		case s.flight != nil:
			wait, err = 0, l.look(ctx, s)
		default:
			wait, err = 0, l.send(ctx, s)
		}
	}
	return wait, err
}

// read reads the ledger.
func (l *Loop) read(ctx context.Context) error {
	if l.senders == nil {
		if err := l.resume(ctx); err != nil {
			return err
		}
	}
	if !l.woken {
		return nil
	}
	if !l.o.Apart {
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
	l.woken = false
	return l.readWithdrawn(ctx)
}

// resume takes over the copies that an earlier process sent: the first one of each worker is in doubt.
// Another one is looked up before it is sent again.
func (l *Loop) resume(ctx context.Context) error {
	l.senders = make(map[string]*sender)
	sent, err := l.o.Ledger.Sent(ctx)
	for i := 0; i < len(sent) && err == nil; i++ {
		s, f := l.sender(sent[i].Group), (*flight)(nil)
		if f, err = l.newFlight(ctx, &sent[i]); err != nil {
			break
		}
		if s.waits = true; s.flight != nil || len(f.missing) == 0 {
			err = l.o.Ledger.Requeue(&sent[i], "")
			continue
		}
		s.flight, s.sign, f.doubt, f.resumed = f, f.since, true, true
	}
	return err
}

// key returns the key of a group's sender.
func (l *Loop) key(group string) string {
	if l.o.Apart {
		return group
	}
	return ""
}

// sender returns the sender of a group.
func (l *Loop) sender(group string) *sender {
	own := l.key(group)
	s := l.senders[own]
	if s == nil {
		s = &sender{group: own, pace: l.usual}
		l.senders[own] = s
	}
	return s
}

func (l *Loop) testAll() {
	for _, s := range l.senders {
		s.test()
	}
}

// call makes one call to the memory. After a failure, no calls are made for a while. An answer
// after a refused connection shows that Graphiti has probably restarted, and has lost the turns in flight.
func (l *Loop) call(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f(ctx)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		l.until = time.Now().Add(retryIn(l.fails, err))
		l.fails, l.down = l.fails+1, graphiti.Retryable(err)
	} else {
		l.fails = 0
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		l.gone = true
	case l.gone && (err == nil || !graphiti.Retryable(err)): // a call that ended in the middle proves no restart
		l.gone = false
		l.testAll()
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
