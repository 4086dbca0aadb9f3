package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Forget is a forget under way: from Raise until End, when the memory is proven to
// hold nothing of it.
type Forget struct {
	Group   string
	Session string // only what was said in it; empty: all of the group
	Owner   string // whose session; empty: everybody's with that id
	Scope   string // whose generation it raises: the group, or the session

	Generation int64 // what was written for an older generation is meant
	Emptied    bool  // decisions and snapshots are empty; the queue and the memory may not be
}

// Generations counts forgets. A request reads the number once, when it
// arrives, and whatever is written for it carries that number. Forgetting a
// scope raises the number and makes it the scope's generation; a write is
// refused when one of its scopes has a newer generation than it carries.
//
// It also knows the forgets under way: no block shows anything of their groups.
// All of it outlives the process. It is safe for concurrent use.
type Generations struct {
	store   generationStore
	number  atomic.Int64
	under   atomic.Pointer[[]Forget] // under way, as last read; nil: not known
	reading chan struct{}            // holds a token while the store is read
	changed func(blocked []string)
}

// generationStore is where generations outlive the process.
type generationStore interface {
	read(ctx context.Context) (number int64, under []Forget, err error)

	// raise adds one to the number, or to seen where that is higher, makes it
	// the generation of the scopes and of f, and returns when every replica
	// knows it. If the number that it returns is not zero, it is stored,
	// whatever the error.
	raise(ctx context.Context, f Forget, seen int64, scopes []string) (number int64, err error)

	// end removes a forget that is under way, unless it was raised again. The
	// end of a whole group ends the forgets of its sessions too.
	end(ctx context.Context, f Forget) error

	// floors returns the generation of each scope that was forgotten; a store
	// that replicas share returns none.
	floors(ctx context.Context) (map[string]int64, error)
}

// readTime bounds how long a request waits for the store when the forgets under
// way are not known.
const readTime = 100 * time.Millisecond

func newGenerations(s generationStore) *Generations {
	return &Generations{store: s, reading: make(chan struct{}, 1), changed: func([]string) {}}
}

// Now returns the number for a request that arrives now. It may be older than the
// store's, never newer. A request with an older number writes nothing to a scope
// that was forgotten since.
func (g *Generations) Now() int64 { return g.number.Load() }

// Blocks reports whether a forget of the group, or of a session in it, is under
// way. It returns true when the store cannot be read.
func (g *Generations) Blocks(group string) bool {
	if g.under.Load() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		if g.Refresh(ctx) != nil {
			return true
		}
	}
	return slices.ContainsFunc(g.UnderWay(), func(f Forget) bool { return f.Group == group })
}

// Blocked returns the groups with a forget under way, as last read.
func (g *Generations) Blocked() []string { return groupsOf(g.UnderWay()) }

// UnderWay returns the forgets under way, as last read. The caller must not change
// the slice.
func (g *Generations) UnderWay() []Forget {
	if under := g.under.Load(); under != nil {
		return *under
	}
	return nil
}

// OnBlocked calls changed with the groups that have a forget under way, now and
// after each read. It must be called before others use the generations.
func (g *Generations) OnBlocked(changed func(groups []string)) {
	g.changed = changed
	changed(g.Blocked())
}

func groupsOf(under []Forget) (groups []string) {
	for i := range under {
		if group := under[i].Group; !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// Refresh reads the store. Reads do not overlap, so that the result of an earlier
// one never replaces that of a later one.
func (g *Generations) Refresh(ctx context.Context) error {
	select {
	case g.reading <- struct{}{}:
		defer func() { <-g.reading }()
	case <-ctx.Done():
		return fmt.Errorf("read generations: %w", ctx.Err())
	}
	number, under, err := g.store.read(ctx)
	if err != nil {
		g.under.Store(nil)
		return fmt.Errorf("read generations: %w", err)
	}
	g.changed(groupsOf(under))
	g.under.Store(&under) // before a request can carry the number
	g.AtLeast(number)
	return nil
}

// AtLeast raises the number to one that was seen elsewhere, unless it is higher.
func (g *Generations) AtLeast(number int64) {
	for now := g.Now(); number > now && !g.number.CompareAndSwap(now, number); now = g.Now() {
	}
}

// Raise begins a forget: it raises the number and returns f with it as its
// generation. The forget is under way until End. If the generation is not zero,
// the forget is stored, whatever the error.
func (g *Generations) Raise(ctx context.Context, f Forget) (Forget, error) {
	number, err := g.store.raise(ctx, f, g.Now(), []string{f.Scope, factsOf(f.Group)})
	if f.Generation = number; number == 0 {
		return f, fmt.Errorf("store what is to be forgotten: %w", err)
	}
	err = errors.Join(err, g.Refresh(ctx))
	g.AtLeast(number)
	return f, err
}

// End ends a forget: the memory is proven to hold nothing of it.
func (g *Generations) End(ctx context.Context, f Forget) error {
	if err := g.store.end(ctx, f); err != nil {
		return fmt.Errorf("store that it is forgotten: %w", err)
	}
	return g.Refresh(ctx)
}

// Floors returns the generation of each scope that was forgotten. It returns none
// when replicas share the state: each write reads those that it needs.
func (g *Generations) Floors(ctx context.Context) (map[string]int64, error) {
	floors, err := g.store.floors(ctx)
	if err != nil {
		return nil, fmt.Errorf("read generations: %w", err)
	}
	return floors, nil
}

// factsOf is the scope of the facts of a group. Forgetting a session of the group
// raises it too, because a fact does not say which session it came from.
func factsOf(group string) string { return "facts:" + group }

func factsOfAll(groups []string) []string {
	scopes := make([]string, len(groups))
	for i, g := range groups {
		scopes[i] = factsOf(g)
	}
	return scopes
}
