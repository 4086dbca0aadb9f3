package cache

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// filterBits is the size of the filter. With 500,000 keys in the file, one in a
// hundred of the keys that have no decision is looked up all the same.
const filterBits = 1 << 23

// keyFilter is a Bloom filter of the keys that have a decision in the file. It
// saves the query for a key that has none: every new turn, and each turn of a
// conversation that is new here. Only this process writes to the file, so the
// filter is complete once Read has added every key of it. Until then each key is
// looked up. It is safe for concurrent use.
type keyFilter struct {
	bits     [filterBits / 64]atomic.Uint64
	complete atomic.Bool // Read has added every key of the file
}

// eachBit calls f for each word and bit of a key, which is a strong hash itself,
// until f returns false. It returns false then.
func eachBit(key *[16]byte, f func(word uint32, bit uint64) (more bool)) bool {
	for i := 0; i < len(key); i += 4 {
		at := binary.LittleEndian.Uint32(key[i:]) % filterBits
		if !f(at/64, 1<<(at%64)) {
			return false
		}
	}
	return true
}

// Add adds a key, before its decision is in the file.
func (k *keyFilter) Add(key [16]byte) {
	eachBit(&key, func(word uint32, bit uint64) bool { k.bits[word].Or(bit); return true })
}

// May reports whether there may be a decision for a key.
func (k *keyFilter) May(key [16]byte) bool {
	return !k.complete.Load() || eachBit(&key, func(word uint32, bit uint64) bool { return k.bits[word].Load()&bit != 0 })
}

// Read adds the keys of all decisions in the file. If that fails, or ctx ends, May
// goes on returning true for every key.
func (k *keyFilter) Read(ctx context.Context, db *sqlite.DB) {
	rows, err := db.Query(ctx, "SELECT key FROM "+decisionKind.name)
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
		k.complete.Store(true)
	}
}
