// Package deadline owns contexts that end at a time, and cost next to nothing
// where nobody waits for that: what is asked for a request is mostly in memory.
//
// It imports none of our packages, and must not know what is waited for.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context is a context that ends at a time, or with its parent, or when it is
// stopped. It has no timer before somebody waits for its end. It is safe for
// concurrent use.
type Context struct {
	context.Context // the parent
	at              time.Time

	mu      sync.Mutex // guards what follows
	stopped bool
	timed   context.Context // nil: nobody waits
	cancel  context.CancelFunc
}

// New returns a context that ends at a time. Who makes it stops it.
func New(parent context.Context, at time.Time) *Context { return &Context{Context: parent, at: at} }

// Stop ends the context.
func (c *Context) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped = true; c.cancel != nil {
		c.cancel()
	}
}

// Deadline implements context.Context.
func (c *Context) Deadline() (at time.Time, ok bool) {
	if at, ok = c.Context.Deadline(); ok && at.Before(c.at) {
		return at, true
	}
	return c.at, true
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		if c.timed, c.cancel = context.WithDeadline(c.Context, c.at); c.stopped {
			c.cancel()
		}
	}
	return c.timed.Done()
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.timed != nil:
		return c.timed.Err()
	case c.Context.Err() != nil:
		return c.Context.Err()
	case !time.Now().Before(c.at):
		return context.DeadlineExceeded
	case c.stopped:
		return context.Canceled
	}
	return nil
}
