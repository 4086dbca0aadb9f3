package cache

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// byteLRU is an LRU cache with a limit on the total size of its entries. It is safe for
// concurrent use.
type byteLRU[K comparable, V any] struct {
	limit int

	mu    sync.Mutex // protects the fields below
	lru   *simplelru.LRU[K, weighed[V]]
	bytes int
}

type weighed[V any] struct {
	value V
	bytes int
}

func newByteLRU[K comparable, V any](limit int) *byteLRU[K, V] {
	c := &byteLRU[K, V]{limit: limit}
	c.Clear()
	return c
}

func (c *byteLRU[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.lru.Get(key)
	return e.value, ok
}

// Each calls f with the value of each key, under one lock.
func (c *byteLRU[K, V]) Each(keys []K, f func(i int, value V, ok bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range keys {
		e, ok := c.lru.Get(k)
		f(i, e.value, ok)
	}
}

func (c *byteLRU[K, V]) Add(key K, value V, bytes int) {
	c.AddOver(key, value, bytes, func(V) bool { return true })
}

// AddOver is Add, but it does not replace an entry for which stale returns false.
func (c *byteLRU[K, V]) AddOver(key K, value V, bytes int, stale func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.lru.Peek(key); ok && !stale(e.value) {
		return
	}
	c.lru.Remove(key)
	c.lru.Add(key, weighed[V]{value, bytes})
	for c.bytes += bytes; c.bytes > c.limit; {
		c.lru.RemoveOldest()
	}
}

func (c *byteLRU[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
}

func (c *byteLRU[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A purged one would keep the memory of its map.
	c.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ K, e weighed[V]) { c.bytes -= e.bytes }) // fails only for a size of 0
	c.bytes = 0
}
