package inject

import (
	"context"
)

// Decision is what was decided about a turn: the block that stands before its
// message in every request, or none. The first one stands; its block is emptied
// when what it shows is forgotten, and nothing else of it changes.
type Decision struct {
	Block      string // empty: there is none, or not any more
	Facts      int    // that the block shows, or has shown
	Reason     string // why there is no block, where there never was one
	Ingest     bool   // the turn is to be kept
	Generation int64  // of the request for which it was made
}

// forgotten reports whether there was a block that was emptied, because what it
// showed was to be forgotten.
func (d *Decision) forgotten() bool { return d != nil && d.Block == "" && d.Facts > 0 }

// Decisions keeps what was decided over the life of a conversation, restarts
// included. Implementations must not retain the slices, and nobody changes what
// they return.
type Decisions interface {
	// Lookup returns what was decided about each key, nil where nothing was. It
	// answers from memory where it can, with what was read under the same
	// generation. With an error it returns what was in memory, or nothing.
	Lookup(ctx context.Context, generation int64, keys [][16]byte) ([]*Decision, error)

	// Keep stores a decision and returns the one in force, which is an earlier
	// one where there was one. It shows nothing where one of the groups has a
	// newer generation. It is stored when Keep returns.
	Keep(ctx context.Context, key [16]byte, d Decision, groups ...string) (*Decision, error)
}
