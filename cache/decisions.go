package cache

import (
	"context"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

const (
	// decisionsInRAM bounds the decisions in RAM, in bytes.
	decisionsInRAM = 32 << 20

	// maxLookup bounds the keys of one query.
	maxLookup = 500
)

// Decisions keeps what was decided about each turn: the newest in RAM, all in a
// store. It implements inject.Decisions and is safe for concurrent use.
type Decisions struct {
	store  decisionStore
	recent *byteLRU[[16]byte, recentDecision]
}

// recentDecision is a decision as the store had it at a number of forgets: a
// forget may have emptied its block since.
type recentDecision struct {
	*inject.Decision       // nil: there is none
	forgets          int64 // the number then
}

// decisionStore is where decisions outlive the process.
type decisionStore interface {
	// shared reports whether other processes write to it. A key without a
	// decision may then get one at any moment, so that none is not cached.
	shared() bool

	// read calls found for each key that has a decision, with its index.
	read(ctx context.Context, keys [][16]byte, found func(i int, d *inject.Decision)) error

	// keep stores a decision for a key that has none, and returns the decision
	// that the key has then. If one of the scopes has a newer generation than
	// the decision, the decision is stored without its block.
	keep(ctx context.Context, key [16]byte, d inject.Decision, groups, scopes []string) (*inject.Decision, error)

	// empty removes the blocks that hold facts of a group, and returns how many.
	empty(ctx context.Context, group string) (int, error)

	// countEmptied counts the decisions whose block was removed so.
	countEmptied(ctx context.Context) (int, error)
}

// withoutBlock returns the decision as if it had never had a block.
func withoutBlock(d inject.Decision) inject.Decision {
	d.Block, d.Facts = "", 0
	return d
}

// Lookup returns the decision about each key, nil for a key without one. now is
// the number of forgets that the request carries; a decision that was cached at
// another number is read again. What is not in RAM comes from the store, up to
// maxLookup keys in one query, and never only a part of it: a block that is left
// out changes the beginning of the conversation. With an error Lookup returns what
// it has found so far.
func (d *Decisions) Lookup(ctx context.Context, now int64, keys [][16]byte) ([]*inject.Decision, error) {
	list := make([]*inject.Decision, len(keys))
	var missing [][16]byte
	var at []int // the index in keys of each that is missing
	for i, k := range keys {
		if e, ok := d.recent.Get(k); ok && e.forgets == now {
			list[i] = e.Decision
		} else {
			missing, at = append(missing, k), append(at, i)
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), maxLookup)
		err := d.store.read(ctx, missing[:n], func(i int, found *inject.Decision) { list[at[i]] = found })
		if err != nil {
			return list, fmt.Errorf("read decisions: %w", err)
		}
		for i, k := range missing[:n] {
			if found := list[at[i]]; found != nil || !d.store.shared() {
				// A decision that Keep has stored meanwhile stays.
				e := recentDecision{found, now}
				d.recent.AddOver(k, e, e.bytes(), func(o recentDecision) bool { return o.forgets < now })
			}
		}
		missing, at = missing[n:], at[n:]
	}
	return list, nil
}

// bytes is about what the entry takes in RAM.
func (e recentDecision) bytes() int {
	if e.Decision == nil {
		return 150
	}
	return 200 + len(e.Block)
}

// Keep stores a decision for a key that has none, and returns the decision that
// the key has then, which is on disk or in Redis when Keep returns. groups are
// where its facts came from. If one of them has forgotten something since the
// request arrived, the decision is stored without its block.
func (d *Decisions) Keep(ctx context.Context, key [16]byte, made inject.Decision, groups ...string) (*inject.Decision, error) {
	kept, err := d.store.keep(ctx, key, made, groups, factsOfAll(groups))
	if err != nil {
		// It may have been stored all the same: perhaps only the time ran out.
		d.recent.Remove(key)
		return nil, fmt.Errorf("keep decision: %w", err)
	}
	d.remember(key, kept, made.Generation)
	return kept, nil
}

func (d *Decisions) remember(key [16]byte, kept *inject.Decision, forgets int64) {
	e := recentDecision{kept, forgets}
	d.recent.Add(key, e, e.bytes())
}

// Forget removes the blocks that hold facts of a group, and returns how many. The
// decisions stay: their conversations go on without those blocks.
func (d *Decisions) Forget(ctx context.Context, group string) (int, error) {
	n, err := d.store.empty(ctx, group)
	if err != nil {
		return n, fmt.Errorf("empty blocks: %w", err)
	}
	return n, nil
}

// Emptied counts the decisions whose block was removed by Forget.
func (d *Decisions) Emptied(ctx context.Context) (int, error) {
	n, err := d.store.countEmptied(ctx)
	if err != nil {
		return 0, fmt.Errorf("count blocks: %w", err)
	}
	return n, nil
}
