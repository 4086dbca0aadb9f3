package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// partBound is how long a part may take to end when the grace is over.
	partBound = 5 * time.Second

	// stopBound is how long all of them may.
	stopBound = 10 * time.Second

	// leastBound is what each has, so that one that hangs does not keep the
	// others from writing down what they hold.
	leastBound = 100 * time.Millisecond
)

// lockPart keeps other processes out of the data directory.
const lockPart = "lock"

// closer ends one part of the app.
type closer struct {
	name  string
	close func(context.Context) error
}

// stuckError names the parts that did not end.
type stuckError struct{ parts []string }

func (e *stuckError) Error() string {
	return fmt.Sprintf("stop: %s did not end within %s of shutdown_grace; the process ends all the same, and what the spool holds is delivered after the next start",
		strings.Join(e.parts, ", "), stopBound)
}

func (a *app) onClose(name string, f func(context.Context) error) {
	a.closers = append(a.closers, closer{name, f})
}

// Shutdown ends the parts in the reverse of the order in which they began:
// first no more requests, then what those left behind, then what that needs.
// It returns within stopBound of ctx's end, and where that has none of
// shutdown_grace; a part that hangs is left behind.
func (a *app) Shutdown(ctx context.Context) (err error) {
	a.once.Do(func() {
		if _, bounded := ctx.Deadline(); !bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.cfg.ShutdownGrace)
			defer cancel()
		}
		left := stopBound
		var stuck []string
		for i := len(a.closers) - 1; i >= 0; i-- {
			c := a.closers[i]
			if c.name == lockPart && len(stuck) > 0 {
				continue // it ends with the process: until then, what hangs may still write
			}
			ended, e := c.end(ctx, &left)
			if !ended {
				stuck = append(stuck, c.name)
				a.log.Error("a part does not end, and is left behind", "part", c.name)
			} else if e != nil {
				err = errors.Join(err, fmt.Errorf("stop %s: %w", c.name, e))
			}
		}
		if len(stuck) > 0 {
			err = errors.Join(err, &stuckError{stuck})
		}
	})
	return err
}

// end ends the part, and reports whether it has ended. When ctx is over it
// waits for partBound at most, which it takes from what is left of stopBound.
func (c closer) end(ctx context.Context, left *time.Duration) (ended bool, err error) {
	done := make(chan error, 1)
	// Ends with the part, or with the process.
	go func() { done <- c.close(ctx) }()
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
	}
	began := time.Now()
	t := time.NewTimer(max(min(partBound, *left), leastBound))
	defer t.Stop()
	defer func() { *left -= time.Since(began) }()
	select {
	case err := <-done:
		return true, err
	case <-t.C:
		return false, nil
	}
}
