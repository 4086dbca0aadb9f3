package memo

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// LRU is a cache with a limit on the total size of its entries. It is safe for concurrent
// use.
type LRU[K comparable, V any] struct {
	limit int

	mu   sync.Mutex // protects the fields below
	lru  *simplelru.LRU[K, weighed[V]]
	size int
}

type weighed[V any] struct {
	value V
	size  int
}

// NewLRU returns an empty cache.
func NewLRU[K comparable, V any](limit int) *LRU[K, V] {
	c := &LRU[K, V]{limit: limit}
	c.Clear()
	return c
}

// Get returns a value, and whether there is one.
func (c *LRU[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.lru.Get(key)
	return e.value, ok
}

// Each calls f with the value of each key, under one lock.
func (c *LRU[K, V]) Each(keys []K, f func(i int, value V, ok bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range keys {
		e, ok := c.lru.Get(k)
		f(i, e.value, ok)
	}
}

// Update replaces an entry by the result of change, under the lock. A size of 0 removes the
// entry, and a negative one leaves it unchanged.
func (c *LRU[K, V]) Update(key K, change func(was V, has bool) (is V, size int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, has := c.lru.Get(key)
	is, size := change(e.value, has)
	if size < 0 {
		return
	}
	c.lru.Remove(key)
	if size > 0 {
		c.lru.Add(key, weighed[V]{is, size})
	}
	for c.size += size; c.size > c.limit; {
		c.lru.RemoveOldest()
	}
}

// Add stores a value.
func (c *LRU[K, V]) Add(key K, value V, size int) {
	c.Update(key, func(V, bool) (V, int) { return value, size })
}

// AddOver is Add, but it does not replace an entry for which stale returns false.
func (c *LRU[K, V]) AddOver(key K, value V, size int, stale func(V) bool) {
	c.Update(key, func(was V, has bool) (V, int) {
		if has && !stale(was) {
			return was, -1
		}
		return value, size
	})
}

// Remove removes an entry.
func (c *LRU[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
}

// Clear removes all entries.
func (c *LRU[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A purged one would keep the memory of its map.
	c.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ K, e weighed[V]) { c.size -= e.size }) // fails only for a size of 0
	c.size = 0
}

// Held returns the number of entries, and their total size.
func (c *LRU[K, V]) Held() (entries, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Len(), c.size
}
