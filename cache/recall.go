package cache

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

// RecallOptions configures a Recall.
type RecallOptions struct {
	Fresh    time.Duration // age limit of a fresh entry
	Stale    time.Duration // age limit of a usable entry
	MaxBytes int
	Shared   *redis.DB // publishes dropped groups; nil without replicas
}

// Recall caches the results of searches in RAM, by group, query and the number of forgets
// that the request carries: after a forget, every search is repeated. It is safe for
// concurrent use.
type Recall[V any] struct {
	o     RecallOptions
	store *byteLRU[[2]uint64, recalled[V]]
	seed  maphash.Seed

	// versions counts the drops of each group. Groups share the counters: a drop also
	// affects the few groups with the same counter.
	versions [1024]atomic.Uint32
}

// recalled is a stored search result.
type recalled[V any] struct {
	value   V
	born    time.Time
	empty   bool
	version uint32 // version of the group at the start of its search
}

// NewRecall returns an empty cache.
func NewRecall[V any](o RecallOptions) *Recall[V] {
	return &Recall[V]{o: o, store: newByteLRU[[2]uint64, recalled[V]](o.MaxBytes), seed: maphash.MakeSeed()}
}

// Lookup returns the stored result for a query in a group, whether there is one, and
// whether it is fresh. An empty result lives for a tenth of Fresh only, because the group
// may receive facts at any moment.
func (r *Recall[V]) Lookup(group, query string, generation int64) (v V, found, fresh bool) {
	e, ok := r.store.Get(r.key(group, query, generation))
	if !ok || e.version != r.Version(group) {
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
	r.store.Add(r.key(group, query, generation), recalled[V]{value: v, born: time.Now(), empty: empty, version: version}, recentOverhead+cost)
}

// DropGroup drops the results of a group whose facts have changed, on all replicas.
func (r *Recall[V]) DropGroup(group string) {
	r.counter(group).Add(1)
	if r.o.Shared == nil {
		return
	}
	// On error, the entries of other replicas expire soon.
	_ = r.o.Shared.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		return redis.Publish(ctx, c, eventDrop+group).Err()
	})
}

// DropAll drops every result of this process.
func (r *Recall[V]) DropAll() {
	for i := range r.versions {
		r.versions[i].Add(1)
	}
}

func (r *Recall[V]) counter(group string) *atomic.Uint32 {
	return &r.versions[maphash.String(r.seed, group)%uint64(len(r.versions))]
}

// key returns two hashes of a search, because one may be another search's.
func (r *Recall[V]) key(group, query string, generation int64) (key [2]uint64) {
	var h maphash.Hash
	h.SetSeed(r.seed)
	maphash.WriteComparable(&h, generation)
	_, _ = h.WriteString(group)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(query)
	key[0] = h.Sum64()
	_ = h.WriteByte(1)
	key[1] = h.Sum64()
	return key
}
