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

// Searcher finds facts, as graphiti.Memory does.
type Searcher interface {
	graphiti.Searcher

	// Ready reports whether a group can be searched without reading all of it first.
	Ready(group string) bool

	// Weighs reports whether the memory weighs its facts, and weighs earlier questions
	// less than the question itself.
	Weighs() bool
}

// FactCache keeps what searches found, for requests of the same generation. Nobody may
// change what it returns: it is shared.
type FactCache interface {
	Lookup(group, query string, generation int64) (facts []graphiti.Fact, found, fresh bool)

	// Version returns the version of a group, for a search that begins now. If the
	// version has changed when the search ends, Store keeps nothing.
	Version(group string) uint32

	// Store keeps what a search found. cost is about its size in bytes.
	Store(group, query string, generation int64, version uint32, facts []graphiti.Fact, cost int, empty bool)
}

// flight is one search, shared by all that ask the same.
type flight struct {
	facts []graphiti.Fact
	err   error
	began time.Time
	took  time.Duration
}

// flightKey says what is searched. A request that arrived after something was
// forgotten does not join a search from before.
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
	Found  int // facts
	Began  time.Time
	Took   time.Duration // until the answer came, or the request stopped waiting
	Err    error         // context.DeadlineExceeded if the request stopped waiting
}

// search asks for the facts of each target, side by side. What is cached
// answers at once, and is refreshed behind when it is stale. For the rest it
// waits until the deadline; searches that take longer go on and fill the
// cache. It fails where nothing was found, and somewhere might have been.
func (m *Memory) search(query string, generation int64, targets []graphiti.Target, deadline time.Time) ([][]graphiti.Fact, []Searched, Source, error) {
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
	if soon := now.Add(m.opts().Timeout / unready); m.mustRead(targets) && soon.Before(deadline) {
		deadline = soon
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var failed error
	late := timer.C
	for i, flying := range flights {
		if looks[i].Source != SourceLive {
			continue
		}
		f := wait(flying, &late)
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

// unready divides the timeout for a group that the memory has to read before it can
// search it, as after a start: a request waits for 1/unready of the timeout. A small
// group is read by then; what is found in a large one is for the next turn.
const unready = 5

// mustRead reports whether the memory has to read one of these groups first.
func (m *Memory) mustRead(targets []graphiti.Target) bool {
	search := m.opts().Search
	return slices.ContainsFunc(targets, func(t graphiti.Target) bool { return !search.Ready(t.Group) })
}

// wait returns a search that has ended, or ends before it is late; nil when it
// does not. Once it is late, what has not ended is not waited for.
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

// flyAll starts a search of each group whose facts are not cached, or are stale.
func (m *Memory) flyAll(looks []Searched, query string, generation int64) []<-chan singleflight.Result {
	flights := make([]<-chan singleflight.Result, len(looks))
	for i := range looks {
		if looks[i].Source != SourceCache {
			flights[i] = m.fly(flightKey{looks[i].Group, query, generation})
		}
	}
	return flights
}

// fly joins a search under way, or starts it. It ends by itself, which
// Background bounds and Close cancels.
func (m *Memory) fly(k flightKey) <-chan singleflight.Result {
	return m.flights.DoChan(k.String(), func() (any, error) { return m.run(k), nil })
}

// run searches with a context of its own: the request that asked first may be
// gone long before.
func (m *Memory) run(k flightKey) *flight {
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
	if f.err == nil {
		m.times.add(f.took)
	}
	return f
}

// find asks the memory, and keeps what it found. It contains panics.
func (m *Memory) find(ctx context.Context, k flightKey, f *flight) {
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

// costOf is about how much RAM facts take.
func costOf(facts []graphiti.Fact) int {
	n := 128
	for i := range facts {
		n += 32 + int(unsafe.Sizeof(facts[i])) + len(facts[i].Text) + len(facts[i].UUID) + len(facts[i].Name) + len(facts[i].Episode)
	}
	return n
}
