package justsaid

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// Options configures an Index. All fields but Every are required.
type Options struct {
	Path   string // scratch file, emptied at the start
	Outbox ledger.Arrivals
	Say    func(t *ledger.Turn, scope graphiti.Scope) []graphiti.Row
	For    func() time.Duration // how long a turn is found after it has left the outbox
	Every  time.Duration        // interval of reads without a Wake, for turns of other replicas; 0 disables them
	Log    *slog.Logger
}

const (
	page = 256 // turns per read

	// most is the limit of searchable messages. Beyond it the oldest are dropped.
	most = 1 << 15

	// sweepEvery is the interval at which the Index asks the outbox for turns that have
	// left it.
	sweepEvery = 5 * time.Second

	// purgeFrom is the minimum number of dropped messages of a group to delete from the
	// store together, unless the searchable ones outnumber them: after each deletion the
	// store indexes the group again. A group without searchable messages is emptied at
	// once.
	purgeFrom = 64
)

// Index searches recent messages. It is safe for concurrent use.
type Index struct {
	o     Options
	store *embedded.Store
	wake  chan struct{} // capacity 1: further wakes add nothing
	base  context.Context
	stop  context.CancelFunc
	ended chan struct{}

	writing sync.Mutex // held during writes to the store; taken before mu
	last    int64      // number of the last turn read; protected by writing
	failing bool       // the last read of the outbox failed; owned by run

	mu      sync.Mutex // protects the fields below
	kept    map[key]*recent
	stale   map[string]int // number of a group's messages in the store but not in kept
	blocked []string       // groups with a forget in progress
}

type key struct{ group, name string }

type recent struct {
	number int64     // number of its turn
	left   time.Time // when the turn was found to have left the outbox, or zero
	id     string    // backend ID, or "" before the memory has shown the message
}

// Open returns an Index that follows an outbox until Close.
func Open(o Options) (*Index, error) {
	store, err := embedded.OpenScratch(o.Path)
	if err != nil {
		return nil, err
	}
	x := &Index{o: o, store: store, wake: make(chan struct{}, 1), ended: make(chan struct{}), kept: make(map[key]*recent), stale: make(map[string]int)}
	x.base, x.stop = context.WithCancel(context.Background())
	x.Wake()
	go x.run() // ends when Close cancels base
	return x, nil
}

// Close stops following the outbox and closes the scratch file.
func (x *Index) Close() error {
	x.stop()
	<-x.ended
	return x.store.Close()
}

// Wake makes the Index read new turns from the outbox. It does not block.
func (x *Index) Wake() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Search returns up to max messages of a group that match the query, best first.
func (x *Index) Search(ctx context.Context, group, query string, max int) ([]graphiti.Fact, error) {
	if !x.holds(group) {
		return nil, nil
	}
	facts, err := x.store.Search(ctx, []string{group}, query, 2*max)
	if err != nil {
		return nil, fmt.Errorf("search recent messages: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Contains(x.blocked, group) {
		return nil, nil
	}
	facts = slices.DeleteFunc(facts, func(f graphiti.Fact) bool { return x.kept[key{group, f.Episode}] == nil })
	facts = facts[:min(len(facts), max)]
	for i := range facts {
		if m := x.kept[key{group, facts[i].Episode}]; m.id != "" {
			facts[i].Episodes = []string{m.id}
		}
	}
	return facts, nil
}

// Seen records the backend IDs of messages by name, because facts refer to their messages
// by ID. It ignores unknown names.
func (x *Index) Seen(group string, ids map[string]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, id := range ids {
		if m := x.kept[key{group, name}]; m != nil {
			m.id = id
		}
	}
}

// holds reports whether a group may have searchable messages.
func (x *Index) holds(group string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.kept) == 0 || slices.Contains(x.blocked, group) {
		return false
	}
	_, known := x.stale[group]
	return known
}

// Block replaces the set of groups with a forget in progress. It empties new ones, and
// Search omits all of them. Groups that have left the set are read from the
// outbox again. missed reports whether this process may have missed a forget of another
// group: then all groups are emptied and read again.
func (x *Index) Block(groups []string, missed bool) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	before := x.blocked
	x.blocked = slices.Clone(groups)
	meant := groups
	if missed {
		meant = slices.Collect(maps.Keys(x.stale))
	}
	x.mu.Unlock()
	for _, g := range meant {
		if missed || !slices.Contains(before, g) {
			x.empty(g)
		}
	}
	if missed || slices.ContainsFunc(before, func(g string) bool { return !slices.Contains(groups, g) }) {
		x.last = 0
		x.Wake()
	}
}

// empty deletes all messages of a group. The caller must hold writing.
func (x *Index) empty(group string) {
	x.mu.Lock()
	_, known := x.stale[group]
	for k := range x.kept {
		if k.group == group {
			delete(x.kept, k)
		}
	}
	delete(x.stale, group)
	x.mu.Unlock()
	if !known {
		return
	}
	if err := x.store.Forget(context.Background(), group); err != nil {
		x.o.Log.Warn("delete recent messages failed, they are hidden from searches", "error", err)
	}
}

// run follows the outbox until Close.
func (x *Index) run() {
	defer close(x.ended)
	var look <-chan time.Time
	if x.o.Every > 0 {
		t := time.NewTicker(x.o.Every)
		defer t.Stop()
		look = t.C
	}
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-x.base.Done():
			return
		case <-x.wake:
			x.logFailure(x.follow(x.base))
		case <-look:
			x.logFailure(x.follow(x.base))
		case <-sweep.C:
			if err := x.sweep(x.base, time.Now()); err != nil { // a success does not mean that the outbox is readable
				x.logFailure(err)
			}
		}
	}
}

// logFailure logs the first of consecutive errors.
func (x *Index) logFailure(err error) {
	if err != nil && !x.failing && x.base.Err() == nil {
		x.o.Log.Warn("index recent messages failed, searches may miss them", "error", err)
	}
	x.failing = err != nil
}

// follow reads the new turns of the outbox.
func (x *Index) follow(ctx context.Context) error {
	for {
		n, err := x.more(ctx)
		if n < page || err != nil {
			return err
		}
	}
}

// more reads a page of turns and returns their number.
func (x *Index) more(ctx context.Context) (n int, err error) {
	x.writing.Lock()
	defer x.writing.Unlock()
	last := x.last
	byGroup := make(map[string][]graphiti.Row)
	var order []string
	numbers := make(map[key]int64)
	// Read the last one again: a new turn may have reused its number.
	err = x.o.Outbox.Since(ctx, max(0, last-1), page, func(e ledger.Entry) error {
		group := e.Group
		n++
		last = e.Seq
		for _, m := range x.o.Say(&e.Turn, e.Scope) {
			if m.Role == graphiti.RoleAssistant {
				continue
			}
			if byGroup[group] == nil {
				order = append(order, group)
			}
			byGroup[group] = append(byGroup[group], m)
			numbers[key{group, m.Name}] = e.Seq
		}
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("read the outbox: %w", err)
	}
	for _, group := range order {
		if err := x.take(ctx, group, byGroup[group], numbers); err != nil {
			return n, err
		}
	}
	x.last = last
	return n, nil
}

// take adds messages of a group to the index. The caller must hold writing.
func (x *Index) take(ctx context.Context, group string, list []graphiti.Row, numbers map[key]int64) error {
	x.mu.Lock()
	blocked := slices.Contains(x.blocked, group)
	x.mu.Unlock()
	if blocked {
		return nil
	}
	if err := x.store.Write(ctx, group, list); err != nil {
		return fmt.Errorf("store recent messages: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stale[group] += 0
	for i := range list {
		k := key{group, list[i].Name}
		m := &recent{number: numbers[k]}
		if before := x.kept[k]; before != nil {
			m.id = before.id
		}
		x.kept[k] = m
	}
	return nil
}

// sweep drops expired messages, and the oldest ones beyond most.
func (x *Index) sweep(ctx context.Context, now time.Time) error {
	err := x.see(ctx, now)
	x.mu.Lock()
	for k, m := range x.kept {
		if !m.left.IsZero() && now.Sub(m.left) >= x.o.For() {
			x.dropLocked(k)
		}
	}
	if over := len(x.kept) - most; over > 0 {
		oldest := make([]key, 0, len(x.kept))
		for k := range x.kept {
			oldest = append(oldest, k)
		}
		slices.SortFunc(oldest, func(a, b key) int { return int(x.kept[a].number - x.kept[b].number) })
		for _, k := range oldest[:over] {
			x.dropLocked(k)
		}
	}
	x.mu.Unlock()
	x.purge(ctx)
	return err
}

func (x *Index) dropLocked(k key) {
	delete(x.kept, k)
	x.stale[k.group]++
}

// see records which turns have left the outbox.
func (x *Index) see(ctx context.Context, now time.Time) error {
	var numbers []int64
	x.mu.Lock()
	for _, m := range x.kept {
		if m.left.IsZero() {
			numbers = append(numbers, m.number)
		}
	}
	x.mu.Unlock()
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	gone := make(map[int64]bool)
	for some := range slices.Chunk(numbers, page) {
		left, err := x.o.Outbox.Left(ctx, some)
		if err != nil {
			return fmt.Errorf("read the outbox: %w", err)
		}
		for _, n := range left {
			gone[n] = true
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.kept {
		if m.left.IsZero() && gone[m.number] {
			m.left = now
		}
	}
	return nil
}

// purge deletes dropped messages from the store, in groups with many of them.
func (x *Index) purge(ctx context.Context) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	left := make(map[string]int)
	for k := range x.kept {
		left[k.group]++
	}
	var groups []string
	for g, n := range x.stale {
		if n > 0 && left[g] == 0 || n >= max(purgeFrom, left[g]) {
			groups = append(groups, g)
		}
	}
	x.mu.Unlock()
	for _, g := range groups {
		if left[g] == 0 {
			x.empty(g)
			continue
		}
		_, err := x.store.ForgetEpisodes(ctx, g, func(e *graphiti.Row) bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.kept[key{g, e.Name}] == nil
		})
		if err == nil {
			x.mu.Lock()
			x.stale[g] = 0
			x.mu.Unlock()
		}
	}
}
