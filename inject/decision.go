package inject

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Decision is the stored result for a turn: the block before its message in every
// request, or none. The first decision of a turn is final. Only a forget or Drop removes
// its block.
type Decision struct {
	Block      string `json:"block,omitempty"`      // "" if none was inserted, or it was emptied
	Facts      int    `json:"facts,omitempty"`      // number of facts in the block, unchanged when it is emptied
	Reason     string `json:"reason,omitempty"`     // reason for a missing block
	Ingest     bool   `json:"ingest,omitempty"`     // whether to store the turn
	Generation int64  `json:"generation,omitempty"` // generation of the deciding request
	Pieces     Pieces `json:"pieces,omitempty"`     // search results and their verdicts, dropped with the block; Lookup omits them
}

// forgotten reports whether a forget emptied the block.
func (d *Decision) forgotten() bool { return d != nil && d.Block == "" && d.Facts > 0 }

// Decisions stores decisions across restarts. Implementations must not retain the slices,
// and callers must not modify the results.
type Decisions interface {
	// Lookup returns the decision of each key, nil for a key without one. Results of the
	// same generation come from RAM. With an error it returns the decisions in RAM, or nil.
	Lookup(ctx context.Context, generation int64, keys [][16]byte) ([]*Decision, error)

	// Keep stores a decision durably and returns the effective one, which is an earlier
	// decision if one exists. If one of the groups has a newer generation, it stores the
	// decision without its block.
	Keep(ctx context.Context, key [16]byte, d Decision, groups ...string) (*Decision, error)

	// Drop durably replaces the decision of an unanswered turn by one without a block.
	Drop(ctx context.Context, key [16]byte, d Decision) error
}

// TurnKey identifies a turn and its decision.
type TurnKey [16]byte

// turnKeyOf returns the key of a turn, from its session and its message's fingerprint.
func turnKeyOf(session string, f dialect.Fingerprint) TurnKey {
	var b [128]byte // avoids an allocation
	sum := sha256.Sum256(append(append(b[:0], f[:]...), session...))
	return TurnKey(sum[:16])
}

// String returns the key in hex, the form in episode names.
func (k TurnKey) String() string { return hex.EncodeToString(k[:]) }
