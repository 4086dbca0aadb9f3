package inject

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TurnKey names a turn, and with it the decision about its block.
type TurnKey [16]byte

// turnKeyOf is the key of the turn that the message with this fingerprint opens in a
// session.
func turnKeyOf(session string, f dialect.Fingerprint) TurnKey {
	var b [128]byte // so that usual ones allocate nothing
	sum := sha256.Sum256(append(append(b[:0], f[:]...), session...))
	return TurnKey(sum[:16])
}

// String returns the key as it stands in the names of episodes.
func (k TurnKey) String() string { return hex.EncodeToString(k[:]) }

const (
	turnsMin = 8       // of a session whose keys are remembered
	turnsMax = 1 << 10 // of one that are remembered
	someNew  = 8       // one part in so many has to be new for a session's to be remembered again
)

// turnKeys are the keys of a session's first turns, and what they were made from.
// Clients send all turns with each request, and hashing each again takes longer than
// reading the new ones. A key counts for the fingerprint that it was made from, and
// for no other. They never change.
type turnKeys struct {
	from []dialect.Fingerprint
	keys [][16]byte
}

func (k *turnKeys) size() int { return 2 * len(TurnKey{}) * len(k.keys) }

// append appends to dst the keys of the turns that messages with these fingerprints
// open in their session. more is what is worth remembering instead of k; nil: k is.
func (k *turnKeys) append(dst [][16]byte, session string, from []dialect.Fingerprint) (keys [][16]byte, more *turnKeys) {
	begin, fresh := len(dst), 0
	for i, f := range from {
		if i < len(k.from) && k.from[i] == f {
			dst = append(dst, k.keys[i])
			continue
		}
		dst = append(dst, turnKeyOf(session, f))
		if i < turnsMax {
			fresh++
		}
	}
	if n := min(len(from), turnsMax); n >= turnsMin && fresh > n/someNew {
		more = &turnKeys{slices.Clone(from[:n]), slices.Clone(dst[begin:][:n])}
	}
	return dst, more
}
