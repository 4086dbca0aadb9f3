package capture

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// minText is the minimum size, in bytes, of an abandoned turn worth storing if the
	// person's message states nothing.
	minText = 50

	// busyFor is the time limit for the answer of one round.
	busyFor = 10 * time.Minute

	// roundsFor is how long a reference stays valid: a client may ask the person before it
	// uses a tool.
	roundsFor = 2 * time.Hour

	// maxTurns and maxBytes limit the store. Beyond them, the least recently active turn is
	// recorded at once and evicted.
	maxTurns = 10000
	maxBytes = 64 << 20

	referenceBytes = 100 // approximate size of a reference
)

// PendingTurns holds unfinished turns. R is the state that a request needs to continue a
// turn. It is safe for concurrent use.
type PendingTurns[R any] struct {
	fates

	after time.Duration
	keep  func(context.Context, ledger.Turn) error
	log   *slog.Logger
	full  chan struct{} // signals an eviction; capacity 1
	stop  chan struct{}
	ended chan struct{}

	mu      sync.Mutex // protects the fields below
	turns   *simplelru.LRU[string, *openTurn[R]]
	refer   map[dialect.Fingerprint]*openTurn[R]
	bytes   int
	evicted []ledger.Turn // open turns to record
}

// openTurn is an unfinished turn.
type openTurn[R any] struct {
	turn       ledger.Turn // without texts unless open is set
	open       bool        // record the turn if it does not continue
	due        time.Time   // time to record an open turn
	active     time.Time
	round      R
	roundBytes int
	references []dialect.Fingerprint
}

func (t *openTurn[R]) size() int {
	return len(t.turn.User) + len(t.turn.Assistant) + t.roundBytes + referenceBytes*len(t.references)
}

// pendingKey identifies a turn with its groups. Two agents may have the same turn in one
// session, each with its own groups.
func pendingKey(t *ledger.Turn) string {
	var b strings.Builder
	b.WriteString(t.ID)
	for i := range t.Targets {
		b.WriteString("\x00" + t.Targets[i].Group)
	}
	return b.String()
}

// NewPending returns an empty store. It calls keep for each open turn without activity for
// the duration after.
func NewPending[R any](after time.Duration, keep func(context.Context, ledger.Turn) error, log *slog.Logger) *PendingTurns[R] {
	d := &PendingTurns[R]{
		fates: fates{was: graphiti.FateOpen},
		after: after, keep: keep, log: log,
		full: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
		refer: make(map[dialect.Fingerprint]*openTurn[R]),
	}
	d.turns, _ = simplelru.NewLRU(maxTurns, d.onEvict) // fails only for a size of 0
	// Ends when Close closes stop.
	go d.run()
	return d
}

// onEvict removes a turn's references and saves an open turn for recording.
func (d *PendingTurns[R]) onEvict(_ string, t *openTurn[R]) {
	d.bytes -= t.size()
	for _, f := range t.references {
		if d.refer[f] == t { // else another turn has taken it over
			delete(d.refer, f)
		}
	}
	if t.open {
		d.evicted = append(d.evicted, t.turn)
	}
}

// change applies f to a turn, marks it as active, and evicts turns over the limit.
func (d *PendingTurns[R]) change(t *ledger.Turn, f func(*openTurn[R])) {
	key := pendingKey(t)
	e, ok := d.turns.Get(key)
	if !ok {
		e = &openTurn[R]{turn: *t}
		e.turn.User, e.turn.Assistant = "", ""
		d.turns.Add(key, e)
	}
	d.bytes -= e.size()
	e.active = time.Now()
	f(e)
	d.bytes += e.size()
	for d.bytes > maxBytes && d.turns.Len() > 0 {
		d.turns.RemoveOldest()
	}
}

// Hold records the end of a round that another will follow, and appends its answer to the
// earlier ones. If the store is full, Hold records the evicted turns before it returns.
func (d *PendingTurns[R]) Hold(t ledger.Turn) {
	d.mu.Lock()
	d.change(&t, func(e *openTurn[R]) {
		if !e.open {
			t.Said = e.turn.Said // time of the first round, even if that was recorded
			e.turn, e.open = t, true
			e.turn.Open = true
		} else {
			if e.turn.Assistant != "" && t.Assistant != "" {
				e.turn.Assistant += "\n\n"
			}
			e.turn.Assistant += t.Assistant
			e.turn.Answered = t.Answered
			e.turn.AddWork(t.Work)
		}
		e.due = e.active.Add(d.after)
	})
	evicted := d.takeEvicted()
	d.mu.Unlock()
	d.keepAll(evicted)
}

// Refer associates references with a turn, and stores the state, of that size in bytes, for
// requests that continue it. It does not block.
func (d *PendingTurns[R]) Refer(t *ledger.Turn, round R, bytes int, references ...dialect.Fingerprint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.change(t, func(e *openTurn[R]) {
		e.round, e.roundBytes = round, bytes
		for _, f := range references {
			if d.refer[f] != e {
				d.refer[f] = e
				e.references = append(e.references, f)
			}
		}
	})
	if len(d.evicted) > 0 {
		select {
		case d.full <- struct{}{}:
		default:
		}
	}
}

// Find returns the state for a request with this reference.
func (d *PendingTurns[R]) Find(reference dialect.Fingerprint) (round R, ok bool) {
	if d == nil {
		return round, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.refer[reference]
	if e == nil || time.Since(e.active) > roundsFor {
		return round, false
	}
	return e.round, true
}

// Referable reports whether the store has any references.
func (d *PendingTurns[R]) Referable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.refer) > 0
}

// Busy extends a turn's deadline, because another round has begun.
func (d *PendingTurns[R]) Busy(t *ledger.Turn) { d.touch(t, busyFor) }

// Free resets a turn's deadline after a round without an answer.
func (d *PendingTurns[R]) Free(t *ledger.Turn) { d.touch(t, d.after) }

func (d *PendingTurns[R]) touch(t *ledger.Turn, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Get(pendingKey(t)); ok {
		e.active = time.Now()
		e.due = e.active.Add(wait)
	}
}

// Began returns the time of the first request of a turn with tool rounds, and its work so far,
// which its last request does not show. It returns zero for an unknown turn.
func (d *PendingTurns[R]) Began(t *ledger.Turn) (at time.Time, work []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Peek(pendingKey(t)); ok {
		return e.turn.Said, e.turn.Work
	}
	return at, nil
}

// End marks a turn as finished and recorded by the caller.
func (d *PendingTurns[R]) End(t *ledger.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Peek(pendingKey(t)); ok {
		d.settle(e)
	}
}

// settle clears a turn's texts. Its start time and references stay.
func (d *PendingTurns[R]) settle(e *openTurn[R]) {
	d.bytes -= len(e.turn.User) + len(e.turn.Assistant)
	e.open, e.turn.User, e.turn.Assistant, e.turn.Work = false, "", "", nil
}

// takeDue returns the turns to record, or all open ones, and removes turns with expired
// references.
func (d *PendingTurns[R]) takeDue(all bool) (due []ledger.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, e := range d.turns.Values() {
		if e.open && (all || !e.due.After(now)) {
			due = append(due, e.turn)
			d.settle(e)
		}
	}
	for {
		key, e, ok := d.turns.GetOldest()
		if !ok || e.open || now.Sub(e.active) <= roundsFor {
			break
		}
		d.turns.Remove(key)
	}
	return append(d.takeEvicted(), due...)
}

func (d *PendingTurns[R]) takeEvicted() []ledger.Turn {
	list := d.evicted
	d.evicted = nil
	return list
}

func (d *PendingTurns[R]) keepAll(turns []ledger.Turn) {
	for _, t := range turns {
		if len(t.User)+len(t.Assistant) < minText && !words.States(t.User) {
			d.settled(&t, graphiti.FateLost, graphiti.LostBrief)
			continue
		}
		if err := d.keep(context.Background(), t); err != nil {
			d.log.Warn("store abandoned turn failed", "error", err)
			d.settled(&t, graphiti.FateLost, graphiti.LostStore)
			continue
		}
		d.settled(&t, graphiti.FateStored, "")
	}
}

func (d *PendingTurns[R]) run() {
	defer close(d.ended)
	tick := time.NewTicker(min(max(d.after/8, time.Millisecond), 15*time.Second))
	defer tick.Stop()
	for stopping := false; !stopping; {
		select {
		case <-tick.C:
		case <-d.full:
		case <-d.stop:
			stopping = true
		}
		d.keepAll(d.takeDue(stopping))
	}
}

// Close records all open turns and stops the background loop.
func (d *PendingTurns[R]) Close() {
	close(d.stop)
	<-d.ended
}
