package deliver

import (
	"math"
	"slices"
	"time"
)

// machine decides the next action for one worker of the memory. It makes no calls and reads
// no clock: a Loop asks it for the next action, performs it and reports the result.
//
//	              ┌────── missing after a proof: lost, sent again ───────────┐
//	              ▼                                                          │
//	pending ──send──► in flight ──listed in the group──► delivered           │
//	   │                  │                                                  │
//	rejected          silence, or an unclear answer ──► barrier ──visible────┘
//	   ▼                                                   │
//	 dead ◄── lost MaxLosses times, the last time alone    └─ invisible: stalled
//
// A worker processes messages in the order of acceptance. A visible message therefore
// proves that the worker has processed everything sent before it.
type machine struct {
	timing Timing
	sight  *sight
	holds  *holds

	// own is the machine's only group if each group has a worker of its own, or "" if one
	// worker serves all groups.
	own string

	groups map[string]*group // groups with work
	queue  []*group          // groups with pending turns; a served group moves to the end
	flying []*group          // groups with turns in flight

	position    int64  // of the last message sent
	proven      int64  // everything sent up to this position is processed
	lastCounted int64  // the proof of the last counted loss
	isolated    *group // the group whose turn is alone in flight, or nil

	service time.Duration // estimated processing time of a turn
	sign    time.Time     // last progress, or the first reason to expect some
	stalled time.Time     // start of the stall, or zero
	barrier barrier
}

// group is the work for one group.
type group struct {
	name     string
	pending  bool // the ledger has pending turns
	fresh    bool // some of them are not backfilled
	queued   bool
	busy     bool           // a call is in progress
	owed     []func() error // failed ledger writes, repeated before all else
	retryAt  time.Time
	failures int // in a row

	flights  []*flight // in send order
	pollAt   time.Time
	pollWait time.Duration
	ask      int       // episodes to list, or 0 for the default
	blind    bool      // the last poll failed
	worked   time.Time // last progress in this group

	isolate bool // send the first pending turn alone
}

// kind is the kind of an action.
type kind uint8

const (
	nothing kind = iota
	send
	look
	settle // repeat failed ledger writes
	sendBarrier
	lookForBarrier
	removeBarrier
	probe // check whether the memory is up again
)

// action is a step for the Loop to perform. Its group is busy until done is called.
type action struct {
	kind   kind
	group  *group
	n      int       // turns to send, or episodes to list
	single bool      // send a turn alone
	began  time.Time // time of the decision
}

// longest is the longest time between two calls of next.
const longest = time.Minute

// never is a position beyond all others.
const never = math.MaxInt64

func newMachine(t Timing, s *sight, h *holds, own string, now time.Time) *machine {
	return &machine{
		timing: t, sight: s, holds: h, own: own,
		groups: make(map[string]*group), lastCounted: -1, sign: now, barrier: barrier{wait: t.FirstBarrier},
	}
}

// next returns the next action, or the time until next should be called again.
func (m *machine) next(now time.Time) (a action, wait time.Duration) {
	wait = longest
	m.expireDoubts(now, &wait)
	m.detectStall(now, &wait)
	if g := m.nextOwing(now, &wait); g != nil {
		return m.begin(action{kind: settle, group: g, began: now}), 0
	}
	if g := m.nextPoll(now, &wait); g != nil {
		return m.begin(action{kind: look, group: g, n: max(g.ask, 2*len(g.flights)+pollMargin), began: now}), 0
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

// done marks an action's group as free again.
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

// broke schedules a retry after an action panicked.
func (m *machine) broke(a action, now time.Time) {
	switch a.kind {
	case send, look, settle:
		m.pollFailed(a.group, now)
		m.failed(a.group, true, now.Add(lastRetry))
	case sendBarrier, lookForBarrier:
		m.barrierSent(sentBarrier{}, false, now)
		m.barrierUnseen(now)
	case removeBarrier:
		m.removed(m.barrier.left[0], false, now)
	case nothing, probe:
	}
}

// idle reports whether the machine has no work now or later.
func (m *machine) idle() bool {
	return len(m.groups) == 0 && len(m.barrier.sent) == 0 && len(m.barrier.left) == 0 && m.stalled.IsZero() && !m.barrier.busy
}

// find returns the entry of a group, creating it if necessary.
func (m *machine) find(name string) *group {
	g := m.groups[name]
	if g == nil {
		g = &group{name: name}
		m.groups[name] = g
	}
	return g
}

// add records that the ledger has pending turns for a group.
func (m *machine) add(name string, fresh bool) {
	g := m.find(name)
	g.pending, g.fresh = true, g.fresh || fresh
	m.place(g)
}

// place appends a group with pending turns to the queue and removes a group without work.
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

// nextSend chooses the group whose pending turns are sent next, preferring fresh turns over
// backfilled ones. An isolated turn waits for an empty window, and all others wait for it.
func (m *machine) nextSend(now time.Time, wait *time.Duration) action {
	if m.isolated != nil && !m.isolated.blind {
		return action{}
	}
	open := m.openFlights()
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

// take removes the group at i from the queue and begins a.
func (m *machine) take(i int, a action) action {
	a.group = m.queue[i]
	m.queue = slices.Delete(m.queue, i, i+1)
	a.group.queued, a.group.pending, a.group.fresh, a.group.isolate = false, false, false, false
	return m.begin(a)
}

// maySend reports whether turns may be sent to a group. If a retry time is the only
// obstacle, it shortens wait to that time.
func (m *machine) maySend(g *group, now time.Time, wait *time.Duration) bool {
	if g.busy || len(g.owed) > 0 || m.holds.send(g.name) || g.blind && len(g.flights) > 0 || g.inDoubt() {
		return false
	}
	return due(g.retryAt, now, wait)
}

// due reports whether at has passed, and otherwise shortens wait to the remaining time.
func due(at, now time.Time, wait *time.Duration) bool {
	d := at.Sub(now)
	if d > 0 {
		*wait = min(*wait, d)
	}
	return d <= 0
}

// sent records the success of a send. more reports whether the ledger may hold further
// turns of the group, and single whether the first of them must be sent alone.
func (m *machine) sent(g *group, more, fresh, single bool) {
	g.failures, g.retryAt = 0, time.Time{}
	g.isolate = g.isolate || single
	if more {
		m.add(g.name, fresh)
	}
}

// failed schedules a retry for a group.
func (m *machine) failed(g *group, fresh bool, next time.Time) {
	g.failures++
	g.retryAt = next
	m.add(g.name, fresh)
}

// soon brings forward the retries of failed groups, because the memory answers again.
func (m *machine) soon(at func() time.Time) {
	for _, g := range m.groups {
		if t := at(); g.failures > 0 && t.Before(g.retryAt) {
			g.retryAt = t
		}
	}
}

// restartStallTimer restarts the stall timer at until, because no progress is possible before.
func (m *machine) restartStallTimer(until time.Time) {
	if until.After(m.sign) {
		m.sign = until
	}
}

// nextOwing returns a group with failed ledger writes that are due, or nil.
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

// discard removes turns from flight that the ledger has deleted.
func (m *machine) discard(g *group, gone func(*Item) bool) {
	m.setFlights(g, slices.DeleteFunc(slices.Clone(g.flights), func(f *flight) bool { return gone(&f.item) }))
	m.place(g)
	if m.own != "" && len(m.flying) == 0 { // the worker's health no longer matters
		m.stalled, m.barrier.sent = time.Time{}, nil
	}
}
