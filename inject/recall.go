package inject

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sync/singleflight"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Searcher searches a backend.
type Searcher interface {
	graphiti.Searcher

	// Ready reports whether a group is searchable without first reading all of it, and
	// whether it is certainly empty.
	Ready(group string) (ready, empty bool)
}

// FactCache caches search results for requests of the same generation. Callers must not
// modify results, because they are shared.
type FactCache interface {
	Lookup(group, query string, generation int64) (facts []graphiti.Fact, found, fresh bool)

	// Version returns a group's version at the start of a search. Store drops the results if
	// the version has changed since.
	Version(group string) uint32

	// Store caches search results. cost is their approximate size in bytes.
	Store(group, query string, generation int64, version uint32, facts []graphiti.Fact, cost int, empty bool)
}

// flight is one search, shared by all requests with the same query.
type flight struct {
	facts []graphiti.Fact
	err   error
	began time.Time
	took  time.Duration
}

// flightKey identifies a search. Requests after a forget never join a search from before.
type flightKey struct {
	group, query string
	generation   int64
}

func (k *flightKey) String() string {
	return strconv.FormatInt(k.generation, 10) + "\x00" + k.group + "\x00" + k.query
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

// search searches all targets concurrently. Cached results return at once, and stale ones
// are refreshed in the background. It waits for the others until the deadline; later
// results only fill the cache. It fails if there are no results and a search failed.
func (m *Planner) search(query string, generation int64, targets []graphiti.Target, deadline time.Time) ([][]graphiti.Fact, []Searched, Source, error) {
	out := make([][]graphiti.Fact, len(targets))
	looks, now := make([]Searched, len(targets)), time.Now()
	source := SourceCache
	for i, t := range targets {
		facts, found, fresh := m.opts().Facts.Lookup(t.Group, query, generation)
		looks[i] = Searched{Scope: t.Scope, Group: t.Group, Source: SourceCache, Found: len(facts), Began: now}
		if out[i] = facts; !found {
			source, looks[i].Source = SourceLive, SourceLive
		} else if !fresh {
			looks[i].Source = SourceStale
			if source == SourceCache {
				source = SourceStale
			}
		}
	}
	flights := m.flyAll(looks, query, generation)
	if source != SourceLive {
		return out, looks, source, nil
	}
	ready, unread := m.live(looks, flights)
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var failed error
	late := timer.C
	for n, i := range append(ready, unread...) {
		if soon := now.Add(m.opts().Timeout / unready); n == len(ready) && soon.Before(deadline) && late != nil {
			timer.Reset(time.Until(soon))
		}
		f := wait(flights[i], &late)
		if f == nil {
			failed = context.DeadlineExceeded
			looks[i].Took, looks[i].Err = time.Since(now), failed
			continue
		}
		looks[i].Began, looks[i].Took, looks[i].Found, looks[i].Err = f.began, f.took, len(f.facts), f.err
		if f.err != nil {
			failed = f.err
			continue
		}
		out[i] = f.facts
	}
	if failed != nil && !slices.ContainsFunc(out, func(found []graphiti.Fact) bool { return len(found) > 0 }) {
		return nil, looks, source, failed
	}
	return out, looks, source, nil
}

// unready divides the timeout for a group that the backend must read before searching it, for
// example after a start. Small groups are read within 1/unready of the timeout; results of
// large ones are ready for the next turn.
const unready = 5

// live returns the indexes of live searches: those of ready groups, and those of groups that the
// backend must read first.
func (m *Planner) live(looks []Searched, flights []<-chan singleflight.Result) (ready, unread []int) {
	for i := range looks {
		if looks[i].Source != SourceLive || flights[i] == nil {
			continue
		}
		if isReady, _ := m.opts().Search.Ready(looks[i].Group); isReady {
			ready = append(ready, i)
		} else {
			unread = append(unread, i)
		}
	}
	return ready, unread
}

// wait returns the result of a search, or nil if the search misses the deadline. After the
// deadline, it returns only finished searches.
func wait(flying <-chan singleflight.Result, late *<-chan time.Time) *flight {
	if *late != nil {
		select {
		case r := <-flying:
			return r.Val.(*flight) //nolint:forcetypeassert // what run returns
		case <-*late:
			*late = nil
		}
	}
	select {
	case r := <-flying:
		return r.Val.(*flight) //nolint:forcetypeassert // what run returns
	default:
		return nil
	}
}

// flyAll starts searches of all groups with missing or stale cache entries, except empty
// groups.
func (m *Planner) flyAll(looks []Searched, query string, generation int64) []<-chan singleflight.Result {
	flights := make([]<-chan singleflight.Result, len(looks))
	for i := range looks {
		if _, empty := m.opts().Search.Ready(looks[i].Group); looks[i].Source != SourceCache && !empty {
			flights[i] = m.fly(flightKey{looks[i].Group, query, generation})
		}
	}
	return flights
}

// fly joins or starts a search. Background limits its duration, and Close cancels it.
func (m *Planner) fly(k flightKey) <-chan singleflight.Result {
	return m.flights.DoChan(k.String(), func() (any, error) { return m.run(k), nil })
}

// run searches with its own context, because the search may outlive the first request.
func (m *Planner) run(k flightKey) *flight {
	f := &flight{began: time.Now()}
	if !m.begin() {
		f.err = context.Canceled
		return f
	}
	defer m.running.Done()
	ctx, cancel := context.WithTimeout(m.base, m.opts().Background)
	defer cancel()
	m.find(ctx, k, f)
	f.took = time.Since(f.began)
	return f
}

// find searches the backend and caches the results. It contains panics.
func (m *Planner) find(ctx context.Context, k flightKey, f *flight) {
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("search panicked", "error", fmt.Sprint(r))
			f.facts, f.err = nil, fmt.Errorf("search panicked: %v", r)
		}
	}()
	cache := m.opts().Facts
	version := cache.Version(k.group)
	if f.facts, f.err = m.opts().Search.Search(ctx, []string{k.group}, k.query, m.opts().Asked); f.err == nil {
		cache.Store(k.group, k.query, k.generation, version, f.facts, costOf(f.facts), len(f.facts) == 0)
	}
}

// costOf returns the approximate RAM size of facts.
func costOf(facts []graphiti.Fact) int {
	n := 128
	for i := range facts {
		n += 48 + int(unsafe.Sizeof(facts[i])) + len(facts[i].Text) + len(facts[i].UUID) + len(facts[i].Episode)
	}
	return n
}
