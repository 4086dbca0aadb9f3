// Package memo caches results for active conversations, because clients send the entire
// history with each request.
//
// It owns LRU, the kind of bounded map that all packages use if entries differ in size.
package memo

import "hash/maphash"

// Size is the default limit of the cache, in bytes.
const Size = 4 << 20

// overhead is the approximate size of an entry without its value, in bytes.
const overhead = 200

// Owner separates the entries of different callers. It is an unforgeable hash, so that
// no caller reads the entries of another.
type Owner [16]byte

// Key identifies an entry.
type Key struct {
	Owner Owner
	Name  uint64
}

// Memo is an LRU cache. It is safe for concurrent use.
type Memo struct {
	seed maphash.Seed
	all  *LRU[Key, any]
}

// New returns a Memo limited to a number of bytes. 0 disables it.
func New(bytes int) *Memo { return &Memo{maphash.MakeSeed(), NewLRU[Key, any](bytes)} }

// Name returns a session's name for keys of its owner.
func (m *Memo) Name(session string) uint64 { return maphash.String(m.seed, session) }

// Get returns a cached value, which callers must not change, or nil.
func (m *Memo) Get(k Key) any {
	v, _ := m.all.Get(k)
	return v
}

// Update replaces a cached value by the result of change, which receives the current
// value or nil and returns the new one with its size; nil removes it. Update does not cache
// values that are larger than a quarter of its limit.
func (m *Memo) Update(k Key, change func(was any) (is any, bytes int)) {
	m.all.Update(k, func(was any, _ bool) (any, int) {
		is, bytes := change(was)
		if bytes += overhead; is == nil || bytes > m.all.limit/4 {
			return nil, 0
		}
		return is, bytes
	})
}
