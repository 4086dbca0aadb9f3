package cache

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// size is in bits. With 500,000 keys in the file, one in a hundred that has no
// decision is looked up all the same.
const size = 1 << 23

// decidedKeys knows of most keys without a decision that they have none, so that a new
// turn, and a long conversation that nobody has seen, need not be looked up in
// the file. It is a Bloom filter of the keys that have one. Nobody but this
// process writes to the file, so that none is missing once all that it holds
// were read; until then nothing is known. It is safe for concurrent use.
type decidedKeys struct {
	bits [size / 64]atomic.Uint64
	all  atomic.Bool // the file's are there
}

// places calls f for each word and bit of a key, which is a strong hash itself.
func places(key *[16]byte, f func(word uint32, bit uint64) (more bool)) bool {
	for i := 0; i < len(key); i += 4 {
		at := binary.LittleEndian.Uint32(key[i:]) % size
		if !f(at/64, 1<<(at%64)) {
			return false
		}
	}
	return true
}

// Add adds a key, before its decision is in the file.
func (k *decidedKeys) Add(key [16]byte) {
	places(&key, func(word uint32, bit uint64) bool { k.bits[word].Or(bit); return true })
}

// May reports whether there may be a decision for a key.
func (k *decidedKeys) May(key [16]byte) bool {
	return !k.all.Load() || places(&key, func(word uint32, bit uint64) bool { return k.bits[word].Load()&bit != 0 })
}

// Read reads the keys of all decisions that the file holds. Where that fails, or
// ctx ends, nothing is known as before.
func (k *decidedKeys) Read(ctx context.Context, db *sqlite.DB) {
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
		k.Add([16]byte(key))
	}
	if rows.Err() == nil {
		k.all.Store(true)
	}
}
