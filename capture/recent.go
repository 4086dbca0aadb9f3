package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// recentMax bounds the turns that are remembered.
const recentMax = 1 << 16

// recent is the LRU cache before the ledger. It holds the turns that this
// process has begun to answer or has recorded, each with the groups that have
// all of it: clients repeat requests, and send what was said with every one.
// Two agents may have the same turn in one session, each for groups of its own.
type recent struct{ turns *lru.Cache[turnKey, []string] }

// turnKey stands for a turn's id, which it mostly is, in hexadecimal digits.
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

func newRecent() recent {
	turns, err := lru.New[turnKey, []string](recentMax)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return recent{turns}
}

// begin notes a turn that no group is known to have completely.
func (r recent) begin(turn string) { r.turns.ContainsOrAdd(keyOf(turn), nil) }

// known reports whether a turn was begun or recorded.
func (r recent) known(turn turnKey) bool {
	_, ok := r.turns.Get(turn)
	return ok
}

// recorded notes that groups have all of a turn.
func (r recent) recorded(turn string, in []graphiti.Target) {
	key := keyOf(turn)
	groups, _ := r.turns.Get(key)
	groups = slices.Clip(groups)
	for i := range in {
		if !slices.Contains(groups, in[i].Group) {
			groups = append(groups, in[i].Group)
		}
	}
	r.turns.Add(key, groups)
}

// has reports whether all of those groups have all of a turn.
func (r recent) has(turn string, in []graphiti.Target) bool {
	groups, _ := r.turns.Get(keyOf(turn))
	for i := range in {
		if !slices.Contains(groups, in[i].Group) {
			return false
		}
	}
	return len(in) > 0
}

// settle notes the result of recording turns: err says why they could not be recorded.
func (r recent) settle(turns []ledger.Turn, err error) {
	if err != nil {
		r.release(turns)
		return
	}
	for i := range turns {
		if t := &turns[i]; len(t.Targets) > 0 && !t.Open && !t.Backfill { // its end, or the turn itself, may still come
			r.recorded(t.ID, t.Targets)
		}
	}
}

// release lets later requests offer turns again that could not be recorded.
func (r recent) release(turns []ledger.Turn) {
	for i := range turns {
		r.turns.Remove(keyOf(turns[i].ID))
	}
}

// doubt makes the next use of the turns ask the ledger which groups have them: they may
// have been forgotten. That the turns were begun stays known.
func (r recent) doubt() {
	for _, turn := range r.turns.Keys() {
		r.turns.Add(turn, nil) // in their order, which stays
	}
}

// Begin notes that this process answers a turn, so that what a client's history shows of
// it is not recorded.
func (p *Pipeline) Begin(turn string) { p.recent.begin(turn) }

// Known reports whether this process answers or has recorded the turn whose id in
// hexadecimal digits is that number. Then the turn need not be backfilled.
func (p *Pipeline) Known(turn [16]byte) bool { return p.recent.known(turn) }

// Kept reports whether a turn was recorded for all of those groups a short while ago.
// Then its answer need not be read again. It does not ask the ledger.
func (p *Pipeline) Kept(turn string, in []graphiti.Target) bool { return p.recent.has(turn, in) }

// Doubt forgets which groups have the turns, so that the ledger is asked again.
func (p *Pipeline) Doubt() { p.recent.doubt() }
