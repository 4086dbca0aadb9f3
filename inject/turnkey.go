package inject

import (
	"crypto/sha256"
	"encoding/hex"

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
