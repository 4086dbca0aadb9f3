package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Forget is a forget under way: from Raise until End, when the memory is proven to
// hold nothing of it.
type Forget struct {
	Group   string
	Session string // only what was said in it; empty: all of the group
	Owner   string // whose session; empty: everybody's with that id
	Message string // only that message, by its id
	Scope   string // whose generation it raises: the group, the session or the message

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
	store   store
	counter counter
	shared  bool // each write reads the generations of its scopes where replicas share them
	number  atomic.Int64
	under   atomic.Pointer[[]Forget] // under way, as last read; nil: not known
	reading chan struct{}            // holds a token while the store is read
	read    int64                    // the number as last read; whoever holds the token uses it
	changed func(blocked []string, missed bool)
}

// generationKey is the key of the number's record.
const generationKey = "number"

// readTime bounds how long a request waits for the store when the forgets under
// way are not known.
const readTime = 100 * time.Millisecond

func newGenerations(s store, c counter, shared bool) *Generations {
	return &Generations{store: s, counter: c, shared: shared, reading: make(chan struct{}, 1), changed: func([]string, bool) {}}
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
// after each read. missed says that another one has begun and ended since the read
// before: its group is not known. OnBlocked must be called before others use the
// generations.
func (g *Generations) OnBlocked(changed func(groups []string, missed bool)) {
	g.changed = changed
	changed(g.Blocked(), false)
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
	number, under, err := g.stored(ctx)
	if err != nil {
		g.under.Store(nil)
		return fmt.Errorf("read generations: %w", err)
	}
	g.changed(groupsOf(under), missed(g.read, number, under))
	g.read = number
	g.under.Store(&under) // before a request can carry the number
	g.AtLeast(number)
	return nil
}

// missed reports whether the number was raised between two reads for a forget that is
// not under way.
func missed(before, number int64, under []Forget) bool {
	for i := range under {
		if n := under[i].Generation; before < n && n <= number {
			number--
		}
	}
	return number > before
}

// stored returns the number and the forgets under way. A forget that begins between
// both is under way before the number counts it.
func (g *Generations) stored(ctx context.Context) (number int64, under []Forget, err error) {
	number = 1
	err = g.store.get(ctx, generationKind, [][]byte{[]byte(generationKey)}, func(_ int, value []byte) (err error) {
		number, err = strconv.ParseInt(string(value), 10, 64)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	err = g.store.list(ctx, forgetKind, []string{""}, func(_ string, key, value []byte) error {
		f, err := parseForget(string(key), string(value))
		under = append(under, f)
		return err
	})
	slices.SortFunc(under, func(a, b Forget) int { return strings.Compare(a.key(), b.key()) })
	return number, under, err
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
	r := &record{kind: forgetKind, key: []byte(f.key()), value: []byte(f.behindNumber())}
	number, err := g.counter.raise(ctx, r, g.Now(), []string{f.Scope, factsOf(f.Group)})
	if f.Generation = number; number == 0 {
		return f, fmt.Errorf("store what is to be forgotten: %w", err)
	}
	err = errors.Join(err, g.Refresh(ctx))
	g.AtLeast(number)
	return f, err
}

// End ends a forget, unless it was raised again: the memory is proven to hold
// nothing of it. The end of a whole group ends the forgets of its sessions too.
func (g *Generations) End(ctx context.Context, f Forget) error {
	if err := g.end(ctx, f); err != nil {
		return fmt.Errorf("store that it is forgotten: %w", err)
	}
	return g.Refresh(ctx)
}

func (g *Generations) end(ctx context.Context, f Forget) error {
	_, under, err := g.stored(ctx)
	if err != nil {
		return err
	}
	var gone []*record
	for _, o := range under {
		if o.Group == f.Group && o.Generation <= f.Generation && (o.Scope == f.Scope || f.Scope == f.Group) {
			was := strconv.FormatInt(o.Generation, 10) + o.behindNumber()
			gone = append(gone, &record{kind: forgetKind, key: []byte(o.key()), was: []byte(was)})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	// A replica that does not know of the forget may still show what it is about.
	if err := g.counter.announce(ctx, EventGeneration); err != nil {
		return err
	}
	return g.store.write(ctx, gone...)
}

// Floors returns the generation of each scope that was forgotten. It returns none
// when replicas share the state: each write reads those that it needs.
func (g *Generations) Floors(ctx context.Context) (map[string]int64, error) {
	if g.shared {
		return nil, nil
	}
	floors := make(map[string]int64)
	err := g.store.list(ctx, floorKind, []string{""}, func(_ string, scope, value []byte) (err error) {
		floors[string(scope)], err = strconv.ParseInt(string(value), 10, 64)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read generations: %w", err)
	}
	return floors, nil
}

// key returns the key of a forget's record. Tabs and line breaks separate names in
// it and in its value; no name has one.
func (f *Forget) key() string { return f.Group + "\t" + f.Scope }

// behindNumber returns what stands in a forget's record behind its generation.
func (f *Forget) behindNumber() string {
	return "\n" + f.Session + "\n" + f.Owner + "\n" + strconv.FormatBool(f.Emptied) + "\n" + f.Message
}

func parseForget(key, value string) (f Forget, err error) {
	f.Group, f.Scope, _ = strings.Cut(key, "\t")
	parts := strings.Split(value, "\n")
	if len(parts) != 5 {
		return f, fmt.Errorf("what is to be forgotten of %s cannot be read", f.Group)
	}
	f.Session, f.Owner, f.Emptied, f.Message = parts[1], parts[2], parts[3] == "true", parts[4]
	if f.Generation, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return f, fmt.Errorf("what is to be forgotten of %s: %w", f.Group, err)
	}
	return f, nil
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
