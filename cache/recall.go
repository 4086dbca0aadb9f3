package cache

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// RecallOptions configures a Recall.
type RecallOptions struct {
	Fresh    time.Duration // age limit of a fresh entry
	Stale    time.Duration // age limit of a usable entry
	MaxBytes int64
}

// Recall caches the results of searches in RAM, by group, query and the number of forgets
// that the request carries: after a forget, every search is repeated. It is safe for
// concurrent use.
type Recall[V any] struct {
	o     RecallOptions
	store *ristretto.Cache[uint64, recalled[V]]
	seed  maphash.Seed

	// versions counts the drops of each group. Groups share the counters: a drop also
	// affects the few groups with the same counter.
	versions [1024]atomic.Uint32
}

// recalled is a stored search result.
type recalled[V any] struct {
	value   V
	check   uint64 // a second hash of the key: the store's alone may collide
	born    time.Time
	empty   bool
	version uint32 // version of the group at the start of its search
}

// NewRecall returns an empty cache.
func NewRecall[V any](o RecallOptions) (*Recall[V], error) {
	store, err := ristretto.NewCache(&ristretto.Config[uint64, recalled[V]]{
		NumCounters: o.MaxBytes / 400, // about ten for each entry, as its authors advise: one takes some 4 KB
		MaxCost:     o.MaxBytes,
		BufferItems: 64,
		// Lookup refuses entries that are too old. Ristretto need not wake up
		// every other second to remove them.
		TtlTickerDurationInSec: 120,
	})
	if err != nil {
		return nil, fmt.Errorf("make recall cache: %w", err)
	}
	return &Recall[V]{o: o, store: store, seed: maphash.MakeSeed()}, nil
}

// Lookup returns the stored result for a query in a group, whether there is one, and
// whether it is fresh. An empty result lives for a tenth of Fresh only, because the group
// may receive facts at any moment.
func (r *Recall[V]) Lookup(group, query string, generation int64) (v V, found, fresh bool) {
	key, check := r.key(group, query, generation)
	e, ok := r.store.Get(key)
	if !ok || e.check != check || e.version != r.Version(group) {
		return v, false, false
	}
	age, limit := time.Since(e.born), r.o.Fresh
	if e.empty {
		limit /= 10
	}
	if age > r.o.Stale || e.empty && age > limit {
		return v, false, false
	}
	return e.value, true, age <= limit
}

// Version returns the version of a group, to pass to Store after a search that begins now.
func (r *Recall[V]) Version(group string) uint32 { return r.counter(group).Load() }

// Store stores the result of a search that began at a version of its group, unless the
// group was dropped since. cost is the approximate size of v in bytes; empty reports
// whether the search found nothing.
func (r *Recall[V]) Store(group, query string, generation int64, version uint32, v V, cost int, empty bool) {
	if version != r.Version(group) {
		return
	}
	key, check := r.key(group, query, generation)
	e := recalled[V]{value: v, check: check, born: time.Now(), empty: empty, version: version}
	r.store.SetWithTTL(key, e, int64(cost), r.o.Stale)
}

// DropGroup drops the results of a group whose facts have changed.
func (r *Recall[V]) DropGroup(group string) { r.counter(group).Add(1) }

// Wait returns when Lookup finds everything stored so far.
func (r *Recall[V]) Wait() { r.store.Wait() }

// Close ends the cache's goroutine.
func (r *Recall[V]) Close() { r.store.Close() }

func (r *Recall[V]) counter(group string) *atomic.Uint32 {
	return &r.versions[maphash.String(r.seed, group)%uint64(len(r.versions))]
}

func (r *Recall[V]) key(group, query string, generation int64) (key, check uint64) {
	var h maphash.Hash
	h.SetSeed(r.seed)
	maphash.WriteComparable(&h, generation)
	_, _ = h.WriteString(group)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(query)
	key = h.Sum64()
	_ = h.WriteByte(1)
	return key, h.Sum64()
}
