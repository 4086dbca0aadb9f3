package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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

// stuckError names the parts that did not end.
type stuckError struct{ Parts []string }

func (e *stuckError) Error() string {
	return fmt.Sprintf("stop: %s did not end within %s after shutdown_grace; the process exits anyway, and queued turns are delivered after the next start",
		strings.Join(e.Parts, ", "), stopBound)
}

// stopStack holds the parts that have begun.
type stopStack struct {
	Grace time.Duration // of Shutdown, where its context has no end
	Log   *slog.Logger

	parts []part // ended last to first
	once  sync.Once
}

type part struct {
	name  string
	lock  bool // it stays as long as another part may still write
	close func(context.Context) error
}

// OnClose adds a part that f ends.
func (s *stopStack) OnClose(name string, f func(context.Context) error) {
	s.parts = append(s.parts, part{name: name, close: f})
}

// closes makes a function for OnClose of one that returns no error.
func closes(f func()) func(context.Context) error {
	return func(context.Context) error { f(); return nil }
}

// closing makes a function for OnClose of one that takes no context.
func closing(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}

// OnUnlock adds a part that keeps other processes out. While another part hangs it is
// not ended, because the other part may still write.
func (s *stopStack) OnUnlock(name string, f func(context.Context) error) {
	s.parts = append(s.parts, part{name: name, lock: true, close: f})
}

// Begun returns how many parts there are.
func (s *stopStack) Begun() int { return len(s.parts) }

// Undo ends the parts that were added after the first begun ones.
func (s *stopStack) Undo(begun int) {
	ctx, cancel := context.WithTimeout(context.Background(), stopBound)
	defer cancel()
	if err := s.end(ctx, begun); err != nil {
		s.Log.Warn("a part did not end properly", "error", err)
	}
}

// Shutdown ends all parts, the last one added first: no request is accepted, then what
// requests left behind is written, then what that needs is closed. It returns within
// stopBound of the end of ctx. A second call does nothing.
func (s *stopStack) Shutdown(ctx context.Context) (err error) {
	s.once.Do(func() {
		if _, bounded := ctx.Deadline(); !bounded {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.Grace)
			defer cancel()
		}
		err = s.end(ctx, 0)
	})
	return err
}

func (s *stopStack) end(ctx context.Context, begun int) (err error) {
	left := stopBound
	var stuck []string
	for i := len(s.parts) - 1; i >= begun; i-- {
		p := s.parts[i]
		if p.lock && len(stuck) > 0 {
			continue // it ends with the process
		}
		ended, e := p.end(ctx, &left)
		if !ended {
			stuck = append(stuck, p.name)
			s.Log.Error("a part does not end and is left behind", "part", p.name)
		} else if e != nil {
			err = errors.Join(err, fmt.Errorf("stop %s: %w", p.name, e))
		}
	}
	s.parts = s.parts[:begun]
	if len(stuck) > 0 {
		err = errors.Join(err, &stuckError{stuck})
	}
	return err
}

// end ends the part, and reports whether it has ended. When ctx is over it
// waits for PartBound at most, which it takes from what is left of Bound.
func (p *part) end(ctx context.Context, left *time.Duration) (ended bool, err error) {
	done := make(chan error, 1)
	// Ends with the part, or with the process.
	go func() { done <- p.close(ctx) }()
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
