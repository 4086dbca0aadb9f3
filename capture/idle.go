package capture

import (
	"container/list"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
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
	keep  func(context.Context, ledger.Turn) error
	log   *slog.Logger
	stop  chan struct{}
	ended chan struct{}

	began *lru.Cache[string, time.Time] // when those began that were kept without their end

	mu    sync.Mutex // guards what follows
	turns map[string]*list.Element
	order *list.List // of *openTurn, by when they were last heard of
	bytes int
}

type openTurn struct {
	key  string
	turn ledger.Turn
	due  time.Time
}

// idleKey tells turns apart. Two agents may have the same one in one session,
// each for groups of its own.
func idleKey(t *ledger.Turn) string {
	var b strings.Builder
	b.WriteString(t.ID)
	for i := range t.Targets {
		b.WriteString("\x00" + t.Targets[i].Group)
	}
	return b.String()
}

// NewIdle keeps with keep the turns of which nothing is heard for a while.
func NewIdle(after time.Duration, keep func(context.Context, ledger.Turn) error, log *slog.Logger) *Idle {
	began, err := lru.New[string, time.Time](maxOpen)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	d := &Idle{
		began: began, after: after, keep: keep, log: log,
		stop: make(chan struct{}), ended: make(chan struct{}),
		turns: make(map[string]*list.Element), order: list.New(),
	}
	// Ends when Close closes stop.
	go d.run()
	return d
}

// Hold says that a round of a turn has ended and another is expected. What was
// answered in it is added to what was answered before. Where too many are held
// it waits until the oldest are kept.
func (d *Idle) Hold(t ledger.Turn) {
	key := idleKey(&t)
	d.mu.Lock()
	e := d.turns[key]
	if e == nil {
		if began := d.beganLocked(key); !began.IsZero() {
			t.Said = began
		}
		t.Open = true
		e = d.order.PushBack(&openTurn{key: key, turn: t})
		d.turns[key] = e
		d.bytes += len(t.User) + len(t.Assistant)
	} else {
		held := opened(e)
		if held.turn.Assistant != "" && t.Assistant != "" {
			held.turn.Assistant += "\n\n"
			d.bytes += len("\n\n")
		}
		held.turn.Assistant += t.Assistant
		held.turn.Answered = t.Answered
		d.bytes += len(t.Assistant)
	}
	d.heard(e, d.after)
	var over []ledger.Turn
	for d.order.Len() > maxOpen || d.bytes > maxOpenBytes {
		over = append(over, d.give(d.order.Front()))
	}
	d.mu.Unlock()
	d.keepAll(over)
}

// Busy says that another round of a turn has begun: its answer may take a
// while.
func (d *Idle) Busy(t *ledger.Turn) { d.touch(t, busyFor) }

// Free says that a round has ended without an answer.
func (d *Idle) Free(t *ledger.Turn) { d.touch(t, d.after) }

func (d *Idle) touch(t *ledger.Turn, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.turns[idleKey(t)]; e != nil {
		d.heard(e, wait)
	}
}

// Began is when the message of a turn was said that went on in rounds, which
// the last of them does not know; zero when nothing was heard of it before.
func (d *Idle) Began(t *ledger.Turn) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.beganLocked(idleKey(t))
}

func (d *Idle) beganLocked(key string) time.Time {
	if e := d.turns[key]; e != nil {
		return opened(e).turn.Said
	}
	at, _ := d.began.Get(key)
	return at
}

// End says that a turn has ended and was kept by others.
func (d *Idle) End(t *ledger.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.turns[idleKey(t)]; e != nil {
		d.take(e)
	}
}

func (d *Idle) heard(e *list.Element, wait time.Duration) {
	opened(e).due = time.Now().Add(wait)
	d.order.MoveToBack(e)
}

func (d *Idle) take(e *list.Element) ledger.Turn {
	o := opened(e)
	d.order.Remove(e)
	delete(d.turns, o.key)
	d.bytes -= len(o.turn.User) + len(o.turn.Assistant)
	return o.turn
}

// give takes a turn out that is kept without its end.
func (d *Idle) give(e *list.Element) ledger.Turn {
	d.began.Add(opened(e).key, opened(e).turn.Said)
	return d.take(e)
}

func opened(e *list.Element) *openTurn { return e.Value.(*openTurn) } //nolint:forcetypeassert // the list's only type

// due takes out the turns whose time has come.
func (d *Idle) due(now time.Time, all bool) (turns []ledger.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := d.order.Front(); e != nil; {
		next := e.Next()
		if all || !opened(e).due.After(now) {
			turns = append(turns, d.give(e))
		}
		e = next
	}
	return turns
}

func (d *Idle) keepAll(turns []ledger.Turn) {
	for _, t := range turns {
		if len(t.User)+len(t.Assistant) < minOpen {
			continue
		}
		if err := d.keep(context.Background(), t); err != nil {
			d.log.Warn("an abandoned turn cannot be kept", "error", err)
		}
	}
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
		d.keepAll(d.due(time.Now(), stopping))
	}
}

// Close keeps what is open as it is.
func (d *Idle) Close() {
	close(d.stop)
	<-d.ended
}
