// Package turnkey owns what turns are called: the key of a turn, and the keys of
// long conversations, which are remembered.
//
// It must not know what is decided about a turn. It may import dialect.
package turnkey

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

// Key names a turn, and with it the decision about its block.
type Key [16]byte

// Of is the key of the turn that the message with this fingerprint opens in a
// session.
func Of(session string, f dialect.Fingerprint) Key {
	var b [128]byte // so that usual ones need no memory
	sum := sha256.Sum256(append(append(b[:0], f[:]...), session...))
	return Key(sum[:16])
}

// String is the key as it stands in the names of episodes.
func (k Key) String() string { return hex.EncodeToString(k[:]) }
