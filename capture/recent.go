package capture

import (
	"crypto/sha256"
	"encoding/hex"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// recentMax is the most remembered turns.
const recentMax = 1 << 15

// recent is the cache in front of the ledger: the turns that this process has begun to answer or has
// recorded, and the groups that store them completely. Clients repeat requests, and send earlier
// turns with each of them. Two agents may have the same turn in one session, each with its own
// groups.
type recent struct {
	turns  *lru.Cache[turnKey, struct{}]
	stored *lru.Cache[turnKey, struct{}] // by storedKey
}

// turnKey is a turn's ID, usually decoded from hexadecimal, else hashed.
type turnKey [16]byte

func keyOf(turn string) (k turnKey) {
	if len(turn) == hex.EncodedLen(len(k)) {
		if _, err := hex.Decode(k[:], []byte(turn)); err == nil {
			return k
		}
	}
	sum := sha256.Sum256([]byte(turn))
	return turnKey(sum[:len(k)])
}

// storedKey identifies a turn in a group.
func storedKey(turn, group string) turnKey {
	sum := sha256.Sum256([]byte(turn + "\x00" + group))
	return turnKey(sum[:len(turnKey{})])
}

func newRecent() (r recent) {
	r.turns, _ = lru.New[turnKey, struct{}](recentMax) // fails only for a size of 0
	r.stored, _ = lru.New[turnKey, struct{}](2 * recentMax)
	return r
}

// begin adds a turn without any groups.
func (r recent) begin(turn string) { r.turns.ContainsOrAdd(keyOf(turn), struct{}{}) }

// known reports whether a turn was begun or recorded.
func (r recent) known(turn turnKey) bool {
	_, ok := r.turns.Get(turn)
	return ok
}

// recorded adds groups that store a turn completely.
func (r recent) recorded(turn string, in []graphiti.Target) {
	r.turns.Add(keyOf(turn), struct{}{})
	for i := range in {
		r.stored.Add(storedKey(turn, in[i].Group), struct{}{})
	}
}

// has reports whether all of the groups store a turn completely.
func (r recent) has(turn string, in []graphiti.Target) bool {
	for i := range in {
		if _, ok := r.stored.Get(storedKey(turn, in[i].Group)); !ok {
			return false
		}
	}
	return len(in) > 0
}

// settle applies the result of recording turns.
func (r recent) settle(turns []ledger.Turn, err error) {
	if err != nil {
		r.release(turns)
		return
	}
	for i := range turns {
		switch t := &turns[i]; {
		case len(t.Targets) == 0:
		case t.Open: // its end may still arrive
			r.recorded(BeginningOf(t.ID), t.Targets)
		case !t.Backfill: // else the turn itself may
			r.recorded(t.ID, t.Targets)
		}
	}
}

// BeginningOf names the beginning of a turn, for Kept.
func BeginningOf(turn string) string { return turn + ".open" }

// release removes turns that were not recorded, so that later requests offer them again.
func (r recent) release(turns []ledger.Turn) {
	for i := range turns {
		r.turns.Remove(keyOf(turns[i].ID))
	}
}

// Begin registers a turn that this process answers, so that it is not recorded from a
// client's history.
func (p *Pipeline) Begin(turn string) { p.recent.begin(turn) }

// Known reports whether this process answers or has recorded the turn with that ID, decoded
// from hexadecimal. Such a turn needs no backfill.
func (p *Pipeline) Known(turn [16]byte) bool { return p.recent.known(turn) }

// Kept reports whether a turn was recently recorded for all of those groups, so that its
// answer need not be parsed again. It does not ask the ledger.
func (p *Pipeline) Kept(turn string, in []graphiti.Target) bool { return p.recent.has(turn, in) }

// Doubt clears the cached groups of all turns, so that callers read the ledger again.
func (p *Pipeline) Doubt() { p.recent.stored.Purge() }
