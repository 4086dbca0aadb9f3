// Package memo remembers what is known of the conversations of the moment, so that
// it need not be found out again with each request: clients send the whole history
// each time.
//
// It owns what belongs to whom, how many bytes all of it takes, which checkpoint
// belongs to which beginning of a body, and the room for reading long bodies. It must
// not know who speaks, nor what the values mean. It may import dialect.
package memo

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/otel/metric"
)

// Kind is what is remembered.
type Kind uint8

// What is remembered.
const (
	bodies   Kind = iota // how long bodies began
	prompts              // what system prompts state of a place
	Sessions             // where a session takes place, what its requests have in common, and how many began with the same words
	Turns                // what deciding about a session's turns needs
	kinds
)

// Size bounds what is remembered, in bytes.
const Size = allShares << 20

// shares are what each kind may take, in MiB, whoever wants more for another. What a
// kind leaves others use meanwhile.
var shares = [kinds]int{bodies: 32, prompts: 2, Sessions: 16, Turns: 22}

const allShares = 32 + 2 + 16 + 22

// overhead is about what an entry takes beside its value, in bytes.
const overhead = 200

// Owner is whose a memory is. It is a hash that nobody can make up: nobody reads
// what is another's.
type Owner [16]byte

// Key is what something is remembered by.
type Key struct {
	Kind  Kind
	Owner Owner
	Name  uint64
}

type entry struct {
	value any
	bytes int
}

// Memo remembers for as long as there is room: of the kind that takes most beyond its
// share what was not asked for the longest goes first. So who has much remembered of
// one kind takes nothing from another that is within its share. It is safe for
// concurrent use.
type Memo struct {
	seeds [2]maphash.Seed
	max   int // bytes
	piece int // bytes

	hits, misses atomic.Int64

	mu      sync.Mutex // guards what follows
	entries [kinds]*simplelru.LRU[Key, entry]
	bytes   [kinds]int
	total   int
}

// New returns a Memo of at most so many bytes. It remembers nothing with none.
func New(bytes int) *Memo {
	m := &Memo{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, max: bytes, piece: usualPiece}
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

// Observe makes metrics of hits, misses and bytes.
func (m *Memo) Observe(meter metric.Meter) error {
	hits, err1 := meter.Int64ObservableCounter("graphiti_proxy_memo_hits", metric.WithDescription("Requests that were read from where the one before them in the conversation ended."))
	misses, err2 := meter.Int64ObservableCounter("graphiti_proxy_memo_misses", metric.WithDescription("Requests of 8 KiB or more that were read from their beginning."))
	bytes, err3 := meter.Int64ObservableGauge("graphiti_proxy_memo_bytes", metric.WithUnit("By"), metric.WithDescription("RAM that is taken by what is known of running conversations, of 72 MiB at most."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(hits, m.hits.Load())
		o.ObserveInt64(misses, m.misses.Load())
		o.ObserveInt64(bytes, int64(m.Bytes()))
		return nil
	}, hits, misses, bytes)
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// Name is the name of a session below its owner.
func (m *Memo) Name(session string) uint64 { return maphash.String(m.seeds[0], session) }

// Get returns what is remembered; nil: nothing is. Nobody changes it.
func (m *Memo) Get(k Key) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, _ := m.entries[k.Kind].Get(k)
	return e.value
}

// Update remembers what change makes of what was remembered, which is nil where
// nothing was, and how many bytes that takes. It is not remembered where it takes so
// much that it would leave little room for others.
func (m *Memo) Update(k Key, change func(was any) (is any, bytes int)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, _ := m.entries[k.Kind].Get(k)
	is, bytes := change(was.value)
	m.put(k, is, bytes)
}

// put requires that mu is held.
func (m *Memo) put(k Key, value any, bytes int) {
	all := m.entries[k.Kind]
	all.Remove(k)
	if bytes += overhead; bytes > m.share(k.Kind)/4 {
		return
	}
	all.Add(k, entry{value, bytes})
	m.bytes[k.Kind] += bytes
	for m.total += bytes; m.total > m.max; {
		m.entries[m.largest()].RemoveOldest()
	}
}

// share is what a kind may take, in bytes.
func (m *Memo) share(k Kind) int { return m.max * shares[k] / allShares }

// largest is the kind that takes most beyond its share.
func (m *Memo) largest() (of Kind) {
	for k := range kinds {
		if m.bytes[k]-m.share(k) > m.bytes[of]-m.share(of) {
			of = k
		}
	}
	return of
}

// Bytes is how much RAM is taken.
func (m *Memo) Bytes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}
