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
	// stopBound is the time for the end of a part after the grace.
	stopBound = 5 * time.Second

	// leastBound is that time after a part that hangs, which must not keep the others from
	// writing their data.
	leastBound = 100 * time.Millisecond
)

// stuckError names the parts that did not end.
type stuckError struct{ Parts []string }

func (e *stuckError) Error() string {
	return fmt.Sprintf("stop: %s did not end within %s after shutdown_grace; the process exits anyway, and queued turns are delivered after the next start",
		strings.Join(e.Parts, ", "), stopBound)
}

// stopStack contains the started parts.
type stopStack struct {
	Grace time.Duration // for Shutdown, if its context has no deadline
	Log   *slog.Logger

	parts []part // ended last to first
	once  sync.Once
}

type part struct {
	name  string
	lock  bool // not ended while another part may still write
	close func(context.Context) error
}

// OnClose adds a part. f ends it.
func (s *stopStack) OnClose(name string, f func(context.Context) error) {
	s.parts = append(s.parts, part{name: name, close: f})
}

// Repeat calls f now and at each interval, in a part of the stack.
func (s *stopStack) Repeat(name string, interval time.Duration, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	// Ends with cancel.
	go func() {
		defer close(ended)
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			f(ctx)
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	}()
	s.OnClose(name, closes(func() { cancel(); <-ended }))
}

// closes converts a function without an error for OnClose.
func closes(f func()) func(context.Context) error {
	return func(context.Context) error { f(); return nil }
}

// closing converts a function without a context for OnClose.
func closing(f func() error) func(context.Context) error {
	return func(context.Context) error { return f() }
}

// OnUnlock adds a part that keeps other processes out. It is not ended while another part
// hangs, because that part may still write.
func (s *stopStack) OnUnlock(name string, f func(context.Context) error) {
	s.parts = append(s.parts, part{name: name, lock: true, close: f})
}

// Begun returns the number of parts.
func (s *stopStack) Begun() int { return len(s.parts) }

// Undo ends the parts after the first begun ones.
func (s *stopStack) Undo(begun int) {
	ctx, cancel := context.WithTimeout(context.Background(), stopBound)
	defer cancel()
	if err := s.end(ctx, begun); err != nil {
		s.Log.Warn("a part did not end properly", "error", err)
	}
}

// Shutdown ends all parts, the last one first: it stops requests, then writes their data,
// then closes the files. After the end of ctx it waits for stopBound, and then for at most
// leastBound for each other part that hangs. A second call does nothing.
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
	patience := stopBound
	var stuck []string
	for i := len(s.parts) - 1; i >= begun; i-- {
		p := s.parts[i]
		if p.lock && len(stuck) > 0 {
			continue // it ends with the process
		}
		ended, e := p.end(ctx, patience)
		if !ended {
			stuck, patience = append(stuck, p.name), leastBound
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

// end ends the part, and reports whether it has ended within some time after the end of ctx.
func (p *part) end(ctx context.Context, patience time.Duration) (ended bool, err error) {
	done := make(chan error, 1)
	// Ends with the part, or with the process.
	go func() { done <- p.close(ctx) }()
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return true, err
	case <-time.After(patience):
		return false, nil
	}
}
