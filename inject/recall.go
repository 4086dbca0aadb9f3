package inject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

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
	ctx, cancel := context.WithDeadline(m.base, deadline) // Close ends the searches
	defer cancel()
	out, looks := make([][]graphiti.Fact, len(targets)), make([]Searched, len(targets))
	answers, waiting := make(chan func(), len(targets)), 0
	for i, t := range targets {
		began := time.Now()
		looks[i] = Searched{Scope: t.Scope, Group: t.Group, Source: SourceLive, Began: began}
		if !m.begin() {
			continue
		}
		waiting++
		looks[i].Err = context.DeadlineExceeded // until its answer
		// Ends with ctx.
		go func() {
			defer m.running.Done()
			facts, err := m.find(ctx, t.Group, query)
			took := time.Since(began)
			answers <- func() {
				out[i], looks[i].Found, looks[i].Took, looks[i].Err = facts, len(facts), took, err
				waiting--
			}
		}()
	}
	for waiting > 0 && (ctx.Err() == nil || len(answers) > 0) {
		select {
		case answer := <-answers:
			answer()
		case <-ctx.Done(): // a search may end later
		}
	}
	var failed error
	for i := range looks {
		if look := &looks[i]; look.Err != nil {
			failed = look.Err
			look.Took = cmp.Or(look.Took, time.Since(look.Began))
		}
	}
	if failed != nil && !slices.ContainsFunc(out, func(found []graphiti.Fact) bool { return len(found) > 0 }) {
		return nil, looks, failed
	}
	return out, looks, nil
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
