package cache

import "sync"

// recent holds what was used lately, in bounded memory: two generations, the
// older of which is dropped when the newer is full. It is safe for concurrent
// use.
type recent[K comparable, V any] struct {
	limit int // cost of one generation

	mu       sync.Mutex // guards what follows
	new, old map[K]V
	cost     int
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{limit: limit, new: make(map[K]V)}
}

func (r *recent[K, V]) get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.new[k]; ok {
		return v, true
	}
	v, ok := r.old[k]
	return v, ok
}

func (r *recent[K, V]) put(k K, v V, cost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putLocked(k, v, cost)
}

func (r *recent[K, V]) putLocked(k K, v V, cost int) {
	if r.cost += cost; r.cost > r.limit {
		r.old, r.new, r.cost = r.new, make(map[K]V), cost
	}
	r.new[k] = v
}

// putNew is put for a key that nothing is known of: what came in meanwhile
// stays.
func (r *recent[K, V]) putNew(k K, v V, cost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, new := r.new[k]
	if _, old := r.old[k]; !new && !old {
		r.putLocked(k, v, cost)
	}
}

func (r *recent[K, V]) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.new, r.old, r.cost = make(map[K]V), nil, 0
}

func (r *recent[K, V]) drop(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.new, k)
	delete(r.old, k)
}
