package inject

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	sessionsMax = 256     // that are remembered
	turnsMin    = 8       // of a session that is
	turnsMax    = 1 << 10 // of one that are remembered
	someNew     = 8       // one part in so many has to be new for a session to be remembered again
)

// turnKeys remembers the keys of long conversations: clients send all turns with each
// request, and hashing each again takes longer than reading the new ones. A key
// counts for the session and the fingerprint that it was made from, and for no
// other. A Memo is safe for concurrent use.
type turnKeys struct{ sessions *lru.Cache[string, madeKeys] }

// madeKeys are the keys of a session's first turns, and what they were made from. It
// never changes.
type madeKeys struct {
	from []dialect.Fingerprint
	keys [][16]byte
}

// newTurnKeys returns a Memo that remembers nothing yet.
func newTurnKeys() *turnKeys {
	sessions, err := lru.New[string, madeKeys](sessionsMax)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &turnKeys{sessions}
}

// Append appends to dst the keys of the turns that messages with these
// fingerprints open in a session.
func (m *turnKeys) Append(dst [][16]byte, session string, from []dialect.Fingerprint) [][16]byte {
	if len(from) < turnsMin {
		for _, f := range from {
			dst = append(dst, turnKeyOf(session, f))
		}
		return dst
	}
	known, _ := m.sessions.Get(session)
	begin, fresh := len(dst), 0
	for i, f := range from {
		if i < len(known.from) && known.from[i] == f {
			dst = append(dst, known.keys[i])
			continue
		}
		dst = append(dst, turnKeyOf(session, f))
		if i < turnsMax {
			fresh++
		}
	}
	if n := min(len(from), turnsMax); fresh > n/someNew {
		m.sessions.Add(session, madeKeys{slices.Clone(from[:n]), slices.Clone(dst[begin:][:n])})
	}
	return dst
}
