package deliver

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// barrier is a small message of our own. When it is visible, everything that
// was sent before it has been worked off. It costs the memory an extraction, so
// it is sent only where nothing else tells: after a restart that lost what was
// in flight, nothing else would.
type barrier struct {
	busy     bool          // a call for one is in progress
	sent     []sentBarrier // not seen yet, the oldest first; seeing one is enough
	nextAt   time.Time     // no further one before
	wait     time.Duration // until the next; doubled up to LastBarrier
	lookAt   time.Time
	lookWait time.Duration

	left       []string // groups that show one of ours, until it is proven to be gone
	removeAt   time.Time
	removeWait time.Duration // until the next try; doubled up to LastBarrier
}

type sentBarrier struct {
	name, group string
	pos         int64
	at          time.Time
	accepted    bool // for sure
}

// maxBarriers bounds the barriers that are waited for. Should a worker be dead
// for longer, the older ones are lost with all else.
const maxBarriers = 16

func barrierName() string { return graphiti.CheckNamePrefix + rand.Text() }

func isBarrier(e *graphiti.Episode) bool { return strings.HasPrefix(e.Name, graphiti.CheckNamePrefix) }

func barrierMessage(name string) []graphiti.Message {
	return []graphiti.Message{{
		Name: name, RoleType: graphiti.RoleUser, Timestamp: time.Now(),
		Content: graphiti.CheckText, SourceDescription: `{"source":"graphiti-proxy","scope":"probe"}`,
	}}
}

// nextBarrier says what is to be done about barriers.
func (m *machine) nextBarrier(now time.Time, wait *time.Duration) action {
	b := &m.barrier
	if b.busy {
		return action{}
	}
	if m.sight.hidden { // what a search does not show is not waited for
		b.sent, b.left = nil, nil
		return action{}
	}
	if len(b.sent) > 0 && due(b.lookAt, now, wait) {
		return action{kind: lookForBarrier, n: firstAsk, began: now}
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

// barrierDue is when silence has lasted long enough for a barrier.
func (m *machine) barrierDue() (at time.Time, needed bool) {
	if !m.stalled.IsZero() {
		return time.Time{}, true // the breaker is open: each barrier is a half-open try
	}
	ended, doubt := m.lastDoubt()
	waits := len(m.barrier.sent) > 0
	switch {
	case doubt && ended.After(m.sign):
		return ended.Add(m.timing.DoubtAfter), true
	case doubt:
		return m.sign.Add(m.timing.DoubtAfter), true
	case waits || m.open() == 0:
		return time.Time{}, false
	case m.isolated != nil && !m.isolated.blind:
		return m.sign.Add(m.timing.DoubtAfter), true
	}
	return m.sign.Add(m.timing.StallAfter / 2), true // before the worker is taken for dead
}

// lastDoubt is when the last call without a clear answer ended, of those that
// wait for a barrier.
func (m *machine) lastDoubt() (ended time.Time, found bool) {
	for _, g := range m.flying {
		for _, f := range g.flights {
			if f.doubt && !f.hidden && m.visible(g) {
				found = true
				if f.ended.After(ended) {
					ended = f.ended
				}
			}
		}
	}
	return ended, found
}

// barrierGroup is the group that a barrier is written to. Where groups have a
// worker each, only one in the group itself proves anything; until listings are
// known to show what was written, it could neither be seen nor deleted there.
func (m *machine) barrierGroup(probe string) string {
	if m.own != "" && m.sight.listed {
		return m.own
	}
	return probe
}

// beginBarrier takes a position for a barrier.
func (m *machine) beginBarrier() (pos int64) {
	m.position++
	return m.position
}

// barrierSent says that a barrier may have been accepted. ok is false where it
// surely was not.
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
	b.lookWait = m.timing.FirstLook
	b.lookAt = now.Add(b.lookWait)
}

// sawBarriers says which messages are in the group of the newest barrier.
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
	// What was sent after it may still come, and is to be deleted then.
	b.sent = slices.DeleteFunc(b.sent, func(s sentBarrier) bool { return s.group == group && s.pos <= newest })
	b.wait, b.nextAt = m.timing.FirstBarrier, time.Time{}
	b.lookWait = m.timing.FirstLook
	b.lookAt = now.Add(b.lookWait)
	m.leftIn(group, now)
	return true, m.works(now)
}

// showsOurs says that a group shows messages of ours, maybe of an earlier process. One
// that is still waited for is looked for, others are removed.
func (m *machine) showsOurs(group string, now time.Time) {
	b := &m.barrier
	if slices.ContainsFunc(b.sent, func(s sentBarrier) bool { return s.group == group }) {
		b.lookAt = now
		return
	}
	m.leftIn(group, now)
}

// leftIn says that messages of ours are to be removed from a group.
func (m *machine) leftIn(group string, now time.Time) {
	b := &m.barrier
	if !slices.Contains(b.left, group) {
		b.left = append(b.left, group)
		b.removeAt, b.removeWait = now, m.timing.FirstBarrier
	}
}

// removed says how the try to remove messages of ours from a group ended.
func (m *machine) removed(group string, gone bool, now time.Time) {
	b := &m.barrier
	b.left = slices.DeleteFunc(b.left, func(s string) bool { return s == group })
	if !gone {
		b.left = append(b.left, group) // behind the others
		b.removeAt = now.Add(b.removeWait)
		b.removeWait = min(2*b.removeWait, m.timing.LastBarrier)
	}
}

// barrierUnseen sets the time of the next look for the barrier, if anybody still needs
// to know.
func (m *machine) barrierUnseen(now time.Time) {
	b := &m.barrier
	m.unseen(now)
	if m.open() == 0 && m.stalled.IsZero() {
		b.sent = slices.DeleteFunc(b.sent, func(s sentBarrier) bool { return now.Sub(s.at) > 2*m.timing.StallAfter })
	}
	b.lookWait = min(2*b.lookWait, m.timing.LastLook)
	b.lookAt = now.Add(b.lookWait)
}
