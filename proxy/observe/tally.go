package observe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// tally is a counter with labels. Adding to it costs one atomic addition, while a counter
// of the SDK aggregates each time. It is read only for a scrape or an export. It is safe
// for concurrent use.
type tally[K comparable] struct {
	labels func(K) metric.ObserveOption
	known  map[K]*series // does not change

	mu    sync.Mutex // guards other
	other map[K]*series
}

// series is one combination of labels.
type series struct {
	labels metric.ObserveOption
	n      atomic.Int64
	zero   bool // reported before its first addition, so that the first increase is visible
}

func newTally[K comparable](labels func(K) metric.ObserveOption) *tally[K] {
	return &tally[K]{labels: labels, known: make(map[K]*series), other: make(map[K]*series)}
}

// listed returns a tally with a label of a closed list.
func listed[K ~string](label string, all []K) *tally[K] {
	t := newTally(func(k K) metric.ObserveOption { return labels(label, string(k)) })
	for _, k := range all {
		t.expect(k, true)
	}
	return t
}

// expect adds a series before the tally is used. With zero, the series is reported before
// its first addition.
func (t *tally[K]) expect(k K, zero bool) { t.known[k] = &series{labels: t.labels(k), zero: zero} }

// add adds one to a series, and returns its sum.
func (t *tally[K]) add(k K) int64 { return t.plus(k, 1) }

// plus adds n to a series, and returns its sum.
func (t *tally[K]) plus(k K, n int64) int64 {
	s, ok := t.known[k]
	if !ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s, ok = t.other[k]; !ok {
			s = &series{labels: t.labels(k), zero: true}
			t.other[k] = s
		}
	}
	return s.n.Add(n)
}

// maxSeries limits the series whose labels are from requests.
const maxSeries = 500

// within returns k, or rest if k would be one series too many.
func (t *tally[K]) within(k, rest K) K {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.other[k] == nil && len(t.other) >= maxSeries {
		return rest
	}
	return k
}

// report makes a meter read the tally.
func (t *tally[K]) report(m metric.Meter, name, what string) error {
	_, err := m.Int64ObservableCounter("graphiti_proxy_"+name, metric.WithDescription(what), metric.WithInt64Callback(
		func(_ context.Context, o metric.Int64Observer) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			for _, list := range []map[K]*series{t.known, t.other} {
				for _, s := range list {
					if n := s.n.Load(); n > 0 || s.zero {
						o.Observe(n, s.labels)
					}
				}
			}
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make the metric %s: %w", name, err)
	}
	return nil
}

// each calls f for each series with a count.
func (t *tally[K]) each(f func(k K, n int64)) {
	for k, s := range t.known {
		if n := s.n.Load(); n > 0 {
			f(k, n)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, s := range t.other {
		f(k, s.n.Load())
	}
}

// sum is a counter without labels, as cheap as a tally. It is reported after its first
// addition.
type sum struct{ n atomic.Int64 }

// report makes a meter read the sum.
func (s *sum) report(m metric.Meter, name, what string) error {
	_, err := m.Int64ObservableCounter("graphiti_proxy_"+name, metric.WithDescription(what), metric.WithInt64Callback(
		func(_ context.Context, o metric.Int64Observer) error {
			if n := s.n.Load(); n > 0 {
				o.Observe(n)
			}
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make the metric %s: %w", name, err)
	}
	return nil
}
