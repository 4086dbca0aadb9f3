package embedded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// readGroup reads the messages of a group after a place, in the order of their places, and
// returns the group's number; 0 if there is no such group.
type readGroup func(ctx context.Context, group string, behind int64, each func(indexedMessage)) (number int64, err error)

// errClosed is the error after Close.
var errClosed = errors.New("the index is closed")

// readAtOnce is the number of messages to add at a time while an index is built.
const readAtOnce = 256

// maxAbsent bounds indexes.absent, at some 100 bytes each.
const maxAbsent = 8192

// warmPart is the part of the limit that Warm fills: some 100,000 messages by default.
const warmPart = 0.5

// indexes holds the indexes of the most recently searched groups. It is safe for concurrent
// use.
type indexes struct {
	read  readGroup
	limit int

	ctx     context.Context // of the builds; ends with Close
	stop    context.CancelFunc
	builds  sync.WaitGroup
	builder chan struct{} // holds a token during a build: builds must not take all processors from requests

	mu    sync.Mutex // guards the fields below
	lru   *simplelru.LRU[string, *entry]
	bytes int

	// absent holds groups without messages, such as those of most conversations. They need no
	// index.
	absent map[string]struct{}
	none   *entry // their index
}

// entry is the index of one group, complete or in progress.
type entry struct {
	group *groupIndex
	built chan struct{} // closed when group is whole, or err is set
	err   error

	// Guarded by indexes.mu.
	whole  bool
	behind bool               // messages were committed since the file was last read
	anew   context.CancelFunc // ends the current read, after which the build starts again with an empty group
	bytes  int
}

// newIndexes returns indexes that take at most about limit bytes.
func newIndexes(read readGroup, limit int) *indexes {
	g := &indexes{read: read, limit: limit, builder: make(chan struct{}, 1), absent: make(map[string]struct{}), none: &entry{group: newGroup(), built: make(chan struct{})}}
	close(g.none.built)
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ string, e *entry) { g.bytes -= e.bytes }) // fails only for a size of 0
	return g
}

// Close ends the builds.
func (g *indexes) Close() {
	g.mu.Lock()
	g.stop()
	g.mu.Unlock()
	g.builds.Wait()
}

// Get returns the index of a group, and waits until it is built or ctx ends. The build
// continues after the end of ctx.
func (g *indexes) Get(ctx context.Context, name string) (*groupIndex, error) {
	e := g.entry(name)
	select {
	case <-e.built:
		return e.group, e.err
	case <-ctx.Done():
		return nil, fmt.Errorf("index a group: %w", ctx.Err())
	}
}

// entry returns the index of a group, complete or in progress.
func (g *indexes) entry(name string) *entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, absent := g.absent[name]; absent {
		return g.none
	}
	if e, ok := g.lru.Get(name); ok {
		return e
	}
	return g.startLocked(name)
}

// has reports whether a group has an index, complete or in progress.
func (g *indexes) has(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.lru.Peek(name)
	return ok
}

// Warm calls first in the background, and then builds the indexes of these groups, in
// order, as far as warmPart allows.
func (g *indexes) Warm(names []string, first func(context.Context)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() == nil {
		// Ends with the last of them, or with Close.
		g.builds.Go(func() {
			first(g.ctx)
			g.warm(names)
		})
	}
}

func (g *indexes) warm(names []string) {
	for _, name := range names {
		_, err := g.Get(g.ctx, name)
		g.mu.Lock()
		full := float64(g.bytes) > warmPart*float64(g.limit)
		g.mu.Unlock()
		if err != nil || full {
			return
		}
	}
}

// Committed adds messages that were committed to a group. Calls for one group come in the
// order of the commits.
func (g *indexes) Committed(name string, number int64, messages []indexedMessage) {
	defer func() {
		if recover() != nil { // a bug here must not end the writer
			g.Deleted(name)
		}
	}()
	g.mu.Lock()
	delete(g.absent, name)
	e, ok := g.lru.Peek(name)
	if ok && !e.whole {
		e.behind = true
	}
	ok = ok && e.whole
	g.mu.Unlock()
	if !ok {
		return
	}
	e.group.add(number, messages)
	g.mu.Lock()
	defer g.mu.Unlock()
	if now, ok := g.lru.Peek(name); ok && now == e {
		g.weighLocked(e)
	}
}

// Deleted drops the index of a group after some of its messages were deleted, and builds
// it again if there was one. A build in progress starts again: many deletions need one build.
func (g *indexes) Deleted(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.absent, name)
	switch e, ok := g.lru.Peek(name); {
	case ok && !e.whole:
		e.anew()
	case ok:
		g.lru.Remove(name)
		g.startLocked(name)
	}
}

// startLocked begins to build the index of a group.
func (g *indexes) startLocked(name string) *entry {
	e := &entry{group: newGroup(), built: make(chan struct{})}
	if g.ctx.Err() != nil {
		e.err = errClosed
		close(e.built)
		return e
	}
	ctx, anew := context.WithCancel(g.ctx)
	e.anew = anew
	g.lru.Add(name, e)
	// Ends when the group is read, or with Close.
	g.builds.Go(func() { g.build(ctx, name, e) })
	return e
}

// build reads a group, and repeats this while new messages are committed.
func (g *indexes) build(ctx context.Context, name string, e *entry) {
	select {
	case g.builder <- struct{}{}:
		defer func() { <-g.builder }()
	case <-g.ctx.Done():
	}
	for {
		err := g.readInto(ctx, name, e.group)
		g.mu.Lock()
		if ctx.Err() != nil && g.ctx.Err() == nil {
			ctx, e.anew = context.WithCancel(g.ctx)
			e.group = newGroup()
			g.mu.Unlock()
			continue
		}
		if err == nil && e.behind {
			e.behind = false
			g.mu.Unlock()
			continue
		}
		if now, ok := g.lru.Peek(name); ok && now == e {
			switch {
			case err != nil:
				g.lru.Remove(name)
			case e.group.groupNumber() == 0:
				g.lru.Remove(name)
				g.missLocked(name)
			default:
				g.weighLocked(e)
			}
		}
		e.whole, e.err = err == nil, err
		e.anew()
		close(e.built)
		g.mu.Unlock()
		return
	}
}

// missLocked notes that a group has no messages.
func (g *indexes) missLocked(name string) {
	if len(g.absent) >= maxAbsent {
		clear(g.absent)
	}
	g.absent[name] = struct{}{}
}

// readInto adds the messages that an index does not have yet. A panic does not end the
// process.
func (g *indexes) readInto(ctx context.Context, name string, group *groupIndex) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in the index: %v", r)
		}
	}()
	batch := make([]indexedMessage, 0, readAtOnce)
	number, err := g.read(ctx, name, group.newest, func(m indexedMessage) {
		if batch = append(batch, m); len(batch) == cap(batch) {
			group.add(0, batch)
			batch = batch[:0]
			if group.bytes > g.limit {
				group.halve()
			}
		}
	})
	if err != nil {
		return fmt.Errorf("index a group: %w", err)
	}
	group.add(number, batch)
	group.compact()
	return nil
}

// weighLocked updates the size of a group, and drops others if needed.
func (g *indexes) weighLocked(e *entry) {
	weigh := func() {
		now := e.group.weight()
		g.bytes += now - e.bytes
		e.bytes = now
	}
	for weigh(); g.bytes > g.limit && g.lru.Len() > 1; {
		g.lru.RemoveOldest()
	}
	if g.bytes > g.limit && g.bytes == e.bytes {
		e.group.halve()
		weigh()
	}
}
