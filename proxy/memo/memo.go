// Package memo remembers how conversations began, so that a request is read from
// where the one before it ended: clients send the whole history each time.
//
// It owns which checkpoint belongs to which bytes, how much memory all of them
// take, and the room for reading long bodies. It must not know what is in one, or
// who speaks. It may import dialect.
package memo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/otel/metric"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// usualPiece is what is hashed at once. A body is found by its whole pieces,
	// and one that is not much longer is read faster than it is looked up.
	usualPiece = 4 << 10

	// usualSize bounds what is remembered, in bytes: a few hundred long
	// conversations of agents.
	usualSize = 32 << 20

	// overhead is about what an entry takes beside its checkpoint, in bytes.
	overhead = 200
)

// Memo remembers how bodies began. It is safe for concurrent use.
//
// A hash collision cannot show one caller's conversation to another. Entries lie
// below a key of 128 bits, which is made of the credentials that a request shows.
// Below it the hash has 64 bits and a seed that is this process's and that nobody
// sees, so that no body can be made up that is taken for another one; two of one
// credential are confused by accident once in 2^64. And a checkpoint says nothing
// but what the bytes say: who speaks, what they may see and what was decided is
// found out for each request anew.
type Memo struct {
	seeds [2]maphash.Seed
	max   int // bytes
	piece int // bytes

	hits, misses atomic.Int64

	mu      sync.Mutex // guards what follows
	entries *simplelru.LRU[key, *entry]
	bytes   int
}

// key is that of all whole pieces before a checkpoint.
type key struct {
	owner owner
	hash  uint64
}

// owner is a hash of the credentials that a request shows, and of its dialect.
type owner [2]uint64

type entry struct {
	key  key
	hash uint64 // of all bytes before the checkpoint
	at   *dialect.Checkpoint
}

func (e *entry) size() int { return e.at.Size() + overhead }

// New returns a Memo of at most so many bytes. It remembers nothing with none.
func New(bytes int) *Memo {
	m := &Memo{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, max: bytes, piece: usualPiece}
	entries, err := simplelru.NewLRU(1+bytes/overhead, func(_ key, e *entry) { m.bytes -= e.size() })
	if err != nil {
		panic("BUG: " + err.Error())
	}
	m.entries = entries
	return m
}

// NewObserved returns a Memo of the usual size whose hits, misses and bytes are
// metrics.
func NewObserved(meter metric.Meter) (*Memo, error) {
	m := New(usualSize)
	hits, err1 := meter.Int64ObservableCounter("graphiti_proxy_memo_hits", metric.WithDescription("Requests that were read from where the one before them in the conversation ended."))
	misses, err2 := meter.Int64ObservableCounter("graphiti_proxy_memo_misses", metric.WithDescription("Requests of 8 KiB or more that were read from their beginning."))
	bytes, err3 := meter.Int64ObservableGauge("graphiti_proxy_memo_bytes", metric.WithUnit("By"), metric.WithDescription("Memory that is taken by what is known of how conversations began, of 32 MiB at most."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(hits, m.hits.Load())
		o.ObserveInt64(misses, m.misses.Load())
		o.ObserveInt64(bytes, int64(m.Bytes()))
		return nil
	}, hits, misses, bytes)
	if err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	return m, nil
}

// Reading is one body that is read. It is used again for another. The zero
// Reading is ready.
type Reading struct {
	body   []byte
	owner  owner
	hashes []uint64 // of the body up to the end of each whole piece
	from   *entry   // where the reading began; nil: at the beginning
}

// Worth reports whether bodies of this length are remembered.
func (m *Memo) Worth(length int) bool { return m.max > 0 && length >= 2*m.piece }

// Parse reads a body as d does, from where one that began like it ended. It is
// one that is worth it; credentials are those that the request shows.
func (m *Memo) Parse(d dialect.Dialect, credentials, body []byte, c *dialect.Conversation, r *Reading) bool {
	m.hash(d, credentials, body, r)
	if r.from = m.find(r); r.from == nil {
		m.misses.Add(1)
		c.GoOn(nil)
		return d.Parse(body, c)
	}
	m.hits.Add(1)
	c.GoOn(r.from.at)
	return d.Parse(body, c)
}

// hash hashes a body piece by piece.
func (m *Memo) hash(d dialect.Dialect, credentials, body []byte, r *Reading) {
	name := d.Info().Name
	for i, seed := range m.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		_, _ = h.WriteString(name) // which never fails
		_ = h.WriteByte(0)
		_, _ = h.Write(credentials)
		r.owner[i] = h.Sum64()
	}
	r.body, r.hashes = body, r.hashes[:0]
	hash := r.owner[0]
	for at := 0; at+m.piece <= len(body); at += m.piece {
		hash = m.link(hash, body[at:at+m.piece])
		r.hashes = append(r.hashes, hash)
	}
}

// link is the hash of what has one, and of what follows.
func (m *Memo) link(hash uint64, next []byte) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], hash)
	binary.LittleEndian.PutUint64(b[8:], maphash.Bytes(m.seeds[0], next))
	return maphash.Bytes(m.seeds[1], b[:])
}

// upTo is the hash of the first bytes of a body, and of its whole pieces in them.
func (m *Memo) upTo(r *Reading, end int) (pieces, all uint64) {
	n := end / m.piece
	pieces = r.owner[0]
	if n > 0 {
		pieces = r.hashes[n-1]
	}
	return pieces, m.link(pieces, r.body[n*m.piece:end])
}

// find finds the longest beginning of a body that is known.
func (m *Memo) find(r *Reading) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(r.hashes) - 1; n >= 0; n-- {
		e, ok := m.entries.Get(key{r.owner, r.hashes[n]})
		if !ok || e.at.End() > len(r.body) {
			continue
		}
		if _, all := m.upTo(r, e.at.End()); all == e.hash {
			return e
		}
	}
	return nil
}

// worth is which part, one of so many, of what is known of a conversation has to
// be new for it to be kept: copying takes about as long as reading.
const worth = 8

// Keep remembers what was read, with its fingerprints from a root. The body is
// the one that Parse has understood.
func (m *Memo) Keep(c *dialect.Conversation, root dialect.Fingerprint, chain []dialect.Fingerprint, r *Reading) {
	if len(r.hashes) == 0 {
		return
	}
	if known := r.from; known != nil && len(r.body)-known.at.End() < max(known.at.End()/worth, 2*m.piece) {
		return
	}
	at := c.Checkpoint(root, chain)
	if at == nil || at.End() < m.piece {
		return
	}
	e := &entry{at: at}
	e.key.owner = r.owner
	e.key.hash, e.hash = m.upTo(r, at.End())
	if e.size() > m.max/4 {
		return // it would leave no room for others
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.from != nil {
		m.entries.Remove(r.from.key) // the conversation is known to be longer
	}
	m.entries.Remove(e.key)
	m.entries.Add(e.key, e)
	for m.bytes += e.size(); m.bytes > m.max; {
		m.entries.RemoveOldest()
	}
}

// Reset takes a body out of r.
func (r *Reading) Reset() {
	hashes := r.hashes[:0]
	if cap(hashes) > 1<<10 {
		hashes = nil
	}
	*r = Reading{hashes: hashes}
}

// Bytes is how much memory is taken.
func (m *Memo) Bytes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}
