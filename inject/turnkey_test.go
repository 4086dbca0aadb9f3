package inject

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// chain returns n fingerprints that depend on seed.
func chain(seed uint64, n int) []dialect.Fingerprint {
	out := make([]dialect.Fingerprint, n)
	for i := range out {
		binary.LittleEndian.PutUint64(out[i][:], seed)
		binary.LittleEndian.PutUint64(out[i][8:], uint64(i)) // #nosec G115 -- a count
	}
	return out
}

// TestKeysAreThoseOfTheirFingerprints checks that remembered keys equal computed ones in a
// conversation that grows, becomes shorter, branches, belongs to another session, or has
// more turns than are remembered.
func TestKeysAreThoseOfTheirFingerprints(t *testing.T) {
	one, other := chain(1, 3*turnsMax), chain(2, 3*turnsMax)
	branch := slices.Concat(one[:20], other[20:60])
	m := memory(t, always(), &fakeDecisions{})
	const most = 1 << 20
	m.opts().Memo = memo.New(most)
	keysOf := func(session string, from []dialect.Fingerprint) [][16]byte {
		tn := &turn{lists: &lists{from: from}}
		m.nameTurns(tn, graphiti.Who{Session: session})
		return tn.keys
	}
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
				var want [][16]byte
				for _, f := range tc.from {
					want = append(want, turnKeyOf(tc.session, f))
				}
				if got := keysOf(tc.session, tc.from); !slices.Equal(got, want) {
					t.Errorf("%x, want %x", got, want)
				}
			})
		}
	}
	if known := m.session(snapshotID(graphiti.Who{Session: "a"})).keys; len(known.keys) != turnsMax {
		t.Errorf("%d keys of one are remembered, of %d at most", len(known.keys), turnsMax)
	}
	for i := range 10_000 {
		if keysOf(fmt.Sprint(i), one[:turnsMin]); m.opts().Memo.Bytes() > most {
			t.Fatalf("%d bytes are taken", m.opts().Memo.Bytes())
		}
	}
	if known := m.session(snapshotID(graphiti.Who{Session: "9999"})).keys; len(known.keys) != turnsMin {
		t.Errorf("%d keys of the newest session are remembered", len(known.keys))
	}
}

func BenchmarkKeysOfAHundredTurns(b *testing.B) {
	from, keys := chain(1, 100), [][16]byte(nil)
	_, known := new(turnKeys).append(nil, "session:1", from)
	for b.Loop() {
		keys, _ = known.append(keys[:0], "session:1", from)
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
