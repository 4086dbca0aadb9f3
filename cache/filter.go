package cache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// filterBits is the size of the filter. With 500,000 keys in the file, it passes one in a
// hundred of the keys without a decision.
const filterBits = 1 << 23

// keyFilter is a Bloom filter of the keys with a decision in the file, and of the lists with
// a record. It saves the query for all others: for each new turn, for each turn of a new
// conversation, and for most lists. Only this process writes to the file, so the filter is
// complete once Read has added all keys. Until then, May returns true for every key. It is
// safe for concurrent use.
type keyFilter struct {
	bits     [filterBits / 64]atomic.Uint64
	complete atomic.Bool // Read has added every key of the file
}

// eachBit calls f for each word and bit of a key, which is itself a strong hash. It returns
// false as soon as f does.
func eachBit(key *[16]byte, f func(word uint32, bit uint64) (more bool)) bool {
	for i := 0; i < len(key); i += 4 {
		at := binary.LittleEndian.Uint32(key[i:]) % filterBits
		if !f(at/64, 1<<(at%64)) {
			return false
		}
	}
	return true
}

// listKey returns the key of a list.
func listKey(kind, list string) [16]byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + list))
	return [16]byte(sum[:16])
}

// Add adds a key. It must be called before the key's record is written to the file.
func (k *keyFilter) Add(key [16]byte) {
	eachBit(&key, func(word uint32, bit uint64) bool { k.bits[word].Or(bit); return true })
}

// May reports whether a key may have a record.
func (k *keyFilter) May(key [16]byte) bool {
	return !k.complete.Load() || eachBit(&key, func(word uint32, bit uint64) bool { return k.bits[word].Load()&bit != 0 })
}

// Read adds the keys of all decisions in the file. If that fails or ctx ends, May continues
// to return true for every key.
func (k *keyFilter) Read(ctx context.Context, db *sqlite.DB) {
	var key []byte
	err := db.Each(ctx, "SELECT key FROM "+decisionKind.name, nil, func(scan func(...any) error) error {
		if err := scan(&key); err != nil {
			return err
		}
		if len(key) != 16 {
			return errDecision
		}
		k.Add([16]byte(key))
		return nil
	})
	if err == nil {
		k.complete.Store(true)
	}
}
