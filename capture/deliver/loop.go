package deliver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 10 * time.Second

	// maxRetryAfter limits a server's Retry-After.
	maxRetryAfter = time.Hour

	// opensAfter is the number of failed calls in a row after which the memory counts as down.
	opensAfter = 5

	// pollLedger is the interval at which the ledger is read without a Wake: other processes may
	// have written to it.
	pollLedger = time.Second
)

// Loop copies waiting turns and deletes forgotten ones. Its goroutines, one for each worker with a turn
// and one for deletions, act one at a time. Its methods may be called at any time.
type Loop struct {
	o        Options
	wake     chan struct{} // capacity 1: further wakes add nothing
	settings atomic.Pointer[settings]
	asked    atomic.Bool              // Test was called
	shown    atomic.Pointer[Progress] // published state
	erased   sync.Map                 // results (erased) of the last deletions in Graphiti, by group

	acts  chan struct{} // capacity 1: holds a value while a goroutine of Run acts, and uses the fields below
	start func(run func(context.Context) error)

	listed  bool // a listing has shown stored messages
	senders map[string]*sender
	erasing map[string]*erasing

	blamed map[int64]int // last failures of copies, by their numbers, as counts of events
	events int           // failures and taken copies
	taken  int           // event of the last taken copy, or 0

	fails    int       // failed calls in a row
	until    time.Time // no calls before this time
	gone     bool      // the last call found the memory out of reach
	search   error     // of the last search for a quiet worker
	failure  failure
	failing  bool      // failing delivery was logged
	failLog  time.Time // last log entry about failing delivery
	lost     int
	usual    time.Duration // last known pace of a sender, for new ones
	episodes int           // accepted messages
}

type settings struct {
	Timing
	timeout time.Duration // of a call
}

// New returns a Loop that does nothing before Run. listed reports whether the memory has listed
// stored messages before.
func New(o Options, listed bool) *Loop {
	l := &Loop{o: o, wake: make(chan struct{}, 1), acts: make(chan struct{}, 1), listed: listed, blamed: make(map[int64]int)}
	l.settings.Store(&settings{o.Timing, o.Timeout})
	l.shown.Store(&Progress{Breaker: "closed"})
	return l
}

// Set changes the timing and the timeout of a call.
func (l *Loop) Set(t Timing, timeout time.Duration) { l.settings.Store(&settings{t, timeout}) }

// Wake has the ledger read: it may have new copies, or new forgotten parts.
func (l *Loop) Wake() { signal(l.wake) }

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Test has silent workers tested at once.
func (l *Loop) Test() {
	l.asked.Store(true)
	l.Wake()
}

// Run delivers until ctx is done, which also cancels a running call. After a panic or a failure of
// the ledger, it forgets its flights and reads them from the ledger, as after a start.
func (l *Loop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		l.report(ofLedger, l.round(ctx))
		l.senders = nil
		l.publish()
		sleep(ctx, pollLedger, nil)
	}
}

// round delivers until ctx ends or one of its goroutines fails.
func (l *Loop) round(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var all sync.WaitGroup
	l.start = func(run func(context.Context) error) {
		all.Go(func() {
			l.acts <- struct{}{}
			defer func() {
				if r := recover(); r != nil {
					end(fmt.Errorf("delivery panicked: %v", r))
				}
				<-l.acts
			}()
			if err := run(ctx); err != nil {
				end(err)
			}
		})
	}
	l.start(l.lead)
	all.Wait()
	return context.Cause(ctx)
}

// lead reads the ledger, has each worker with turns served, and deletes forgotten ones.
func (l *Loop) lead(ctx context.Context) error {
	began := time.Now()
	l.senders, l.until = make(map[string]*sender), time.Time{}
	l.erasing = make(map[string]*erasing) // another process may have had the lease
	if err := l.resume(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		groups, err := l.o.Ledger.Waiting(ctx)
		if err == nil {
			err = l.readWithdrawn(ctx)
		}
		if err != nil {
			return err
		}
		for _, g := range groups {
			l.begin(l.sender(g))
		}
		if l.asked.Swap(false) {
			l.testAll()
		}
		wait, err := l.erase(ctx)
		if err != nil {
			return err
		}
		if time.Since(began) > pollLedger {
			l.report(ofLedger, nil)
		}
		maps.DeleteFunc(l.senders, func(own string, s *sender) bool { return own != "" && !s.runs && l.erasing[own] == nil })
		l.pause(ctx, wait, l.wake)
	}
	return nil
}

// resume takes over the copies that an earlier process sent: the first one of each worker is in doubt.
// Another one is looked up before it is sent again.
func (l *Loop) resume(ctx context.Context) error {
	sent, err := l.o.Ledger.Sent(ctx)
	for i := 0; i < len(sent) && err == nil; i++ {
		s, f := l.sender(sent[i].Group), (*flight)(nil)
		if f, err = l.newFlight(ctx, &sent[i]); err != nil {
			break
		}
		if s.flight != nil || len(f.missing) == 0 {
			err = l.o.Ledger.Requeue(&sent[i], "")
			continue
		}
		s.flight, s.sign, f.doubt = f, f.since, true
		l.begin(s)
	}
	return err
}

// begin has a worker served.
func (l *Loop) begin(s *sender) {
	if !s.runs {
		s.runs = true
		l.start(func(ctx context.Context) error { return l.serve(ctx, s) })
	}
}

// serve copies the turns of a worker until none waits.
func (l *Loop) serve(ctx context.Context, s *sender) (err error) {
	defer func() { s.runs = false }()
	for more := true; more && err == nil && ctx.Err() == nil; {
		wait := time.Duration(0)
		if s.flight != nil {
			wait, err = l.look(ctx, s)
		} else {
			more, err = l.send(ctx, s)
		}
		l.publish()
		for at := time.Now().Add(wait); ctx.Err() == nil; {
			d := time.Until(l.until)
			if s.flight == nil || !s.flight.lost {
				d = max(d, time.Until(at))
			}
			if d <= 0 {
				break
			}
			l.pause(ctx, d, s.wake)
		}
	}
	return err
}

// pause lets other goroutines act for a time, or until there is a value in wake.
func (l *Loop) pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	l.publish()
	<-l.acts
	sleep(ctx, d, wake)
	l.acts <- struct{}{}
}

func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(max(d, time.Nanosecond)) // a due one may crash synctest (Go 1.26)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sender returns the sender of a group.
func (l *Loop) sender(group string) *sender {
	if !l.o.Apart {
		group = ""
	}
	s := l.senders[group]
	if s == nil {
		s = &sender{group: group, pace: l.usual, wake: make(chan struct{}, 1)}
		l.senders[group] = s
	}
	return s
}

// testAll has each turn in flight sent again soon, unless a listing shows it.
func (l *Loop) testAll() {
	for _, s := range l.senders {
		if s.flight != nil {
			s.flight.lost = true
			signal(s.wake)
		}
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
		l.fails++
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
