package inject

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"
)

// Fingerprint stands for a conversation up to some message: who it belongs to
// and what was said, by whom, in which order.
type Fingerprint [16]byte

// Root is the fingerprint of a conversation in which nothing was said yet.
func Root(tenant, person string) Fingerprint {
	h := sha256.New()
	h.Write([]byte("graphiti-proxy.chain.1\x00" + tenant + "\x00" + person))
	var f Fingerprint
	copy(f[:], h.Sum(nil))
	return f
}

// Link is the fingerprint after one more message. Texts are compared without
// the white space around them.
func (f Fingerprint) Link(role Role, text []byte) Fingerprint {
	return f.link(role, xxhash.Sum64(trim(text)))
}

// link chains with a strong hash what a fast one made of the text: whoever
// finds two texts with one hash confuses nothing but a conversation of theirs.
func (f Fingerprint) link(role Role, text uint64) Fingerprint {
	var b [25]byte
	copy(b[:], f[:])
	b[16] = byte(role)
	for i := range 8 {
		b[17+i] = byte(text >> (8 * i))
	}
	sum := sha256.Sum256(b[:])
	copy(f[:], sum[:])
	return f
}

// Chain appends to dst the fingerprint after each message. Messages that
// neither a person nor the model spoke change nothing.
func (c *Conversation) Chain(root Fingerprint, dst []Fingerprint) []Fingerprint {
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Person || m.Role == RoleAssistant && m.from < m.to && !c.blank(m) {
			root = root.link(m.Role, c.textHash(i))
		}
		dst = append(dst, root)
	}
	return dst
}

// textHash hashes what Text returns.
func (c *Conversation) textHash(i int) uint64 {
	m := &c.Messages[i]
	if m.cleaned {
		return xxhash.Sum64(m.clean)
	}
	spans := c.spans[m.from:m.to]
	if len(spans) != 1 {
		return xxhash.Sum64(c.Text(i))
	}
	raw := trimRaw(c.body[spans[0].start:spans[0].end])
	if !spans[0].escaped {
		return xxhash.Sum64(raw)
	}
	c.scratch = appendText(c.scratch[:0], raw)
	return xxhash.Sum64(c.scratch)
}

// Key names a turn, and with it the decision about its block.
type Key [16]byte

// TurnKey is the key of the turn that the message with this fingerprint opens
// in a session.
func TurnKey(session string, f Fingerprint) Key {
	sum := sha256.Sum256(append(f[:], session...))
	return Key(sum[:16])
}

// String is the key as it stands in the names of episodes.
func (k Key) String() string { return hex.EncodeToString(k[:]) }
