package inject

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// chain are the fingerprints of so many messages, which differ by seed.
func chain(seed uint64, n int) []dialect.Fingerprint {
	out := make([]dialect.Fingerprint, n)
	for i := range out {
		binary.LittleEndian.PutUint64(out[i][:], seed)
		binary.LittleEndian.PutUint64(out[i][8:], uint64(i)) // #nosec G115 -- a count
	}
	return out
}

// TestKeysAreThoseOfTheirFingerprints, whatever was asked before: a conversation
// that grows, is shortened, has another branch, is another's, or is very long.
func TestKeysAreThoseOfTheirFingerprints(t *testing.T) {
	one, other := chain(1, 3*turnsMax), chain(2, 3*turnsMax)
	branch := slices.Concat(one[:20], other[20:60])
	m := newTurnKeys()
	for round := range 2 {
		for _, tc := range []struct {
			name, session string
			from          []dialect.Fingerprint
		}{
			{"none", "a", nil},
			{"short", "a", one[:turnsMin-1]},
			{"long", "a", one[:40]},
			{"one more", "a", one[:41]},
			{"much more", "a", one[:90]},
			{"shortened", "a", one[:30]},
			{"without its first", "a", one[1:60]},
			{"a branch", "a", branch},
			{"back again", "a", one[:60]},
			{"another session", "b", one[:60]},
			{"other texts", "b", other[:60]},
			{"longer than is remembered", "a", one},
			{"and again", "a", one},
		} {
			t.Run(fmt.Sprint(tc.name, round), func(t *testing.T) {
				before := [][16]byte{{1}, {2}}
				want := slices.Clone(before)
				for _, f := range tc.from {
					want = append(want, turnKeyOf(tc.session, f))
				}
				if got := m.Append(before, tc.session, tc.from); !slices.Equal(got, want) {
					t.Errorf("%x, want %x", got, want)
				}
			})
		}
	}
	if n := m.sessions.Len(); n != 2 {
		t.Errorf("%d sessions are remembered", n)
	}
	for i := range 2 * sessionsMax {
		m.Append(nil, fmt.Sprint(i), one[:turnsMin])
	}
	if n := m.sessions.Len(); n != sessionsMax {
		t.Errorf("%d sessions are remembered, of %d at most", n, sessionsMax)
	}
	if known, _ := m.sessions.Get("a"); len(known.keys) > turnsMax {
		t.Errorf("%d keys of one", len(known.keys))
	}
}

func BenchmarkKeysOfAHundredTurns(b *testing.B) {
	from, m, keys := chain(1, 100), newTurnKeys(), [][16]byte(nil)
	for b.Loop() {
		keys = m.Append(keys[:0], "session:1", from)
	}
}

func BenchmarkKeysOfAHundredTurnsOfAnUnknownSession(b *testing.B) {
	from := chain(1, 100)
	for b.Loop() {
		for _, f := range from {
			turnKeyOf("session:1", f)
		}
	}
}
