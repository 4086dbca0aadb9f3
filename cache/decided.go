package cache

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// decidedBits are as many that of 500,000 keys one in a hundred that has no
// decision is looked up all the same.
const decidedBits = 1 << 23

// decided knows of most keys without a decision that they have none in the file,
// which a new turn, and a long conversation that nobody has seen, would be looked
// up in for nothing. It is a Bloom filter of the keys that have one. Nobody else
// writes to the file, so that none is missing from the moment on when all that
// it holds were read; until then nothing is known. It is safe for concurrent use.
type decided struct {
	bits [decidedBits / 64]atomic.Uint64
	all  atomic.Bool // the file's are there
}

// places calls f for each word and bit of a key, which is a strong hash itself.
func places(key *[16]byte, f func(word uint32, bit uint64) (more bool)) bool {
	for i := 0; i < len(key); i += 4 {
		at := binary.LittleEndian.Uint32(key[i:]) % decidedBits
		if !f(at/64, 1<<(at%64)) {
			return false
		}
	}
	return true
}

// add is called before the decision is in the file.
func (d *decided) add(key [16]byte) {
	places(&key, func(word uint32, bit uint64) bool { d.bits[word].Or(bit); return true })
}

// may reports whether there may be a decision for a key.
func (d *decided) may(key [16]byte) bool {
	return !d.all.Load() || places(&key, func(word uint32, bit uint64) bool { return d.bits[word].Load()&bit != 0 })
}

// read reads all that the file holds. What fails, or ctx ends, leaves it as it was.
func (d *decided) read(ctx context.Context, db *sqlite.DB) {
	rows, err := db.Query(ctx, "SELECT key FROM decisions")
	if err != nil {
		return
	}
	defer rows.Close()
	var key []byte
	for rows.Next() {
		if rows.Scan(&key) != nil || len(key) != 16 {
			return
		}
		d.add([16]byte(key))
	}
	if rows.Err() == nil {
		d.all.Store(true)
	}
}
