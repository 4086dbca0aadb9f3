package memo

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// usualPiece is the size of a hashed piece. Only whole pieces are looked up:
	// parsing a shorter rest is faster than a lookup.
	usualPiece = 4 << 10
)

// known is a checkpoint at the end of a body's known beginning.
//
// A hash collision cannot show one caller's conversation to another. Entries are kept
// per owner, a 128-bit hash of the request's credentials. Below it, the 64-bit hash has
// a random seed per process, which prevents forged collisions; an accidental collision
// of two bodies of one credential has a chance of 2^-64. A checkpoint contains only
// facts about the bytes: the caller, the permissions and the decisions are determined
// anew for each request.
type known struct {
	key  Key    // hash of all whole pieces before the checkpoint
	hash uint64 // hash of all bytes before the checkpoint
	at   *dialect.Checkpoint
}

// Reading is the state of reading one body. It is reusable, and the zero value is
// ready.
type Reading struct {
	memo   *Memo
	body   []byte
	owner  Owner    // derived from the request's credentials
	hashes []uint64 // hash of the body up to the end of each whole piece
	from   *known   // checkpoint where the reading began; nil for the body's start
}

// Worth reports whether bodies of this length are stored.
func (m *Memo) Worth(length int) bool { return m.max > 0 && length >= 2*m.piece }

// Parse parses a body with d, resuming after its longest known beginning. The body's
// length is Worth it; credentials are the request's.
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

// first returns the hash of zero pieces.
func (r *Reading) first() uint64 { return binary.LittleEndian.Uint64(r.owner[:]) }

// link returns the hash of a beginning extended by the next bytes.
func (m *Memo) link(hash uint64, next []byte) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], hash)
	binary.LittleEndian.PutUint64(b[8:], maphash.Bytes(m.seeds[0], next))
	return maphash.Bytes(m.seeds[1], b[:])
}

// upTo returns the hashes of the first end bytes of a body: of their whole pieces, and of all.
func (m *Memo) upTo(r *Reading, end int) (pieces, all uint64) {
	n := end / m.piece
	pieces = r.first()
	if n > 0 {
		pieces = r.hashes[n-1]
	}
	return pieces, m.link(pieces, r.body[n*m.piece:end])
}

// find returns the longest known beginning of a body.
func (m *Memo) find(r *Reading) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(r.hashes) - 1; n >= 0; n-- {
		e, ok := m.entries[bodies].Get(Key{bodies, r.owner, r.hashes[n]})
		if !ok {
			continue
		}
		at := e.value.(*known) //nolint:forcetypeassert // stored by Keep
		if at.at.End() > len(r.body) {
			continue
		}
		if _, all := m.upTo(r, at.at.End()); all == at.hash {
			return at
		}
	}
	return nil
}

// worth is the divisor of the share of a conversation that must be new before Keep
// stores it, because copying takes about as long as parsing.
const worth = 8

// Keep stores the parsed conversation with its fingerprints from a root. Parse has
// parsed its body.
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
		m.entries[bodies].Remove(r.from.key) // the longer conversation replaces it
	}
	m.put(e.key, e, at.Size())
}

// Prompt returns the stored statements of a prompt with this hash, for the body's owner.
func (r *Reading) Prompt(hash uint64) (s dialect.Statements, ok bool) {
	s, ok = r.memo.Get(Key{prompts, r.owner, hash}).(dialect.Statements)
	return s, ok
}

// KeepPrompt stores the statements of a prompt.
func (r *Reading) KeepPrompt(hash uint64, s dialect.Statements) {
	r.memo.Update(Key{prompts, r.owner, hash}, func(any) (any, int) { return s, s.Size() })
}

// Reset removes the body from r.
func (r *Reading) Reset() {
	hashes := r.hashes[:0]
	if cap(hashes) > 1<<10 {
		hashes = nil
	}
	*r = Reading{hashes: hashes}
}
