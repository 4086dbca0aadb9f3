package deliver

import (
	"math"
	"slices"
	"time"
)

// machine decides what is done next for one worker of the memory. It does
// nothing itself and reads no clock: a Loop asks it for the next action,
// performs that, and reports what came of it.
//
//	              ┌──────── missing behind a proof: lost, sent again ────────┐
//	              ▼                                                          │
//	pending ──send──► in flight ──the group shows it──► delivered            │
//	   │                  │                                                  │
//	refused           silence, or an unclear answer ──► barrier ──visible────┘
//	   ▼                                                   │
//	 dead ◄── lost three times, the last time alone        └─ never: stalled
//
// A worker takes messages in the order in which they were accepted. So whatever
// shows up proves that everything sent before it has been worked off.
type machine struct {
	timing Timing
	sight  *sight
	holds  *holds

	// own is the only group of this machine where each group has a worker of
	// its own; empty: one worker serves all groups.
	own string

	groups map[string]*group // for which there is something to do
	queue  []*group          // those with pending turns; who was served goes to its end
	flying []*group          // those with turns in flight

	position    int64 // of the message that was sent last
	proven      int64 // what was sent before this position has been worked off
	lastCounted int64 // the proof behind which a turn's loss was counted last
	isolated    *group

	service time.Duration // what the worker takes for a turn
	sign    time.Time     // of the last sign of work, or of the first reason to expect one
	stalled time.Time     // since when there is no sign; zero: there is
	barrier barrier
}

// group is what there is to do for one group.
type group struct {
	name     string
	pending  bool // turns wait in the ledger
	fresh    bool // and not only backfilled ones
	queued   bool
	busy     bool           // a call is in progress
	owed     []func() error // writes to the ledger that failed, to be repeated before all else
	retryAt  time.Time
	failures int // in a row

	flights  []*flight // in the order in which they were sent
	lookAt   time.Time
	lookWait time.Duration
	ask      int       // episodes to ask for
	blind    bool      // the last look failed
	worked   time.Time // when something new was seen last

	isolate bool // the first pending turn goes alone
}

// kind is what an action does.
type kind uint8

const (
	nothing kind = iota
	send
	look
	settle // write to the ledger what could not be written before
	sendBarrier
	lookForBarrier
	removeBarrier
	probe // ask whether the memory is up again
)

// action is what is to be done. Its group is busy until done is called.
type action struct {
	kind   kind
	group  *group
	n      int       // turns to send, or episodes to ask for
	single bool      // of a turn that goes alone
	began  time.Time // when it was decided
}

// longest is the longest wait between two questions to a machine.
const longest = time.Minute

// never is a position that nothing reaches.
const never = math.MaxInt64

func newMachine(t Timing, s *sight, h *holds, own string, now time.Time) *machine {
	return &machine{
		timing: t, sight: s, holds: h, own: own,
		groups: make(map[string]*group), lastCounted: -1, sign: now, barrier: barrier{wait: t.FirstBarrier},
	}
}

// next says what is to be done now, or how long there will be nothing.
func (m *machine) next(now time.Time) (a action, wait time.Duration) {
	wait = longest
	m.settleDoubts(now, &wait)
	m.noticeStall(now, &wait)
	if g := m.nextOwing(now, &wait); g != nil {
		return m.begin(action{kind: settle, group: g, began: now}), 0
	}
	if g := m.nextLook(now, &wait); g != nil {
		return m.begin(action{kind: look, group: g, n: max(g.ask, 2*len(g.flights)+firstAsk), began: now}), 0
	}
	if a := m.nextBarrier(now, &wait); a.kind != nothing {
		m.barrier.busy = true
		return a, 0
	}
	if !m.stalled.IsZero() {
		return action{}, wait
	}
	return m.nextSend(now, &wait), wait
}

func (m *machine) begin(a action) action {
	a.group.busy = true
	return a
}

// done says that an action is over.
func (m *machine) done(a action) {
	switch a.kind {
	case send, look, settle:
		a.group.busy = false
		m.place(a.group)
	case sendBarrier, lookForBarrier, removeBarrier:
		m.barrier.busy = false
	case nothing, probe:
	}
}

// broke says that an action ended in the middle, by a mistake of ours: what it
// was about is tried again after a while.
func (m *machine) broke(a action, now time.Time) {
	switch a.kind {
	case send, look, settle:
		m.lookFailed(a.group, now)
		m.failed(a.group, true, now.Add(lastRetry))
	case sendBarrier, lookForBarrier:
		m.barrierSent(sentBarrier{}, false, now)
		m.barrierUnseen(now)
	case removeBarrier:
		m.removed(m.barrier.left[0], false, now)
	case nothing, probe:
	}
}

// idle reports whether there is nothing to do, now or later.
func (m *machine) idle() bool {
	return len(m.groups) == 0 && len(m.barrier.sent) == 0 && len(m.barrier.left) == 0 && m.stalled.IsZero() && !m.barrier.busy
}

// find returns what there is to do for a group.
func (m *machine) find(name string) *group {
	g := m.groups[name]
	if g == nil {
		g = &group{name: name}
		m.groups[name] = g
	}
	return g
}

// add says that turns wait in the ledger for a group.
func (m *machine) add(name string, fresh bool) {
	g := m.find(name)
	g.pending, g.fresh = true, g.fresh || fresh
	m.place(g)
}

// place puts a group at the end of the queue if it belongs there, and lets go
// of one for which there is nothing to do.
func (m *machine) place(g *group) {
	switch {
	case g.busy || m.groups[g.name] != g:
	case g.pending && !g.queued:
		g.queued = true
		m.queue = append(m.queue, g)
	case !g.pending && len(g.owed) == 0 && len(g.flights) == 0:
		delete(m.groups, g.name)
	}
	if m.isolated == g && !g.busy && len(g.flights) == 0 {
		m.isolated = nil
	}
}

// nextSend chooses the group whose pending turns are sent next: one with fresh
// turns, if there is one. A turn that goes alone waits until the window is
// empty, and all others wait for it.
func (m *machine) nextSend(now time.Time, wait *time.Duration) action {
	if m.isolated != nil && !m.isolated.blind {
		return action{}
	}
	open := m.open()
	best := -1
	for i, g := range m.queue {
		switch {
		case best >= 0 && (g.fresh == m.queue[best].fresh || !g.fresh) && !g.isolate:
		case !m.maySend(g, now, wait):
		case g.isolate && open > 0:
			return action{}
		case g.isolate:
			m.isolated = g
			return m.take(i, action{kind: send, n: 1, single: true, began: now})
		default:
			best = i
		}
	}
	if best < 0 {
		return action{}
	}
	room := m.timing.Window - open
	if !m.queue[best].fresh {
		room = min(room, m.timing.Backfill-open)
	}
	if room <= 0 {
		return action{}
	}
	return m.take(best, action{kind: send, n: min(room, m.timing.Batch), began: now})
}

// take takes a group out of the queue.
func (m *machine) take(i int, a action) action {
	a.group = m.queue[i]
	m.queue = slices.Delete(m.queue, i, i+1)
	a.group.queued, a.group.pending, a.group.fresh, a.group.isolate = false, false, false, false
	return m.begin(a)
}

// maySend reports whether something may be sent to a group; wait is shortened
// to when it may be.
func (m *machine) maySend(g *group, now time.Time, wait *time.Duration) bool {
	if g.busy || len(g.owed) > 0 || m.holds.send(g.name) || g.blind && len(g.flights) > 0 || g.inDoubt() {
		return false
	}
	return due(g.retryAt, now, wait)
}

// due reports whether it is time, and shortens wait to when it will be.
func due(at, now time.Time, wait *time.Duration) bool {
	d := at.Sub(now)
	if d > 0 {
		*wait = min(*wait, d)
	}
	return d <= 0
}

// sent says that a call is over: all that it was about is accounted for. more
// says that the ledger may hold further turns of the group, alone that the
// first of them must go alone.
func (m *machine) sent(g *group, more, fresh, single bool) {
	g.failures, g.retryAt = 0, time.Time{}
	g.isolate = g.isolate || single
	if more {
		m.add(g.name, fresh)
	}
}

// failed says that something for a group has to be tried again after a while.
func (m *machine) failed(g *group, fresh bool, next time.Time) {
	g.failures++
	g.retryAt = next
	m.add(g.name, fresh)
}

// soon schedules early retries of failed groups: the memory answers again.
func (m *machine) soon(at func() time.Time) {
	for _, g := range m.groups {
		if t := at(); g.failures > 0 && t.Before(g.retryAt) {
			g.retryAt = t
		}
	}
}

// excuse says that until then there can be no sign of work.
func (m *machine) excuse(until time.Time) {
	if until.After(m.sign) {
		m.sign = until
	}
}

// nextOwing is a group for which something must be written to the ledger
// before anything else is done for it.
func (m *machine) nextOwing(now time.Time, wait *time.Duration) *group {
	if m.holds.owing == 0 {
		return nil
	}
	for _, g := range m.groups {
		if len(g.owed) > 0 && !g.busy && !m.holds.look(g.name) && due(g.retryAt, now, wait) {
			return g
		}
	}
	return nil
}

// discard takes turns out of flight that the ledger does not have any more.
func (m *machine) discard(g *group, gone func(*Item) bool) {
	m.keep(g, slices.DeleteFunc(slices.Clone(g.flights), func(f *flight) bool { return gone(&f.item) }))
	m.place(g)
	if m.own != "" && len(m.flying) == 0 { // nobody needs to know whether its worker lives
		m.stalled, m.barrier.sent = time.Time{}, nil
	}
}
