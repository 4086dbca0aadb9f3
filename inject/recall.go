package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Searcher searches a backend.
type Searcher interface {
	graphiti.Searcher

	// Ready reports whether a group is searchable without first reading all of it, and
	// whether it is certainly empty.
	Ready(group string) (ready, empty bool)
}

// Searched is one search for facts in one group.
type Searched struct {
	Scope  graphiti.Scope
	Group  string
	Source Source
	Found  int // number of facts
	Began  time.Time
	Took   time.Duration // until the answer, or until the request stopped waiting
	Err    error         // context.DeadlineExceeded if the request stopped waiting
}

// search searches all groups concurrently, until the deadline. It fails if there are no
// results and a search failed.
func (m *Planner) search(query string, targets []graphiti.Target, deadline time.Time) ([][]graphiti.Fact, []Searched, error) {
	out, looks := make([][]graphiti.Fact, len(targets)), make([]Searched, len(targets))
	var waits []func()
	for i, t := range targets {
		looks[i] = Searched{Scope: t.Scope, Group: t.Group, Source: SourceLive, Began: time.Now()}
		if wait := m.start(t.Group, query, deadline); wait != nil {
			waits = append(waits, func() { out[i], looks[i].Took, looks[i].Err = wait() })
		}
	}
	var failed error
	for _, wait := range waits {
		wait()
	}
	for i := range looks {
		if looks[i].Found = len(out[i]); looks[i].Err != nil {
			failed = looks[i].Err
		}
	}
	if failed != nil && !slices.ContainsFunc(out, func(found []graphiti.Fact) bool { return len(found) > 0 }) {
		return nil, looks, failed
	}
	return out, looks, nil
}

// unready divides the timeout for a group that the backend must read before searching it, for
// example after a start. Small groups are read within 1/unready of the timeout; the backend
// continues to read large ones for the next turn.
const unready = 5

// start searches a group, and returns a function that waits for the results until the deadline;
// nil if the group is empty. Close ends the search.
func (m *Planner) start(group, query string, by time.Time) (wait func() ([]graphiti.Fact, time.Duration, error)) {
	ready, empty := m.opts().Search.Ready(group)
	if empty || !m.begin() {
		return nil
	}
	began := time.Now()
	if soon := began.Add(m.opts().Timeout / unready); !ready && soon.Before(by) {
		by = soon
	}
	ctx, cancel := context.WithDeadline(m.base, by)
	var facts []graphiti.Fact
	var took time.Duration
	var err error
	done := make(chan struct{})
	// Ends with ctx.
	go func() {
		defer m.running.Done()
		defer close(done)
		facts, err = m.find(ctx, group, query)
		took = time.Since(began)
	}()
	return func() ([]graphiti.Fact, time.Duration, error) {
		defer cancel()
		select {
		case <-done:
			return facts, took, err
		case <-ctx.Done(): // the search may end later
		}
		select {
		case <-done:
			return facts, took, err
		default:
			return nil, time.Since(began), ctx.Err()
		}
	}
}

// find searches the backend. It contains panics.
func (m *Planner) find(ctx context.Context, group, query string) (facts []graphiti.Fact, err error) {
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("search panicked", "error", fmt.Sprint(r))
			facts, err = nil, fmt.Errorf("search panicked: %v", r)
		}
	}()
	facts, err = m.opts().Search.Search(ctx, []string{group}, query, m.opts().Asked)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return facts, err //nolint:wrapcheck // the caller names the action
}
