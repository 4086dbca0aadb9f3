package memo

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// usualPiece is what is hashed at once. A body is found by its whole pieces,
	// and one that is not much longer is read faster than it is looked up.
	usualPiece = 4 << 10
)

// known is how a body begins.
//
// A hash collision cannot show one caller's conversation to another. It lies below
// a key of 128 bits, which is made of the credentials that a request shows. Below it
// the hash has 64 bits and a seed that is this process's and that nobody sees, so that
// no body can be made up that is taken for another one; two of one credential are
// confused by accident once in 2^64. And a checkpoint says nothing but what the bytes
// say: who speaks, what they may see and what was decided is found out for each
// request anew.
type known struct {
	key  Key    // of all whole pieces before the checkpoint
	hash uint64 // of all bytes before it
	at   *dialect.Checkpoint
}

// Reading is one body that is read. It is used again for another. The zero
// Reading is ready.
type Reading struct {
	memo   *Memo
	body   []byte
	owner  Owner    // of who shows those credentials
	hashes []uint64 // of the body up to the end of each whole piece
	from   *known   // where the reading began; nil: at the beginning
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
		binary.LittleEndian.PutUint64(r.owner[8*i:], h.Sum64())
	}
	r.memo, r.body, r.hashes = m, body, r.hashes[:0]
	hash := r.first()
	for at := 0; at+m.piece <= len(body); at += m.piece {
		hash = m.link(hash, body[at:at+m.piece])
		r.hashes = append(r.hashes, hash)
	}
}

// first is the hash of no piece.
func (r *Reading) first() uint64 { return binary.LittleEndian.Uint64(r.owner[:]) }

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
	pieces = r.first()
	if n > 0 {
		pieces = r.hashes[n-1]
	}
	return pieces, m.link(pieces, r.body[n*m.piece:end])
}

// find finds the longest beginning of a body that is known.
func (m *Memo) find(r *Reading) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(r.hashes) - 1; n >= 0; n-- {
		e, ok := m.entries[bodies].Get(Key{bodies, r.owner, r.hashes[n]})
		if !ok {
			continue
		}
		at := e.value.(*known) //nolint:forcetypeassert // what Keep keeps
		if at.at.End() > len(r.body) {
			continue
		}
		if _, all := m.upTo(r, at.at.End()); all == at.hash {
			return at
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
	if from := r.from; from != nil && len(r.body)-from.at.End() < max(from.at.End()/worth, 2*m.piece) {
		return
	}
	at := c.Checkpoint(root, chain)
	if at == nil || at.End() < m.piece {
		return
	}
	e := &known{key: Key{Kind: bodies, Owner: r.owner}, at: at}
	e.key.Name, e.hash = m.upTo(r, at.End())
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.from != nil {
		m.entries[bodies].Remove(r.from.key) // the conversation is known to be longer
	}
	m.put(e.key, e, at.Size())
}

// Prompt is what a prompt with this hash states, among those of who sent the body.
func (r *Reading) Prompt(hash uint64) (s dialect.Statements, ok bool) {
	s, ok = r.memo.Get(Key{prompts, r.owner, hash}).(dialect.Statements)
	return s, ok
}

// KeepPrompt remembers what a prompt states.
func (r *Reading) KeepPrompt(hash uint64, s dialect.Statements) {
	r.memo.Update(Key{prompts, r.owner, hash}, func(any) (any, int) { return s, s.Size() })
}

// Reset takes a body out of r.
func (r *Reading) Reset() {
	hashes := r.hashes[:0]
	if cap(hashes) > 1<<10 {
		hashes = nil
	}
	*r = Reading{hashes: hashes}
}
