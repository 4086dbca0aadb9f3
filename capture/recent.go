package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unique"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// recentMax is the most remembered turns.
const recentMax = 1 << 15

// recent is the LRU cache in front of the ledger. It holds the turns that this process has
// begun to answer or has recorded, each with the groups that store it completely. Clients
// repeat requests, and send earlier turns with each of them. Two agents may have the same
// turn in one session, each with its own groups.
type recent struct{ turns *lru.Cache[turnKey, groupSet] }

// groupSet is a set of groups, each followed by a zero byte. Most turns have equal sets, which
// share their memory; the zero value is the empty set.
type groupSet struct{ of unique.Handle[string] }

func (g groupSet) names() string {
	if g == (groupSet{}) {
		return ""
	}
	return g.of.Value()
}

func (g groupSet) has(group string) bool { return hasName(g.names(), group) }

func hasName(names, name string) bool {
	for names != "" {
		first, rest, _ := strings.Cut(names, "\x00")
		if first == name {
			return true
		}
		names = rest
	}
	return false
}

// with returns the set with more groups.
func (g groupSet) with(in []graphiti.Target) groupSet {
	names := g.names()
	for i := range in {
		if !hasName(names, in[i].Group) {
			names += in[i].Group + "\x00"
		}
	}
	if names == "" {
		return g
	}
	return groupSet{unique.Make(names)}
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

func newRecent() recent {
	turns, err := lru.New[turnKey, groupSet](recentMax)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return recent{turns}
}

// begin adds a turn without any groups.
func (r recent) begin(turn string) { r.turns.ContainsOrAdd(keyOf(turn), groupSet{}) }

// known reports whether a turn was begun or recorded.
func (r recent) known(turn turnKey) bool {
	_, ok := r.turns.Get(turn)
	return ok
}

// recorded adds groups that store a turn completely.
func (r recent) recorded(turn string, in []graphiti.Target) {
	key := keyOf(turn)
	groups, _ := r.turns.Get(key)
	r.turns.Add(key, groups.with(in))
}

// has reports whether all of the groups store a turn completely.
func (r recent) has(turn string, in []graphiti.Target) bool {
	groups, _ := r.turns.Get(keyOf(turn))
	for i := range in {
		if !groups.has(in[i].Group) {
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

// doubt removes the groups of all turns, because the turns may have been forgotten. The
// next use asks the ledger.
func (r recent) doubt() {
	for _, turn := range r.turns.Keys() {
		r.turns.Add(turn, groupSet{}) // keeps the LRU order
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
func (p *Pipeline) Doubt() { p.recent.doubt() }
