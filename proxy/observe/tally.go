package observe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// tally is a counter with labels to which each request adds: one atomic addition, while
// a counter of the SDK aggregates each time. It is read when somebody scrapes or
// exports. It is safe for concurrent use.
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
	zero   bool // it is reported from the beginning, so that its first rise is seen
}

func newTally[K comparable](labels func(K) metric.ObserveOption) *tally[K] {
	return &tally[K]{labels: labels, known: make(map[K]*series), other: make(map[K]*series)}
}

// expect makes a series before the tally is used. With zero it is reported from
// the beginning.
func (t *tally[K]) expect(k K, zero bool) { t.known[k] = &series{labels: t.labels(k), zero: zero} }

// add adds one to a series, and returns its sum.
func (t *tally[K]) add(k K) int64 {
	s, ok := t.known[k]
	if !ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s, ok = t.other[k]; !ok {
			s = &series{labels: t.labels(k)}
			t.other[k] = s
		}
	}
	return s.n.Add(1)
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

// each calls f for what was counted.
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
