package inject

import (
	"encoding/binary"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
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

func BenchmarkKeysOfAHundredTurns(b *testing.B) {
	from := chain(1, 100)
	for b.Loop() {
		for _, f := range from {
			turnKeyOf("session:1", f)
		}
	}
}
