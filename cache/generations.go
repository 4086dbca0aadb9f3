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

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Forget is a forget in progress: from Raise until End, when the deletion in the memory is
// verified.
type Forget struct {
	Group   string
	Session string // only this session's messages, or "" for the whole group
	Owner   string // owner of the session, or "" for all owners with that session ID
	Message string // only this message, by ID
	Scope   string // scope to raise: the group, the session or the message

	Generation int64 // applies to records of older generations
	Emptied    bool  // decisions and snapshots are deleted; the queue and the memory may not be
}

// Generations counts forgets. A request reads the number once, on arrival, and all its
// writes carry it. Forgetting a scope raises the number and makes it the scope's
// generation. The store rejects a write if one of its scopes has a newer generation.
//
// It also holds the forgets in progress: no block shows facts of their groups. All of it
// survives the process. It is safe for concurrent use.
type Generations struct {
	store   *tables
	number  atomic.Int64
	under   atomic.Pointer[[]Forget] // forgets in progress at the last read, or nil before it
	reading chan struct{}            // holds a token while the store is read
}

// generationKey is the key of the number's record.
const generationKey = "number"

// readTime is how long a request waits for the store if the forgets in progress are
// unknown.
const readTime = 100 * time.Millisecond

func newGenerations(s *tables) *Generations {
	return &Generations{store: s, reading: make(chan struct{}, 1)}
}

// Now returns the number for an arriving request. It may be older than the store's number,
// but never newer. A request with an older number cannot write to scopes forgotten since.
func (g *Generations) Now() int64 { return g.number.Load() }

// Blocks reports whether a forget of the group, or of a session in it, is in progress. It
// returns true if the store cannot be read.
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

// Recallable returns the targets whose group is not being forgotten.
func (g *Generations) Recallable(reads []graphiti.Target) []graphiti.Target {
	return slices.DeleteFunc(slices.Clone(reads), func(t graphiti.Target) bool { return g.Blocks(t.Group) })
}

// Blocked returns the groups with a forget in progress at the last read.
func (g *Generations) Blocked() (groups []string) {
	for _, f := range g.UnderWay() {
		if !slices.Contains(groups, f.Group) {
			groups = append(groups, f.Group)
		}
	}
	return groups
}

// UnderWay returns the forgets in progress at the last read. The caller must not change the
// slice.
func (g *Generations) UnderWay() []Forget {
	if under := g.under.Load(); under != nil {
		return *under
	}
	return nil
}

// Refresh reads the store. Reads never overlap, so an older result cannot replace a newer
// one.
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
	g.under.Store(&under) // before a request can carry the number
	g.AtLeast(number)
	return nil
}

// stored returns the number and the forgets in progress. It reads the number first, so a
// concurrent forget is listed before the number includes it.
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

// AtLeast raises the number to a value seen elsewhere, unless it is higher.
func (g *Generations) AtLeast(number int64) {
	for now := g.Now(); number > now && !g.number.CompareAndSwap(now, number); now = g.Now() {
	}
}

// Raise begins a forget: it raises the number and returns f with it as its generation. The
// forget is in progress until End. A generation other than zero means that the forget is
// stored, even with an error.
func (g *Generations) Raise(ctx context.Context, f Forget) (Forget, error) {
	r := &record{kind: forgetKind, key: []byte(f.key()), value: []byte(f.behindNumber())}
	number, err := g.store.raise(ctx, r, g.Now(), []string{f.Scope, factsOf(f.Group)})
	if f.Generation = number; number == 0 {
		return f, fmt.Errorf("store a tombstone: %w", err)
	}
	err = errors.Join(err, g.Refresh(ctx))
	g.AtLeast(number)
	return f, err
}

// End ends a forget after its deletion is verified, unless it was raised again. The end of
// a whole group's forget also ends those of its sessions.
func (g *Generations) End(ctx context.Context, f Forget) error {
	if err := g.end(ctx, f); err != nil {
		return fmt.Errorf("remove a tombstone: %w", err)
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
	// A replica without knowledge of the forget may still show its facts.
	if err := g.store.announce(ctx); err != nil {
		return err
	}
	return g.store.write(ctx, gone...)
}

// Floors returns the generation of each forgotten scope.
func (g *Generations) Floors(ctx context.Context) (map[string]int64, error) {
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

// key returns the key of a forget's record. Names contain no tabs or line breaks, so these
// separate them in the key and the value.
func (f *Forget) key() string { return f.Group + "\t" + f.Scope }

// behindNumber returns the part of a forget's record after its generation.
func (f *Forget) behindNumber() string {
	return "\n" + f.Session + "\n" + f.Owner + "\n" + strconv.FormatBool(f.Emptied) + "\n" + f.Message
}

func parseForget(key, value string) (f Forget, err error) {
	f.Group, f.Scope, _ = strings.Cut(key, "\t")
	parts := strings.Split(value, "\n")
	if len(parts) != 5 {
		return f, fmt.Errorf("read the tombstone of %s: invalid", f.Group)
	}
	f.Session, f.Owner, f.Emptied, f.Message = parts[1], parts[2], parts[3] == "true", parts[4]
	if f.Generation, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return f, fmt.Errorf("read the tombstone of %s: %w", f.Group, err)
	}
	return f, nil
}

// factsOf returns the scope of a group's facts. Forgetting a session of the group also
// raises it, because a fact does not name its session.
func factsOf(group string) string { return "facts:" + group }

func factsOfAll(groups []string) []string {
	scopes := make([]string, len(groups))
	for i, g := range groups {
		scopes[i] = factsOf(g)
	}
	return scopes
}
