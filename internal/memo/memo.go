// Package memo caches results for active conversations, because clients send the entire
// history with each request.
//
// It owns the cache's keys and the bytes per owner and kind. It must not know callers or the
// meaning of the values.
package memo

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/otel/metric"
)

// Space is a kind of cached values.
type Space uint8

// The kinds of cached values.
const (
	Sessions Space = iota // a session's place, common properties of its requests, and the number of sessions with the same first words
	Turns                 // state for deciding about a session's turns
	kinds
)

// Size is the default limit of the cache, in bytes.
const Size = allShares << 20

// shares are the guaranteed sizes per kind, in MiB. Other kinds may use the unused part
// of a share.
var shares = [kinds]int{Sessions: 4, Turns: 4}

const allShares = 4 + 4

// overhead is the approximate size of an entry without its value, in bytes.
const overhead = 200

// Owner separates the entries of different callers. It is an unforgeable hash, so that
// no caller reads the entries of another.
type Owner [16]byte

// Key identifies an entry.
type Key struct {
	Kind  Space
	Owner Owner
	Name  uint64
}

type entry struct {
	value any
	bytes int
}

// Memo is an LRU cache with shares. When it is full, it evicts the oldest entry of the
// kind that exceeds its share most, so that a busy kind never evicts from a kind within
// its share. It is safe for concurrent use.
type Memo struct {
	seed maphash.Seed
	max  int // bytes

	mu      sync.Mutex // protects the fields below
	entries [kinds]*simplelru.LRU[Key, entry]
	bytes   [kinds]int
	total   int
}

// New returns a Memo limited to a number of bytes. 0 disables it.
func New(bytes int) *Memo {
	m := &Memo{seed: maphash.MakeSeed(), max: bytes}
	for k := range m.entries {
		entries, err := simplelru.NewLRU(1+bytes/overhead, func(_ Key, e entry) {
			m.bytes[k] -= e.bytes
			m.total -= e.bytes
		})
		if err != nil {
			panic("BUG: " + err.Error())
		}
		m.entries[k] = entries
	}
	return m
}

// Observe registers the metric of the cache's size.
func (m *Memo) Observe(meter metric.Meter) error {
	_, err := meter.Int64ObservableGauge("graphiti_proxy_memo_bytes", metric.WithUnit("By"), metric.WithDescription("RAM of the cache of running conversations, at most 8 MiB."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(m.Bytes()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// Name returns a session's name for keys of its owner.
func (m *Memo) Name(session string) uint64 { return maphash.String(m.seed, session) }

// Get returns a cached value, which callers must not change, or nil.
func (m *Memo) Get(k Key) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, _ := m.entries[k.Kind].Get(k)
	return e.value
}

// Update replaces a cached value by the result of change, which receives the current
// value or nil and returns the new one with its size. Update does not cache values that
// are too large for their kind.
func (m *Memo) Update(k Key, change func(was any) (is any, bytes int)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, _ := m.entries[k.Kind].Get(k)
	is, bytes := change(was.value)
	m.put(k, is, bytes)
}

// put stores a value; nil removes it. The caller holds mu.
func (m *Memo) put(k Key, value any, bytes int) {
	all := m.entries[k.Kind]
	all.Remove(k)
	if bytes += overhead; value == nil || bytes > m.share(k.Kind)/4 {
		return
	}
	all.Add(k, entry{value, bytes})
	m.bytes[k.Kind] += bytes
	for m.total += bytes; m.total > m.max; {
		m.entries[m.largest()].RemoveOldest()
	}
}

// share returns a kind's share, in bytes.
func (m *Memo) share(k Space) int { return m.max * shares[k] / allShares }

// largest returns the kind that exceeds its share most.
func (m *Memo) largest() (of Space) {
	for k := range kinds {
		if m.bytes[k]-m.share(k) > m.bytes[of]-m.share(of) {
			of = k
		}
	}
	return of
}

// Bytes returns the size of all entries.
func (m *Memo) Bytes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}
