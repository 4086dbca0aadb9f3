package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Forget is something that is to be forgotten, until it is proven to be gone.
type Forget struct {
	Group   string
	Session string // only what was said in it; empty: all of the group
	Owner   string // whose session; empty: everybody's with that id
	Scope   string // whose generation it raises: the group, or the session

	Generation int64 // what belongs to an older one is to be forgotten
	Emptied    bool  // everything but the queue and the memory
}

// Generations counts forgets. A request reads the number once, when it
// arrives, and whatever is written for it carries that number. Forgetting a
// scope raises the number and makes it the scope's generation; a write is
// refused when one of its scopes has a newer generation than it carries.
//
// It also knows what is being forgotten: nothing of those groups is shown. All
// of it outlives the process. It is safe for concurrent use.
type Generations struct {
	store   generationStore
	number  atomic.Int64
	under   atomic.Pointer[[]Forget] // under way, as it was read last; nil: not known
	reading chan struct{}            // holds a token while the store is read
	changed func(blocked []string)
}

// generationStore is where generations outlive the process.
type generationStore interface {
	read(ctx context.Context) (number int64, under []Forget, err error)

	// raise adds one to the number, which is known to be seen at least, makes
	// it the generation of the scopes and of what is to be forgotten, and
	// returns when all who share the store know of it. A number that is not
	// zero is stored, whatever the error.
	raise(ctx context.Context, f Forget, seen int64, scopes []string) (number int64, err error)

	// end removes what is under way, unless it was raised again. The end of a
	// whole group is that of everything in it.
	end(ctx context.Context, f Forget) error

	floors(ctx context.Context) (map[string]int64, error)
}

// readTime bounds what a request waits for the store while generations are not
// known.
const readTime = 100 * time.Millisecond

func newGenerations(s generationStore) *Generations {
	return &Generations{store: s, reading: make(chan struct{}, 1), changed: func([]string) {}}
}

// Now is the number that a request carries which arrives now. While it is not
// known it is an older one: nothing is written to a scope that was forgotten
// since.
func (g *Generations) Now() int64 { return g.number.Load() }

// Blocks reports whether something of a group is being forgotten. Where that is
// not known it is.
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

// Blocked returns the groups with a forget in progress, as last read.
func (g *Generations) Blocked() []string { return groupsOf(g.UnderWay()) }

// UnderWay is what is being forgotten, as it was read last. It must not be
// changed.
func (g *Generations) UnderWay() []Forget {
	if under := g.under.Load(); under != nil {
		return *under
	}
	return nil
}

// OnBlocked calls changed with the groups that have a forget in progress, now
// and after each read. It must be called before others use
// the generations.
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

// Refresh reads the store. One read follows the other: what an earlier one
// shows does not replace what a later one does.
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

// AtLeast says that the number is known to be that, or higher.
func (g *Generations) AtLeast(number int64) {
	for now := g.Now(); number > now && !g.number.CompareAndSwap(now, number); now = g.Now() {
	}
}

// Raise raises the generation of what is to be forgotten, and returns it with
// that. From now on, and until End, it is under way. Where the generation of
// what it returns is not zero it is stored, whatever the error.
func (g *Generations) Raise(ctx context.Context, f Forget) (Forget, error) {
	number, err := g.store.raise(ctx, f, g.Now(), []string{f.Scope, factsOf(f.Group)})
	if f.Generation = number; number == 0 {
		return f, fmt.Errorf("store what is to be forgotten: %w", err)
	}
	err = errors.Join(err, g.Refresh(ctx))
	g.AtLeast(number)
	return f, err
}

// End says that what was to be forgotten is proven to be gone.
func (g *Generations) End(ctx context.Context, f Forget) error {
	if err := g.store.end(ctx, f); err != nil {
		return fmt.Errorf("store that it is forgotten: %w", err)
	}
	return g.Refresh(ctx)
}

// Floors are the generations of all scopes that were forgotten.
func (g *Generations) Floors(ctx context.Context) (map[string]int64, error) {
	floors, err := g.store.floors(ctx)
	if err != nil {
		return nil, fmt.Errorf("read generations: %w", err)
	}
	return floors, nil
}

// factsOf is the scope of what was found in a group. Forgetting a session in
// the group raises it, too: what was said in it cannot be distinguished from the rest.
func factsOf(group string) string { return "facts:" + group }

func factsOfAll(groups []string) []string {
	scopes := make([]string, len(groups))
	for i, g := range groups {
		scopes[i] = factsOf(g)
	}
	return scopes
}
