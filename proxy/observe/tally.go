package observe

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// tally is a counter with labels that the proxy reads itself, too. It is read for a scrape, an
// export or a status. It is safe for concurrent use.
type tally[K comparable] struct {
	labels func(K) metric.ObserveOption

	mu  sync.Mutex // guards all
	all map[K]*series
}

// series is one combination of labels.
type series struct {
	labels metric.ObserveOption
	n      int64
}

func newTally[K comparable](labels func(K) metric.ObserveOption) *tally[K] {
	return &tally[K]{labels: labels, all: make(map[K]*series)}
}

// listed returns a tally with a label of a closed list.
func listed[K ~string](label string, all []K) *tally[K] {
	t := newTally(func(k K) metric.ObserveOption { return labels(label, string(k)) })
	for _, k := range all {
		t.plus(k, 0)
	}
	return t
}

// add adds one to a series, and returns its sum.
func (t *tally[K]) add(k K) int64 { return t.plus(k, 1) }

// plus adds n to a series, and returns its sum. With 0, the series is reported before its first
// addition, so that the first increase is visible.
func (t *tally[K]) plus(k K, n int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.all[k]
	if !ok {
		s = &series{labels: t.labels(k)}
		t.all[k] = s
	}
	s.n += n
	return s.n
}

// maxSeries limits the series whose labels are from requests.
const maxSeries = 500

// within returns k, or rest if k would be one series too many.
func (t *tally[K]) within(k, rest K) K {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[k] == nil && len(t.all) >= maxSeries {
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
			for _, s := range t.all {
				o.Observe(s.n, s.labels)
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
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, s := range t.all {
		if s.n > 0 {
			f(k, s.n)
		}
	}
}
