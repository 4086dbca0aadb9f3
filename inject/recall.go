package inject

import (
	"context"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Searcher finds facts, as graphiti.Searcher does.
type Searcher interface {
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
}

// FactCache remembers what searches found. What it returns is shared and must
// not be changed.
type FactCache interface {
	Lookup(group, query string) (facts []graphiti.Fact, found, fresh bool)

	// Fetch is called before a search begins: it asks other replicas what they
	// found. What is known of the group's state then is the generation; what
	// is found is of no use once that has changed.
	Fetch(ctx context.Context, group, query string) (facts []graphiti.Fact, found bool, generation string)

	// Store keeps what was found, and Share tells other replicas.
	Store(group, query, generation string, facts []graphiti.Fact, cost int, empty bool)
	Share(group, query, generation string, facts []graphiti.Fact, empty bool)
}

// flight is one search under way, shared by all that ask the same.
type flight struct {
	done  chan struct{} // closed when the rest is set
	facts []graphiti.Fact
	err   error

	fetched bool // from another replica, which searched

	began time.Time
	took  time.Duration
}

type flightKey struct{ group, query string }

// Searched is a look for facts in one group.
type Searched struct {
	Scope  graphiti.Scope
	Group  string
	Source Source // empty: another replica's cache
	Found  int    // facts
	Began  time.Time
	Took   time.Duration // until there was an answer, or it was not waited for any more
	Err    error         // context.DeadlineExceeded where it was not
}

// search asks for the facts of each target, side by side. What is cached
// answers at once, and is refreshed behind when it is stale. For the rest it
// waits until the deadline; searches that take longer go on and fill the
// cache. It fails only when nothing at all could be learnt.
func (m *Memory) search(query string, targets []graphiti.Target, deadline time.Time) ([][]graphiti.Fact, []Searched, Source, error) {
	out := make([][]graphiti.Fact, len(targets))
	looks, now := make([]Searched, len(targets)), time.Now()
	flights := make([]*flight, len(targets))
	source, known := SourceCache, 0
	for i, t := range targets {
		facts, found, fresh := m.opts().Facts.Lookup(t.Group, query)
		looks[i] = Searched{Scope: t.Scope, Group: t.Group, Source: SourceCache, Found: len(facts), Began: now}
		if found {
			out[i] = facts
			known++
		}
		if !found {
			flights[i] = m.fly(flightKey{t.Group, query})
			source, looks[i].Source = SourceLive, SourceLive
		} else if !fresh {
			looks[i].Source = SourceStale
			m.fly(flightKey{t.Group, query})
			if source == SourceCache {
				source = SourceStale
			}
		}
	}
	if source != SourceLive {
		return out, looks, source, nil
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var failed error
	late, searched := false, false
	for i, f := range flights {
		if f == nil {
			continue
		}
		if !late {
			select {
			case <-f.done:
			case <-timer.C:
				late = true
			}
		}
		select {
		case <-f.done:
			looks[i].Began, looks[i].Took, looks[i].Found, looks[i].Err = f.began, f.took, len(f.facts), f.err
			if f.fetched {
				looks[i].Source = ""
			}
			if f.err != nil {
				failed = f.err
				continue
			}
			out[i] = f.facts
			known++
			searched = searched || !f.fetched
		default:
			failed = context.DeadlineExceeded
			looks[i].Took, looks[i].Err = time.Since(now), failed
		}
	}
	if known == 0 && failed != nil {
		return nil, looks, source, failed
	}
	if failed == nil && !searched {
		source = SourceCache
	}
	return out, looks, source, nil
}

// fly joins a search under way, or starts it.
func (m *Memory) fly(k flightKey) *flight {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.flights[k]; ok {
		return f
	}
	f := &flight{done: make(chan struct{}), began: time.Now()}
	if m.closed {
		f.err = context.Canceled
		close(f.done)
		return f
	}
	m.flights[k] = f
	m.running.Add(1)
	// Ends with its search, which Background bounds and Close cancels.
	go m.run(k, f)
	return f
}

// run searches with a context of its own: the request that asked first may be
// gone long before.
func (m *Memory) run(k flightKey, f *flight) {
	defer m.running.Done()
	ctx, cancel := context.WithTimeout(m.base, m.opts().Background)
	defer cancel()
	m.find(ctx, k, f)
	f.took = time.Since(f.began)
	m.mu.Lock()
	if m.flights[k] == f {
		delete(m.flights, k)
	}
	m.mu.Unlock()
	close(f.done)
}

// find asks the cache, and then the memory. It contains panics of both.
func (m *Memory) find(ctx context.Context, k flightKey, f *flight) {
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("search panicked", "error", fmt.Sprint(r))
			f.facts, f.err = nil, fmt.Errorf("search panicked: %v", r)
		}
	}()
	forgets := m.forgets.Load()
	cache := m.opts().Facts
	var generation string
	if f.facts, f.fetched, generation = cache.Fetch(ctx, k.group, k.query); !f.fetched {
		// More than are shown: some will turn out not to be valid, or to be known.
		f.facts, f.err = m.opts().Search.Search(ctx, []string{k.group}, k.query, 2*m.opts().MaxFacts)
	}
	switch {
	case forgets != m.forgets.Load():
		f.facts = nil
	case f.err == nil:
		cache.Store(k.group, k.query, generation, f.facts, costOf(f.facts), len(f.facts) == 0)
		if !f.fetched {
			cache.Share(k.group, k.query, generation, f.facts, len(f.facts) == 0)
		}
	}
}

// costOf is about how much memory facts take.
func costOf(facts []graphiti.Fact) int {
	n := 64
	for i := range facts {
		n += 200 + len(facts[i].Text) + len(facts[i].UUID) + len(facts[i].Name) + len(facts[i].Episode)
	}
	return n
}
