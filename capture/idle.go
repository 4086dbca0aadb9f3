package capture

import (
	"container/list"
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// minOpen is the text, in bytes, from which an abandoned turn is worth
	// keeping.
	minOpen = 50

	// busyFor is how long the answer of one round may take.
	busyFor = 10 * time.Minute

	// maxOpen and maxOpenBytes bound the turns whose end is waited for. More,
	// and the oldest is kept at once.
	maxOpen      = 10000
	maxOpenBytes = 32 << 20
)

// Idle keeps turns that never end: a tool loop that its client abandoned. It
// is safe for concurrent use.
type Idle struct {
	after time.Duration
	keep  func(context.Context, Turn) error
	log   *slog.Logger
	stop  chan struct{}
	ended chan struct{}

	mu    sync.Mutex // guards what follows
	turns map[string]*list.Element
	order *list.List // of *openTurn, by when they were last heard of
	bytes int
}

type openTurn struct {
	turn Turn
	due  time.Time
}

// NewIdle keeps with keep the turns of which nothing is heard for a while.
func NewIdle(after time.Duration, keep func(context.Context, Turn) error, log *slog.Logger) *Idle {
	d := &Idle{
		after: after, keep: keep, log: log,
		stop: make(chan struct{}), ended: make(chan struct{}),
		turns: make(map[string]*list.Element), order: list.New(),
	}
	// Ends when Close closes stop.
	go d.run()
	return d
}

// Hold says that a round of a turn has ended and another is expected. What was
// answered in it is added to what was answered before.
func (d *Idle) Hold(t Turn) {
	d.mu.Lock()
	e := d.turns[t.ID]
	if e == nil {
		t.Open = true
		e = d.order.PushBack(&openTurn{turn: t})
		d.turns[t.ID] = e
		d.bytes += len(t.User) + len(t.Assistant)
	} else {
		held := opened(e)
		if held.turn.Assistant != "" && t.Assistant != "" {
			held.turn.Assistant += "\n\n"
		}
		held.turn.Assistant += t.Assistant
		held.turn.Answered = t.Answered
		d.bytes += len(t.Assistant)
	}
	d.heard(e, d.after)
	d.mu.Unlock()
}

// Busy says that another round of a turn has begun: its answer may take a
// while.
func (d *Idle) Busy(turn string) { d.touch(turn, busyFor) }

// Free says that a round has ended without an answer.
func (d *Idle) Free(turn string) { d.touch(turn, d.after) }

func (d *Idle) touch(turn string, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.turns[turn]; e != nil {
		d.heard(e, wait)
	}
}

// End says that a turn has ended and is kept by others.
func (d *Idle) End(turn string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.turns[turn]; e != nil {
		d.take(e)
	}
}

func (d *Idle) heard(e *list.Element, wait time.Duration) {
	opened(e).due = time.Now().Add(wait)
	d.order.MoveToBack(e)
}

func (d *Idle) take(e *list.Element) Turn {
	t := opened(e).turn
	d.order.Remove(e)
	delete(d.turns, t.ID)
	d.bytes -= len(t.User) + len(t.Assistant)
	return t
}

func opened(e *list.Element) *openTurn { return e.Value.(*openTurn) } //nolint:forcetypeassert // the list's only type

// due takes out the turns whose time has come, and those that are too many.
func (d *Idle) due(now time.Time, all bool) (turns []Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := d.order.Front(); e != nil; {
		next := e.Next()
		if all || !opened(e).due.After(now) || d.order.Len() > maxOpen || d.bytes > maxOpenBytes {
			turns = append(turns, d.take(e))
		}
		e = next
	}
	return turns
}

func (d *Idle) run() {
	defer close(d.ended)
	tick := time.NewTicker(min(max(d.after/8, time.Millisecond), 15*time.Second))
	defer tick.Stop()
	for stopping := false; !stopping; {
		select {
		case <-tick.C:
		case <-d.stop:
			stopping = true
		}
		for _, t := range d.due(time.Now(), stopping) {
			if len(t.User)+len(t.Assistant) < minOpen {
				continue
			}
			if err := d.keep(context.Background(), t); err != nil {
				d.log.Warn("an abandoned turn cannot be kept", "error", err)
			}
		}
	}
}

// Close keeps what is open as it is.
func (d *Idle) Close() {
	close(d.stop)
	<-d.ended
}
