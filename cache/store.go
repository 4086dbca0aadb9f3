package cache

import (
	"context"
	"time"
)

// store is where state outlives the process. Implementations are safe for
// concurrent use; what ends in Later does not wait, and is done in its order.
type store interface {
	// shared reports whether other processes write to it: that something was
	// not there is then not worth remembering.
	shared() bool

	readBlocks(ctx context.Context, keys [][16]byte, found func(i int, b block)) error

	// keepBlock stores a block for a key that has none, and returns the one
	// that the key has then. One that shows what was forgotten since is stored
	// without it.
	keepBlock(ctx context.Context, key [16]byte, b block, groups []string) (block, error)
	emptyBlock(key [16]byte) error
	forgetBlocks(group string) (int, error)
	countEmptied(ctx context.Context) (int, error)

	readLinks(ctx context.Context, fingerprints [][16]byte, found func(i int, session string)) error
	putLink(ctx context.Context, fingerprint [16]byte, session string) error
	putLinkLater(fingerprint [16]byte, session string)

	readPending(ctx context.Context, fingerprints [][16]byte, found func(i int, session string)) error
	setPending(ctx context.Context, fingerprint [16]byte, session string, until time.Time)
	endPendingLater(fingerprint [16]byte)

	readSnapshot(ctx context.Context, session string) ([]byte, error)
	eachSnapshot(ctx context.Context, marks []string, f func(body []byte) error) error
	saveSnapshotLater(session string, body []byte, since time.Time, marks []string)
	forgetSnapshots(mark string) error

	// readAccepted is the Unix day on which a tenant was accepted last; 0: never.
	readAccepted(ctx context.Context, tenant string) (day int64, err error)
	acceptLater(tenant string, day int64)
	readTombstones(ctx context.Context) ([]Tombstone, error)
	setTombstone(ctx context.Context, s Tombstone) error
	clearTombstone(ctx context.Context, s Tombstone) error

	close() error
}
