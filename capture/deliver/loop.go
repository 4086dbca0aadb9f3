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
	firstRetry    = 500 * time.Millisecond
	lastRetry     = 5 * time.Second
	maxRetryAfter = time.Hour // limit of a server's Retry-After

	// pollLedger is the interval at which the ledger is read without a Wake: other processes may
	// have written to it.
	pollLedger = time.Second
)

// Loop copies waiting turns and deletes forgotten ones, with one call at a time. Its methods may be called at
// any time.
type Loop struct {
	o    Options
	wake chan struct{} // capacity 1: further wakes add nothing

	mu      sync.Mutex // protects the fields below; Run holds it, except during calls and pauses
	listed  bool       // a listing has shown stored messages
	senders map[string]*sender
	erasing map[string]*erasing

	blamed map[int64]time.Time // last failures of copies, by their numbers
	taken  time.Time           // when the memory last took a copy, or zero

	fails    int       // failed calls in a row
	until    time.Time // no calls before this time
	gone     bool      // the last call found the memory out of reach
	search   error     // of the last search for a quiet worker
	failure  failure
	lost     int
	usual    time.Duration // last known pace of a sender, for new ones
	episodes int           // accepted messages
}

// New returns a Loop that does nothing before Run. listed reports whether the memory has listed
// stored messages before.
func New(o Options, listed bool) *Loop {
	return &Loop{o: o, wake: make(chan struct{}, 1), listed: listed, blamed: make(map[int64]time.Time)}
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
	defer l.mu.Unlock()
	l.testAll()
}

// Run delivers until ctx is done, which also cancels a running call. After a panic or a failure of
// the ledger, it forgets its flights and reads them from the ledger, as after a start.
func (l *Loop) Run(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ctx.Err() == nil {
		l.report(ofLedger, l.round(ctx))
		l.senders, l.erasing = nil, nil // another process may get the lease
		l.pause(ctx, pollLedger)
	}
}

// round delivers until ctx ends, or until the ledger fails.
func (l *Loop) round(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("delivery panicked: %v", r)
		}
	}()
	l.senders, l.erasing, l.until = make(map[string]*sender), make(map[string]*erasing), time.Time{}
	var read time.Time
	for err = l.resume(ctx); err == nil && ctx.Err() == nil; {
		if time.Since(read) >= pollLedger {
			if err = l.read(ctx); err != nil {
				break
			}
			read = time.Now()
		}
		var next time.Time
		if next, err = l.act(ctx, read.Add(pollLedger)); err != nil {
			break
		}
		l.report(ofLedger, nil)
		if l.pause(ctx, time.Until(next)) {
			read = time.Time{}
		}
	}
	return err
}

// resume takes over the copies that an earlier process sent: the first one of each worker is in doubt.
// Another one is looked up before it is sent again.
func (l *Loop) resume(ctx context.Context) error {
	sent, err := l.o.Ledger.Sent(ctx)
	for i := 0; i < len(sent) && err == nil; i++ {
		s, f := l.sender(sent[i].Group), (*flight)(nil)
		switch f, err = l.newFlight(ctx, &sent[i]); {
		case err != nil:
		case s.flight != nil, len(f.missing) == 0:
			err = l.o.Ledger.Requeue(&sent[i], "")
		default:
			s.flight, s.sign, s.waits, f.doubt = f, f.since, true, true
		}
	}
	return err
}

// read reads the waiting copies and the forgotten parts.
func (l *Loop) read(ctx context.Context) error {
	groups, err := l.o.Ledger.Waiting(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		l.sender(g).waits = true
	}
	if err := l.readWithdrawn(ctx); err != nil {
		return err
	}
	maps.DeleteFunc(l.senders, func(own string, s *sender) bool { return own != "" && !s.waits && l.erasing[own] == nil })
	return nil
}

// act makes the calls that are due, and returns the time of the following one, or next if that is earlier.
func (l *Loop) act(ctx context.Context, next time.Time) (_ time.Time, err error) {
	do := func(at *time.Time, call func() (time.Duration, error)) {
		if now := time.Now(); err == nil && !at.After(now) && !l.until.After(now) {
			var wait time.Duration
			wait, err = call()
			*at = time.Now().Add(wait)
		}
		next = earliest(next, slices.MaxFunc([]time.Time{*at, l.until}, time.Time.Compare))
	}
	for _, s := range l.senders {
		if s.waits {
			do(&s.at, func() (time.Duration, error) {
				if s.flight == nil {
					return 0, l.send(ctx, s)
				}
				return l.look(ctx, s)
			})
		}
	}
	for g, e := range l.erasing {
		do(&e.at, func() (time.Duration, error) { return l.erase(ctx, g, e) })
	}
	return next, err
}

// pause waits for a time, or until a Wake, which it reports.
func (l *Loop) pause(ctx context.Context, d time.Duration) (woken bool) {
	l.mu.Unlock()
	defer l.mu.Lock()
	timer := time.NewTimer(max(d, time.Nanosecond)) // a due one may crash synctest (Go 1.26)
	defer timer.Stop()
	select {
	case <-l.wake:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// sender returns the sender of a group.
func (l *Loop) sender(group string) *sender {
	if !l.o.Apart {
		group = ""
	}
	s := l.senders[group]
	if s == nil {
		s = &sender{group: group, pace: l.usual}
		l.senders[group] = s
	}
	return s
}

// testAll has each turn in flight sent again soon, unless a listing shows it.
func (l *Loop) testAll() {
	for _, s := range l.senders {
		if s.flight != nil {
			s.flight.lost, s.at = true, time.Time{}
		}
	}
	l.Wake()
}

// call makes one call to the memory. After a failure, no calls are made for a while: exponential with full jitter,
// and at least Retry-After. An answer after a refused connection shows that Graphiti has lost the turns in flight.
func (l *Loop) call(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := func() error {
		l.mu.Unlock()
		defer l.mu.Lock()
		return f(ctx)
	}()
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		most := min(firstRetry<<min(l.fails, 10), lastRetry)
		l.until = time.Now().Add(max(rand.N(most)+1, retryAfter(err))) // #nosec G404 -- spreads load, no secret
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

// retryAfter returns the server's Retry-After, limited to maxRetryAfter.
func retryAfter(err error) time.Duration {
	var status *graphiti.StatusError
	if errors.As(err, &status) {
		return min(status.RetryAfter, maxRetryAfter)
	}
	return 0
}
