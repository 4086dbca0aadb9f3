package inject

import (
	"context"
)

// Decision is what was decided about a turn: the block that stands before its message in
// every request, or none. The first decision about a turn counts. Its block goes when what
// it shows is forgotten, or by Drop.
type Decision struct {
	Block      string // empty: there is none, or not any more
	Facts      int    // how many the block shows, or showed before it was emptied
	Reason     string // why there is no block, where there never was one
	Ingest     bool   // the turn is to be kept
	Generation int64  // of the request that it was made for
	Pieces     Pieces // what was found, shown or not; it goes with the block. Lookup leaves it out
}

// forgotten reports whether there was a block that was emptied, because what it
// showed was to be forgotten.
func (d *Decision) forgotten() bool { return d != nil && d.Block == "" && d.Facts > 0 }

// Decisions keeps what was decided over the life of a conversation, restarts
// included. Implementations must not retain the slices, and nobody changes what
// they return.
type Decisions interface {
	// Lookup returns the decision about each key, nil for a key without one. It answers
	// from RAM what it read under the same generation. With an error it returns what it
	// had in RAM, or nothing.
	Lookup(ctx context.Context, generation int64, keys [][16]byte) ([]*Decision, error)

	// Keep stores a decision and returns the one in force: an earlier one, if there is
	// one. If one of the groups has a newer generation, the decision is stored without
	// its block. It is stored when Keep returns.
	Keep(ctx context.Context, key [16]byte, d Decision, groups ...string) (*Decision, error)

	// Drop stores a decision without a block in place of the one that an unanswered turn
	// has. It is stored when Drop returns.
	Drop(ctx context.Context, key [16]byte, d Decision) error
}
