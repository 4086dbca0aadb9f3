package deliver

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// barrier is the state of the machine's probe messages. A visible barrier proves that the
// worker has processed everything sent before it. Each one costs the memory an extraction,
// so the machine sends one only if no other turn can serve as the proof, as after a restart
// that lost the turns in flight.
type barrier struct {
	busy     bool          // a call for a barrier is in progress
	sent     []sentBarrier // not seen yet, oldest first; one visible barrier is enough
	nextAt   time.Time     // earliest time for the next one
	wait     time.Duration // delay until the next, doubled up to LastBarrier
	pollAt   time.Time
	pollWait time.Duration

	left       []string             // groups with a visible barrier, until a listing proves its removal
	unclear    map[string]time.Time // by group: until then, a barrier without a clear answer may appear
	removeAt   time.Time
	removeWait time.Duration // delay until the next attempt, doubled up to LastBarrier
}

type sentBarrier struct {
	name, group string
	pos         int64
	at          time.Time
	accepted    bool // the memory answered with success
}

// maxBarriers is the most barriers to poll for. A dead worker loses the older ones with
// everything else.
const maxBarriers = 16

func barrierName() string { return graphiti.CheckNamePrefix + rand.Text() }

func isBarrier(e *graphiti.Row) bool { return strings.HasPrefix(e.Name, graphiti.CheckNamePrefix) }

func barrierMessage(name string) []graphiti.Row {
	return []graphiti.Row{{
		Name: name, Role: graphiti.RoleUser, Said: time.Now(),
		Text: graphiti.CheckText, Source: `{"source":"graphiti-proxy","scope":"probe"}`,
	}}
}

// nextBarrier returns the next barrier action.
func (m *machine) nextBarrier(now time.Time, wait *time.Duration) action {
	b := &m.barrier
	if b.busy {
		return action{}
	}
	if m.sight.hidden { // a search shows no barriers
		b.sent, b.left, b.unclear = nil, nil, nil
		return action{}
	}
	if len(b.sent) > 0 && due(b.pollAt, now, wait) {
		return action{kind: lookForBarrier, n: pollMargin, began: now}
	}
	if len(b.left) > 0 && due(b.removeAt, now, wait) {
		return action{kind: removeBarrier, began: now}
	}
	at, needed := m.barrierDue()
	if !needed {
		return action{}
	}
	if b.nextAt.After(at) {
		at = b.nextAt
	}
	if !due(at, now, wait) {
		return action{}
	}
	return action{kind: sendBarrier, began: now}
}

// barrierDue returns the time after which silence requires a barrier.
func (m *machine) barrierDue() (at time.Time, needed bool) {
	if !m.stalled.IsZero() {
		return time.Time{}, true // the breaker is open: each barrier is a half-open attempt
	}
	ended, doubt := m.lastDoubt()
	waits := len(m.barrier.sent) > 0
	switch {
	case doubt && ended.After(m.sign):
		return ended.Add(m.timing.DoubtAfter), true
	case doubt:
		return m.sign.Add(m.timing.DoubtAfter), true
	case waits || m.openFlights() == 0:
		return time.Time{}, false
	case m.isolated != nil && !m.isolated.blind:
		return m.sign.Add(m.timing.DoubtAfter), true
	}
	return m.sign.Add(m.timing.StallAfter / 2), true // before StallAfter declares the worker stalled
}

// lastDoubt returns the end of the latest call without a clear answer whose turns need a
// barrier.
func (m *machine) lastDoubt() (ended time.Time, found bool) {
	for _, g := range m.flying {
		for _, f := range g.flights {
			if f.doubt && !f.hidden && m.pollable(g) {
				found = true
				if f.ended.After(ended) {
					ended = f.ended
				}
			}
		}
	}
	return ended, found
}

// barrierGroup returns the group for a new barrier. If each group has a worker of its own,
// only a barrier in the group itself is a proof. Before a listing has shown stored
// messages, such a barrier could be neither seen nor deleted, so it goes to the probe
// group.
func (m *machine) barrierGroup(probe string) string {
	if m.own != "" && m.sight.listed {
		return m.own
	}
	return probe
}

// beginBarrier allocates a position for a barrier.
func (m *machine) beginBarrier() (pos int64) {
	m.position++
	return m.position
}

// barrierSent records an attempt to send a barrier. ok is false if the memory certainly did
// not accept it.
func (m *machine) barrierSent(s sentBarrier, ok bool, now time.Time) {
	b := &m.barrier
	b.nextAt = now.Add(b.wait)
	b.wait = min(2*b.wait, m.timing.LastBarrier)
	if !ok {
		return
	}
	s.at = now
	if b.sent = append(b.sent, s); len(b.sent) > maxBarriers {
		b.sent = b.sent[1:]
	}
	if !s.accepted {
		if b.unclear == nil {
			b.unclear = make(map[string]time.Time)
		}
		b.unclear[s.group] = now.Add(2 * m.timing.StallAfter)
	}
	b.pollWait = m.timing.FirstLook
	b.pollAt = now.Add(b.pollWait)
}

// sawBarriers applies a listing of the group that holds the newest barrier.
func (m *machine) sawBarriers(group string, names map[string]bool, now time.Time) (found, revived bool) {
	b := &m.barrier
	newest := int64(0)
	for _, s := range b.sent {
		if s.group != group || !names[s.name] {
			continue
		}
		found, newest = true, max(newest, s.pos)
		if m.own == "" || s.group == m.own {
			m.proven = max(m.proven, s.pos)
		}
	}
	if !found {
		m.barrierUnseen(now)
		return false, false
	}
	// A barrier sent after the newest visible one may still appear and needs removal then.
	b.sent = slices.DeleteFunc(b.sent, func(s sentBarrier) bool { return s.group == group && s.pos <= newest })
	b.wait, b.nextAt = m.timing.FirstBarrier, time.Time{}
	b.pollWait = m.timing.FirstLook
	b.pollAt = now.Add(b.pollWait)
	m.leftIn(group, now)
	return true, m.recordProgress(now)
}

// showsOurs handles a barrier in a group's listing, maybe from an earlier process. It polls
// for a barrier in b.sent and has others removed.
func (m *machine) showsOurs(group string, now time.Time) {
	b := &m.barrier
	if slices.ContainsFunc(b.sent, func(s sentBarrier) bool { return s.group == group }) {
		b.pollAt = now
		return
	}
	m.leftIn(group, now)
}

// leftIn schedules the removal of barriers from a group.
func (m *machine) leftIn(group string, now time.Time) {
	b := &m.barrier
	if !slices.Contains(b.left, group) {
		b.left = append(b.left, group)
		b.removeAt, b.removeWait = now, m.timing.FirstBarrier
	}
}

// removed records the result of an attempt to remove barriers from a group. Another attempt
// follows while a barrier may still appear: it may arrive after a later one.
func (m *machine) removed(group string, gone bool, now time.Time) {
	b := &m.barrier
	if gone = gone && !now.Before(b.unclear[group]); gone {
		delete(b.unclear, group)
	}
	b.left = slices.DeleteFunc(b.left, func(s string) bool { return s == group })
	if !gone {
		b.left = append(b.left, group) // after the others
		b.removeAt = now.Add(b.removeWait)
		b.removeWait = min(2*b.removeWait, m.timing.LastBarrier)
	}
}

// testSoon makes the test of a stalled worker due at once: the memory has probably
// restarted, or an operator asks for it.
func (m *machine) testSoon(now time.Time) {
	if b := &m.barrier; !m.stalled.IsZero() {
		b.wait, b.nextAt, b.pollAt = m.timing.FirstBarrier, time.Time{}, now
	}
}

// stalledLook is the longest pause between polls of a stalled worker: frequent enough that
// one of them fails while the memory restarts.
const stalledLook = 5 * time.Second

// barrierUnseen schedules the next poll for a barrier, and drops old barriers if no open
// turn depends on them.
func (m *machine) barrierUnseen(now time.Time) {
	b := &m.barrier
	m.holdStallTimer(now)
	if m.openFlights() == 0 && m.stalled.IsZero() {
		b.sent = slices.DeleteFunc(b.sent, func(s sentBarrier) bool { return now.Sub(s.at) > 2*m.timing.StallAfter })
	}
	b.pollWait = min(2*b.pollWait, m.timing.LastLook)
	if !m.stalled.IsZero() {
		b.pollWait = min(b.pollWait, stalledLook)
	}
	b.pollAt = now.Add(b.pollWait)
}
