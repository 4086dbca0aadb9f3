package capture

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// minText is the text, in bytes, from which an abandoned turn is worth
	// keeping.
	minText = 50

	// busyFor is how long the answer of one round may take.
	busyFor = 10 * time.Minute

	// roundsFor is how long it is remembered which turn a reference is to: a
	// person may be asked before a tool is used.
	roundsFor = 2 * time.Hour

	// maxTurns and maxBytes bound what is remembered. More, and the turn that
	// was longest silent is kept at once, and forgotten here.
	maxTurns = 10000
	maxBytes = 64 << 20

	referenceBytes = 100 // about what a reference takes
)

// PendingTurns holds the turns whose end is awaited. R is what a request needs to go on
// with a turn. It is safe for concurrent use.
type PendingTurns[R any] struct {
	after time.Duration
	keep  func(context.Context, ledger.Turn) error
	log   *slog.Logger
	full  chan struct{} // something was evicted; more than one says nothing new
	stop  chan struct{}
	ended chan struct{}

	mu      sync.Mutex // guards what follows
	turns   *simplelru.LRU[string, *openTurn[R]]
	refer   map[dialect.Fingerprint]*openTurn[R]
	bytes   int
	evicted []ledger.Turn // to be kept as they are
}

// openTurn is what is known of one.
type openTurn[R any] struct {
	turn       ledger.Turn // without its texts, unless it is open
	open       bool        // to be kept when it does not go on
	due        time.Time   // when that is
	active     time.Time
	round      R
	roundBytes int
	references []dialect.Fingerprint
}

func (t *openTurn[R]) size() int {
	return len(t.turn.User) + len(t.turn.Assistant) + t.roundBytes + referenceBytes*len(t.references)
}

// pendingKey tells turns apart. Two agents may have the same one in one session, each
// for groups of its own.
func pendingKey(t *ledger.Turn) string {
	var b strings.Builder
	b.WriteString(t.ID)
	for i := range t.Targets {
		b.WriteString("\x00" + t.Targets[i].Group)
	}
	return b.String()
}

// NewPending returns an empty store. If a turn has not changed for the time after, keep
// is called with it.
func NewPending[R any](after time.Duration, keep func(context.Context, ledger.Turn) error, log *slog.Logger) *PendingTurns[R] {
	d := &PendingTurns[R]{
		after: after, keep: keep, log: log,
		full: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
		refer: make(map[dialect.Fingerprint]*openTurn[R]),
	}
	d.turns, _ = simplelru.NewLRU(maxTurns, d.onEvict) // fails for no size only
	// Ends when Close closes stop.
	go d.run()
	return d
}

// onEvict forgets a turn. What was open of it is kept.
func (d *PendingTurns[R]) onEvict(_ string, t *openTurn[R]) {
	d.bytes -= t.size()
	for _, f := range t.references {
		if d.refer[f] == t { // else another turn has it now
			delete(d.refer, f)
		}
	}
	if t.open {
		d.evicted = append(d.evicted, t.turn)
	}
}

// change applies f to a turn, restarts its time, and makes room.
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

// Hold notes that a round of a turn has ended and another is expected, and adds the
// answer to those of the earlier rounds. If too much is held, it waits until the oldest
// turns are kept.
func (d *PendingTurns[R]) Hold(t ledger.Turn) {
	d.mu.Lock()
	d.change(&t, func(e *openTurn[R]) {
		if !e.open {
			t.Said = e.turn.Said // its first round's, also when that was kept
			e.turn, e.open = t, true
			e.turn.Open = true
		} else {
			if e.turn.Assistant != "" && t.Assistant != "" {
				e.turn.Assistant += "\n\n"
			}
			e.turn.Assistant += t.Assistant
			e.turn.Answered = t.Answered
		}
		e.due = e.active.Add(d.after)
	})
	evicted := d.takeEvicted()
	d.mu.Unlock()
	d.keepAll(evicted)
}

// Refer notes that requests with these references go on with a turn, and what they need
// for it, of so many bytes. It does not wait.
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

// Find returns what a request with this reference needs to go on with its turn.
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

// Referable reports whether there is a reference that Find might know.
func (d *PendingTurns[R]) Referable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.refer) > 0
}

// Busy notes that another round of a turn has begun, whose answer may take a while.
func (d *PendingTurns[R]) Busy(t *ledger.Turn) { d.touch(t, busyFor) }

// Free notes that a round has ended without an answer.
func (d *PendingTurns[R]) Free(t *ledger.Turn) { d.touch(t, d.after) }

func (d *PendingTurns[R]) touch(t *ledger.Turn, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Get(pendingKey(t)); ok {
		e.active = time.Now()
		e.due = e.active.Add(wait)
	}
}

// Began returns when the message of a turn with tool rounds was said, which a request of
// its last round does not show; zero for an unknown turn.
func (d *PendingTurns[R]) Began(t *ledger.Turn) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Peek(pendingKey(t)); ok {
		return e.turn.Said
	}
	return time.Time{}
}

// End notes that a turn has ended, and that somebody else has kept it.
func (d *PendingTurns[R]) End(t *ledger.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Peek(pendingKey(t)); ok {
		d.settle(e)
	}
}

// settle notes that nothing of a turn is left to keep. Its beginning stays known, and
// which requests go on with it.
func (d *PendingTurns[R]) settle(e *openTurn[R]) {
	d.bytes -= len(e.turn.User) + len(e.turn.Assistant)
	e.open, e.turn.User, e.turn.Assistant = false, "", ""
}

// takeDue takes what is to be kept, or all that is open, and forgets the turns
// that no request goes on with any more.
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
		if len(t.User)+len(t.Assistant) < minText {
			continue
		}
		if err := d.keep(context.Background(), t); err != nil {
			d.log.Warn("an abandoned turn cannot be kept", "error", err)
		}
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

// Close keeps the open turns as they are, and ends.
func (d *PendingTurns[R]) Close() {
	close(d.stop)
	<-d.ended
}
