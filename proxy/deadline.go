package proxy

import (
	"context"
	"sync"
	"time"
)

// deadline is a context with a deadline, like that of context.WithDeadline, but without a
// timer until something waits for it. Most requests of known conversations wait for
// nothing, and a timer costs more than their lookups.
type deadline struct {
	context.Context // the parent, without a deadline
	at              time.Time

	mu      sync.Mutex      // guards the fields below
	waits   context.Context //nolint:containedctx // with the timer; nil before Done
	release context.CancelFunc
	ended   bool
}

// withDeadline returns a context that ends at a time, with parent, or when end is called.
// parent has no deadline.
func withDeadline(parent context.Context, at time.Time) (d *deadline, end context.CancelFunc) {
	d = &deadline{Context: parent, at: at}
	return d, d.end
}

func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.release != nil {
		d.release()
	}
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (at time.Time, ok bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waits == nil {
		d.waits, d.release = context.WithDeadline(d.Context, d.at)
		if d.ended {
			d.release()
		}
	}
	return d.waits.Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.waits != nil:
		return d.waits.Err()
	case d.Context.Err() != nil:
		return d.Context.Err()
	case d.ended:
		return context.Canceled
	case !time.Now().Before(d.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context. After Done it is that of the context with the timer,
// so that contexts derived from d need no goroutine each.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	of := d.waits
	d.mu.Unlock()
	if of == nil {
		of = d.Context
	}
	return of.Value(key)
}
