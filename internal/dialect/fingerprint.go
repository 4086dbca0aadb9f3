package dialect

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/text/unicode/norm"
)

// Fingerprint is a hash of a conversation up to some message: its owner, its place, and its
// messages and their authors in order.
type Fingerprint [16]byte

// Root returns the fingerprint of a conversation without messages. A tenant is empty or hex
// digits, and a person's key holds printable characters only, so the separator between them
// is unambiguous.
func Root(tenant, person string) Fingerprint {
	var b [192]byte // large enough for the usual case, to avoid an allocation
	text := append(append(b[:0], "graphiti-proxy.chain.1\x00"...), tenant...)
	sum := sha256.Sum256(append(append(text, 0), person...))
	return Fingerprint(sum[:len(Fingerprint{})])
}

// In returns the fingerprint of a conversation that continues in a workspace. A workspace
// has a name from the client, or a place; with neither, the fingerprint is unchanged.
// Unlike texts, workspaces have a strong hash: an attacker cannot construct a directory
// with the hash of another.
func (f Fingerprint) In(workspace string, p Place) Fingerprint {
	if workspace == "" && p == (Place{}) {
		return f
	}
	unclear := ""
	if p.Unclear {
		unclear = "unclear"
	}
	// The length of each part is hashed before it, so that one part cannot read as two.
	var b [512]byte // large enough for the usual case, to avoid an allocation
	text := b[:0]
	for _, part := range [...]string{"graphiti-proxy.identity.2", "conversation in", string(f[:]), workspace, p.Directory, p.Repo, unclear} {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return Fingerprint(sum[:len(f)])
}

// Link returns the fingerprint after one more message. It ignores white space around the
// text.
func (f Fingerprint) Link(role Role, text []byte) Fingerprint {
	return f.link(role, textHash(trim(text)))
}

// textHash returns the hash of a text. Clients send a text back with other line ends, or with
// its letters composed.
func textHash(text []byte) uint64 {
	if bytes.IndexByte(text, '\r') >= 0 {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	return xxhash.Sum64(norm.NFC.Bytes(text))
}

// Reference returns the fingerprint of a reference to an item that the provider holds.
func (f Fingerprint) Reference(id string) Fingerprint {
	b, _ := json.Marshal(id) // the form of an id in a body
	return f.Link(RoleOther, b)
}

// OfAnswer returns the fingerprint of an answer to a person, in any place: a summary of a
// conversation does not state its place.
func (f Fingerprint) OfAnswer(text []byte) Fingerprint {
	return f.Link(RoleOther, []byte("told")).Link(RoleAssistant, text)
}

// link chains the fast hash of a text with a strong hash. A client that finds two texts
// with the same fast hash confuses only its own conversation.
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

// Chain appends to dst the fingerprint after each message. Only messages of a person or the
// model change it, and the moves to another place that Place has found.
func (c *Conversation) Chain(root Fingerprint, dst []Fingerprint) []Fingerprint {
	moves := c.moves
	for i := range c.Messages {
		m := &c.Messages[i]
		if len(moves) > 0 && moves[0].message == i {
			root, moves = root.In("", moves[0].to), moves[1:]
		}
		if m.Person || m.Role == RoleAssistant && m.from < m.to && !c.blank(m) {
			root = root.link(m.Role, c.textHash(i))
		}
		dst = append(dst, root)
	}
	return dst
}

// textHash returns the hash of the text of message i.
func (c *Conversation) textHash(i int) uint64 {
	m := &c.Messages[i]
	if m.cleaned || m.to-m.from != 1 {
		return textHash(c.Text(i))
	}
	raw := trimRaw(c.body[c.spans[m.from].Start:c.spans[m.from].End])
	if c.spans[m.from].Escaped {
		c.scratch = appendText(c.scratch[:0], raw)
		raw = c.scratch
	}
	return textHash(raw)
}
