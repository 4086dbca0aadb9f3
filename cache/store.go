package cache

import (
	"math"
	"strings"
	"time"
)

// kind describes the records of one view.
type kind struct {
	name string
	life time.Duration // lifetime after the last write, or 0 for the ttl of the state
	most int           // most records in a list, which holds the newest, or 0 for no limit
	long bool          // values may be as long as a message; others are a line

	// rest returns the remainder of a value after one of its scopes is forgotten, and
	// whether to count the record. A nil rest removes and counts all records.
	rest func(value []byte) (rest []byte, counted bool)
}

// neverExpires is the lifetime of records that never expire.
const neverExpires = math.MaxInt64

// floorsFor is the minimum retention of a scope's generation: no pending write is older.
const floorsFor = 90 * 24 * time.Hour

// The kinds of records.
var (
	decisionKind   = &kind{name: "block", long: true, rest: emptied}
	linkKind       = &kind{name: "link"}                                        // session by fingerprint of a conversation's beginning
	pendingKind    = &kind{name: "pending", life: pendingFor}                   // session of a conversation without an answer
	snapshotKind   = &kind{name: "snapshot", long: true}                        // a session's short-term memory
	standingKind   = &kind{name: "standing", life: standingFor, most: 400}      // card entry
	endedKind      = &kind{name: "ended", life: neverExpires, most: 10_000}     // message ended by its person; one list per group
	tenantKind     = &kind{name: "accepted", life: neverExpires, most: 100_000} // tenant with accepted credentials
	proofKind      = &kind{name: "proof", life: neverExpires}                   // memory that a key or identity belongs to
	generationKind = &kind{name: "generation", life: neverExpires}              // number of forgets, in one record
	floorKind      = &kind{name: "floor"}                                       // generation of a forgotten scope
	figuresKind    = &kind{name: "figures", life: figuresFor}                   // one process's statistics of an owner and day; one list per day
	forgetKind     = &kind{name: "forget", life: neverExpires}                  // forget in progress
	trialKind      = &kind{name: "trial", life: trialsFor}                      // conversation in proof mode
)

var kinds = []*kind{decisionKind, linkKind, pendingKind, snapshotKind, standingKind, endedKind, tenantKind, proofKind, generationKind, floorKind, figuresKind, forgetKind, trialKind}

// record is a write to a store.
type record struct {
	kind  *kind
	list  string // name of its list, for kinds with several lists
	key   []byte
	value []byte // nil removes the record

	// scopes are the scopes of which a forget ends the record, in addition to those of the
	// record it replaces. If one of them has a newer generation than the record, the store
	// writes refused without scopes instead, or nothing if refused is nil.
	scopes     []string
	generation int64
	refused    []byte

	first bool   // store only if the key has no record
	was   []byte // remove only a record with this value
}

// lives returns the lifetime of the kind's records in a state with that ttl. The generation
// of a scope outlives every record that it rejects.
func (k *kind) lives(ttl time.Duration) time.Duration {
	switch {
	case k == floorKind:
		return max(ttl, floorsFor)
	case k.life > 0:
		return k.life
	}
	return ttl
}

// keysOf converts keys to slices.
func keysOf(keys [][16]byte) [][]byte {
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	return list
}

// listed joins scopes with commas at both ends, so that a search matches whole scopes.
func listed(scopes ...string) string {
	if len(scopes) == 0 {
		return ""
	}
	return "," + strings.Join(scopes, ",") + ","
}
