package cache

import (
	"context"
	"math"
	"strings"
	"time"
)

// kind is what the records of one view have in common.
type kind struct {
	name     string
	life     time.Duration // a record expires so long after it was written; 0: after the time that the state was opened with
	most     int           // a list keeps so many records, the newest; 0: all
	long     bool          // values may be as long as a message; others are a line
	hashed   bool          // keys are hashes; Redis has them in hex
	filtered bool          // keys have 16 bytes, and most that are asked for have no record: a file filters them
	listed   bool          // list finds the records; Redis keeps an index for it
	event    string        // begins the event with which a write is published to other replicas; empty: none

	// rest returns what stays of a value when one of its record's scopes is
	// forgotten, and whether that is counted; nil: nothing stays, and all are.
	rest func(value []byte) (rest []byte, counted bool)
}

// forGood is the life of what never expires.
const forGood = math.MaxInt64

// floorsFor is how long the generation of a scope is kept at least: nothing that is
// older is still to be written.
const floorsFor = 90 * 24 * time.Hour

// The kinds of records. A key in Redis begins with the name of its kind.
var (
	decisionKind   = &kind{name: "block", long: true, hashed: true, filtered: true, event: eventDecision, rest: emptied}
	linkKind       = &kind{name: "link", hashed: true, event: eventLink}                        // the session of a conversation's beginning
	pendingKind    = &kind{name: "pending", life: pendingFor, hashed: true}                     // the session of a conversation without an answer
	snapshotKind   = &kind{name: "snapshot", long: true}                                        // a session's short-term memory
	standingKind   = &kind{name: "standing", life: standingFor, most: 64, listed: true}         // an entry of a card
	endedKind      = &kind{name: "ended", life: forGood, most: 10_000, listed: true}            // a message that its person has ended; a list for each group
	tenantKind     = &kind{name: "accepted", life: forGood, most: 100_000, listed: true}        // a tenant whose credentials were accepted
	proofKind      = &kind{name: "proof", life: forGood, hashed: true, listed: true}            // whose memory a key or identity belongs to
	generationKind = &kind{name: "generation", life: forGood}                                   // how many forgets there were: one record
	floorKind      = &kind{name: "floor"}                                                       // the generation of a scope that was forgotten
	figuresKind    = &kind{name: "figures", life: figuresFor, hashed: true, listed: true}       // what one process counted on a day, of one owner; a list for each day
	forgetKind     = &kind{name: "forget", life: forGood, listed: true, event: EventGeneration} // a forget under way
)

var kinds = []*kind{decisionKind, linkKind, pendingKind, snapshotKind, standingKind, endedKind, tenantKind, proofKind, generationKind, floorKind, figuresKind, forgetKind}

// record is what a store is to write.
type record struct {
	kind  *kind
	list  string // that it is in, for kinds that have several lists
	key   []byte
	value []byte // nil: the record is removed

	// scopes are those whose forgetting ends the record, beside those of the one
	// that it replaces. If one of them has a newer generation than the record,
	// refused is stored in its place, without scopes; nil: nothing is stored.
	scopes     []string
	generation int64
	refused    []byte

	first bool   // it is stored only for a key that has none
	was   []byte // it is removed only while the value is this one
}

// lives returns how long a record of the kind lives, in a state that was opened with
// ttl. The generation of a scope outlives every record that it refuses.
func (k *kind) lives(ttl time.Duration) time.Duration {
	switch {
	case k == floorKind:
		return max(ttl, floorsFor)
	case k.life > 0:
		return k.life
	}
	return ttl
}

// emptiedScope is the scope of records that a forget has left in part, and has counted. No
// group has this name.
const emptiedScope = "*emptied*"

// store is where records outlive the process. The values that it passes to a
// function must not be kept.
type store interface {
	// get calls found for each key that has a record, with its index. It does
	// not look into lists that have a name.
	get(ctx context.Context, k *kind, keys [][]byte, found func(i int, value []byte) error) error

	// list calls f for the records of lists, the oldest of each first.
	list(ctx context.Context, k *kind, lists []string, f func(list string, key, value []byte) error) error

	// scoped calls f for the records that have all of the scopes, in the order
	// of their keys.
	scoped(ctx context.Context, k *kind, scopes []string, f func(key, value []byte) error) error

	// keep stores a record for a key that has none, and returns the value that
	// the key has then. Nothing is stored after ctx has ended.
	keep(ctx context.Context, r *record) ([]byte, error)

	// write stores records, all or none.
	write(ctx context.Context, records ...*record) error

	// writeAsync does not wait. Its writes keep their order, and may be lost.
	writeAsync(r *record)

	// forget ends the records that have a scope, and counts them.
	forget(ctx context.Context, k *kind, scope string) (int, error)
}

// counter is the part of a store that counts forgets.
type counter interface {
	// raise adds one to the number of forgets, or to seen where that is higher,
	// and makes it the generation of the scopes. It stores f with the number
	// before its value. If the number that it returns is not zero, that is
	// stored, whatever the error.
	raise(ctx context.Context, f *record, seen int64, scopes []string) (number int64, err error)

	// announce publishes an event, and returns when every replica has applied it.
	announce(ctx context.Context, event string) error
}

// keysOf returns keys as a store takes them.
func keysOf(keys [][16]byte) [][]byte {
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	return list
}

// listed writes scopes between commas, so that one of them is found.
func listed(scopes ...string) string {
	if len(scopes) == 0 {
		return ""
	}
	return "," + strings.Join(scopes, ",") + ","
}
