package inject

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

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

const (
	turnsMin = 8       // sessions with fewer turns are not cached
	turnsMax = 1 << 10 // cached keys per session
	someNew  = 8       // updates the cache if more than 1/someNew of the keys are new
)

// turnKeys caches the keys of a session's first turns with their fingerprints. Clients send
// all turns with each request, and hashing them takes longer than parsing the new ones. A
// key is valid only for its fingerprint. turnKeys is immutable.
type turnKeys struct {
	from []dialect.Fingerprint
	keys [][16]byte
}

func (k *turnKeys) size() int { return 2 * len(TurnKey{}) * len(k.keys) }

// append appends the keys of the turns with these fingerprints to dst. more replaces k in
// the cache, unless it is nil.
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
