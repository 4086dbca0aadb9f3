package cache

import (
	"context"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

const (
	// decisionsInMemory bounds the bytes of decisions in memory.
	decisionsInMemory = 32 << 20

	// maxLookup bounds the keys of one query.
	maxLookup = 500
)

// Decisions implements inject.Decisions. It is safe for
// concurrent use.
type Decisions struct {
	store  decisionStore
	recent *byteLRU[[16]byte, recentDecision]
}

// recentDecision is a decision as it was when the number of forgets was as.
type recentDecision struct {
	*inject.Decision // nil: there is none
	as               int64
}

// decisionStore is where decisions outlive the process.
type decisionStore interface {
	// shared reports whether other processes write to it: that something was
	// not there is then not worth remembering.
	shared() bool

	read(ctx context.Context, keys [][16]byte, found func(i int, d *inject.Decision)) error

	// keep stores a decision for a key that has none, and returns the one that
	// the key has then. One that belongs to an older generation than one of
	// the scopes is stored without what it shows.
	keep(ctx context.Context, key [16]byte, d inject.Decision, groups, scopes []string) (*inject.Decision, error)

	// empty takes the blocks out of the decisions that hold facts of a group.
	empty(ctx context.Context, group string) (int, error)
	countEmptied(ctx context.Context) (int, error)
}

// withoutBlock is a decision that shows nothing, and never did.
func withoutBlock(d inject.Decision) inject.Decision {
	d.Block, d.Facts = "", 0
	return d
}

// Lookup returns what was decided about each key, nil where nothing was. now is
// the number that the request carries: what was read under another one is read
// again. What is not in memory comes from the store, maxLookup keys at a time:
// all that are asked for, or the conversation would have another beginning the next
// time. With an error it returns what was in memory.
func (d *Decisions) Lookup(ctx context.Context, now int64, keys [][16]byte) ([]*inject.Decision, error) {
	list := make([]*inject.Decision, len(keys))
	var missing [][16]byte
	var at []int // where they stand among keys
	for i, k := range keys {
		if e, ok := d.recent.Get(k); ok && e.as == now {
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
				// What was kept meanwhile stays.
				e := recentDecision{found, now}
				d.recent.AddOver(k, e, e.bytes(), func(o recentDecision) bool { return o.as < now })
			}
		}
		missing, at = missing[n:], at[n:]
	}
	return list, nil
}

// bytes is about what it takes in memory.
func (e recentDecision) bytes() int {
	if e.Decision == nil {
		return 150
	}
	return 200 + len(e.Block)
}

// Keep stores a decision for a key that has none, and returns
// the one that the key has now. It is stored when Keep returns. groups are
// those that its facts came from: what they have forgotten since the request
// arrived is not shown.
func (d *Decisions) Keep(ctx context.Context, key [16]byte, made inject.Decision, groups ...string) (*inject.Decision, error) {
	kept, err := d.store.keep(ctx, key, made, groups, factsOfAll(groups))
	if err != nil {
		// It may have been stored all the same, when only the time ran out.
		d.recent.Remove(key)
		return nil, fmt.Errorf("keep decision: %w", err)
	}
	d.remember(key, kept, made.Generation)
	return kept, nil
}

func (d *Decisions) remember(key [16]byte, kept *inject.Decision, as int64) {
	e := recentDecision{kept, as}
	d.recent.Add(key, e, e.bytes())
}

// Forget empties the blocks that hold facts of a group, and returns how many.
// Their conversations go on without.
func (d *Decisions) Forget(ctx context.Context, group string) (int, error) {
	n, err := d.store.empty(ctx, group)
	if err != nil {
		return n, fmt.Errorf("empty blocks: %w", err)
	}
	return n, nil
}

// Emptied counts the blocks that were emptied.
func (d *Decisions) Emptied(ctx context.Context) (int, error) {
	n, err := d.store.countEmptied(ctx)
	if err != nil {
		return 0, fmt.Errorf("count blocks: %w", err)
	}
	return n, nil
}
