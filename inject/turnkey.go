package inject

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TurnKey identifies a turn and its decision.
type TurnKey [16]byte

// turnKeyOf returns the key of a turn, from its session and its message's fingerprint.
func turnKeyOf(session string, f dialect.Fingerprint) TurnKey {
	var b [128]byte // avoids an allocation
	sum := sha256.Sum256(append(append(b[:0], f[:]...), session...))
	return TurnKey(sum[:16])
}

// String returns the key in hex, the form in episode names.
func (k TurnKey) String() string { return hex.EncodeToString(k[:]) }
