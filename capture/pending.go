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
)

const (
	// minText is the minimum size, in bytes, of an abandoned turn worth storing if the
	// person's message states nothing.
	minText = 50

	// busyFor is the time limit for the answer of one round.
	busyFor = 10 * time.Minute

	// startFor is how long the start of a turn is known: a client may ask the person before it
	// uses a tool.
	startFor = 2 * time.Hour

	// maxTurns and maxBytes limit the store. Beyond them, the least recently active turn is
	// recorded at once and evicted.
	maxTurns = 10000
	maxBytes = 64 << 20
)

// PendingTurns holds unfinished turns. It is safe for concurrent use.
type PendingTurns struct {
	fates

	after time.Duration
	keep  func(context.Context, ledger.Turn) error
	log   *slog.Logger
	stop  chan struct{}
	ended chan struct{}

	mu      sync.Mutex // protects the fields below
	turns   *simplelru.LRU[string, *openTurn]
	bytes   int
	evicted []ledger.Turn // open turns to record
}

// openTurn is an unfinished turn.
type openTurn struct {
	turn   ledger.Turn // without texts unless open is set
	open   bool        // record the turn if it does not continue
	due    time.Time   // time to record an open turn
	active time.Time
}

func (t *openTurn) size() int { return len(t.turn.User) + len(t.turn.Assistant) }

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
func NewPending(after time.Duration, keep func(context.Context, ledger.Turn) error, log *slog.Logger) *PendingTurns {
	d := &PendingTurns{
		fates: fates{was: graphiti.FateOpen},
		after: after, keep: keep, log: log,
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	d.turns, _ = simplelru.NewLRU(maxTurns, d.onEvict) // fails only for a size of 0
	// Ends when Close closes stop.
	go d.run()
	return d
}

// onEvict saves an open turn for recording.
func (d *PendingTurns) onEvict(_ string, t *openTurn) {
	d.bytes -= t.size()
	if t.open {
		d.evicted = append(d.evicted, t.turn)
	}
}

// Hold records the end of a round that another will follow, and appends its answer to the
// earlier ones. If the store is full, Hold records the evicted turns before it returns.
func (d *PendingTurns) Hold(t ledger.Turn) {
	d.mu.Lock()
	key := pendingKey(&t)
	e, ok := d.turns.Get(key)
	if !ok {
		e = &openTurn{turn: ledger.Turn{Said: t.Said}}
		d.turns.Add(key, e)
	}
	d.bytes -= e.size()
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
	e.active = time.Now()
	e.due = e.active.Add(d.after)
	for d.bytes += e.size(); d.bytes > maxBytes && d.turns.Len() > 0; {
		d.turns.RemoveOldest()
	}
	evicted := d.takeEvicted()
	d.mu.Unlock()
	d.keepAll(evicted)
}

// Busy extends a turn's deadline, because another round has begun.
func (d *PendingTurns) Busy(t *ledger.Turn) { d.touch(t, busyFor) }

// Free resets a turn's deadline after a round without an answer.
func (d *PendingTurns) Free(t *ledger.Turn) { d.touch(t, d.after) }

func (d *PendingTurns) touch(t *ledger.Turn, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Get(pendingKey(t)); ok {
		e.active = time.Now()
		e.due = e.active.Add(wait)
	}
}

// Began returns the time of the first request of a turn with tool rounds, and its work so far,
// which its last request does not show. It returns zero for an unknown turn.
func (d *PendingTurns) Began(t *ledger.Turn) (at time.Time, work []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Peek(pendingKey(t)); ok {
		return e.turn.Said, e.turn.Work
	}
	return at, nil
}

// End marks a turn as finished and recorded by the caller.
func (d *PendingTurns) End(t *ledger.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.turns.Peek(pendingKey(t)); ok {
		d.settle(e)
	}
}

// settle clears a turn's texts. Its start time stays.
func (d *PendingTurns) settle(e *openTurn) {
	d.bytes -= len(e.turn.User) + len(e.turn.Assistant)
	e.open, e.turn.User, e.turn.Assistant, e.turn.Work = false, "", "", nil
}

// takeDue returns the turns to record, or all open ones, and removes those with an expired start.
func (d *PendingTurns) takeDue(all bool) (due []ledger.Turn) {
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
		if !ok || e.open || now.Sub(e.active) <= startFor {
			break
		}
		d.turns.Remove(key)
	}
	return append(d.takeEvicted(), due...)
}

func (d *PendingTurns) takeEvicted() []ledger.Turn {
	list := d.evicted
	d.evicted = nil
	return list
}

func (d *PendingTurns) keepAll(turns []ledger.Turn) {
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

func (d *PendingTurns) run() {
	defer close(d.ended)
	tick := time.NewTicker(min(max(d.after/8, time.Millisecond), 15*time.Second))
	defer tick.Stop()
	for stopping := false; !stopping; {
		select {
		case <-tick.C:
		case <-d.stop:
			stopping = true
		}
		d.keepAll(d.takeDue(stopping))
	}
}

// Close records all open turns and stops the background loop.
func (d *PendingTurns) Close() {
	close(d.stop)
	<-d.ended
}
