package deliver

import (
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	firstAsk = 16   // episodes asked for, beyond those that are expected
	maxAsk   = 4096 // episodes asked for at most
)

// flight is a turn that was sent and is not known to have arrived.
type flight struct {
	item    Item
	missing map[string]graphiti.RoleType // messages that were not seen yet, by name
	times   map[string]time.Time         // that they speak of
	first   time.Time                    // the earliest of these
	last    time.Time                    // and the latest
	at      time.Time                    // when it was sent
	pos     int64

	// from is the position from which on a message that shows up proves that
	// this one has been worked off. A call without a clear answer may still be
	// accepted, and then comes after what was sent later: from is never until
	// that is over.
	from  int64
	doubt bool
	ended time.Time // when that call did

	single      bool // nothing else was in flight
	hidden      bool // worked off, and dated later than the memory's clock shows
	lossCounted bool // its loss counts: three make it a dead letter
}

func newFlight(it Item, now time.Time) *flight {
	f := &flight{item: it, missing: make(map[string]graphiti.RoleType, 2), times: make(map[string]time.Time, 2), at: now}
	for _, msg := range it.Messages {
		f.missing[msg.Name], f.times[msg.Name] = msg.RoleType, msg.Timestamp
		if f.first.IsZero() || msg.Timestamp.Before(f.first) {
			f.first = msg.Timestamp
		}
		if msg.Timestamp.After(f.last) {
			f.last = msg.Timestamp
		}
	}
	return f
}

// view is what a look at a group showed.
type view struct {
	names  map[string]bool
	ids    map[string]string // the memory's ids, by name; nil: it is not known
	full   bool              // there may be more, older ones
	oldest time.Time         // the time that the oldest of them speaks of
	clock  time.Time         // the memory's; what speaks of a later time is not shown; zero: it is
}

// findings is what follows from a look.
type findings struct {
	verified   []*flight
	lost       []*flight // to be sent again, as far as they are not there
	unverified []*flight // worked off, and out of sight
	dead       []*flight // lost too often
	unknown    []*flight // whether they are there cannot be found out
	revived    bool      // work goes on after a stall
}

// inFlight says that turns were sent. doubt says that it is not known whether
// they were accepted.
func (m *machine) inFlight(g *group, flights []*flight, doubt, single bool, now time.Time) {
	if m.open() == 0 {
		m.excuse(now)
	}
	if len(g.flights) == 0 && len(flights) > 0 {
		m.flying = append(m.flying, g)
		g.lookWait = m.firstLook(len(flights))
		g.lookAt = now.Add(g.lookWait)
	}
	for _, f := range flights {
		m.position++
		f.pos, f.from, f.doubt, f.ended, f.single = m.position, m.position+1, doubt, now, single
		if doubt {
			f.from = never
		}
	}
	g.flights = append(g.flights, flights...)
}

// firstLook is the wait before a look while the work goes on: half of what the
// worker needs for the window, and for what is added to it.
func (m *machine) firstLook(added int) time.Duration {
	return min(max(m.service*time.Duration(m.open()+added)/2, m.timing.FirstLook), m.timing.LastLook)
}

// open is how many turns take room in the window. What cannot be looked at, or
// waits for the memory's clock, takes nobody's room.
func (m *machine) open() (n int) {
	for _, g := range m.flying {
		for _, f := range g.flights {
			if !f.hidden && m.visible(g) {
				n++
			}
		}
	}
	return n
}

// visible reports whether a group can be looked at.
func (m *machine) visible(g *group) bool { return !g.blind && !m.holds.look(g.name) }

// inDoubt reports whether a group has turns in flight that may or may not have
// been accepted.
func (g *group) inDoubt() bool {
	return slices.ContainsFunc(g.flights, func(f *flight) bool { return f.doubt })
}

// settleDoubts notes of turns in doubt that they will not be accepted any more:
// what is sent from now on can prove their loss.
func (m *machine) settleDoubts(now time.Time, wait *time.Duration) {
	for _, g := range m.flying {
		for _, f := range g.flights {
			if f.from == never && due(f.ended.Add(m.timing.DoubtAfter), now, wait) {
				f.from = m.position + 1
			}
		}
	}
}

// head is the group whose turn is the next to be worked off.
func (m *machine) head() (h *group) {
	first := int64(never)
	for _, g := range m.flying {
		if f := g.awaited(); f != nil && m.visible(g) && f.pos < first {
			h, first = g, f.pos
		}
	}
	return h
}

// awaited is the first turn in flight of a group that may show up any time.
func (g *group) awaited() *flight {
	for _, f := range g.flights {
		if !f.hidden {
			return f
		}
	}
	return nil
}

// decided reports whether the next look at a group finds a turn to be there or
// lost: it has been worked off.
func (m *machine) decided(g *group) bool {
	return slices.ContainsFunc(g.flights, func(f *flight) bool { return f.from <= m.proven && !f.hidden })
}

// nextLook chooses the group to look at. While the work goes on that is the
// head: the turns of others come after it.
func (m *machine) nextLook(now time.Time, wait *time.Duration) *group {
	h := m.head()
	all := now.Sub(m.sign) > m.timing.DoubtAfter || m.sight.hidden
	if len(m.flying) > 1 && !all {
		*wait = min(*wait, m.sign.Add(m.timing.DoubtAfter+1).Sub(now))
	}
	for _, g := range m.flying {
		if g.busy || len(g.owed) > 0 || m.holds.look(g.name) {
			continue
		}
		if (all || g == h || g.blind || g.inDoubt() || g.awaited() == nil || m.decided(g)) && due(g.lookAt, now, wait) {
			return g
		}
	}
	return nil
}

// saw says what a look showed. Only proofs that were known before the look
// count: what came later may have been followed by what is missed here.
func (m *machine) saw(a action, v view, now time.Time) (fs findings) {
	g, known := a.group, m.proven
	_, progress := m.recognise(g, v, now)
	deeper := false
	var left []*flight
	for _, f := range g.flights {
		workedOff := f.from <= known
		behind := v.full && v.oldest.After(f.first) // it may be there, further back
		f.hidden = workedOff && !v.clock.IsZero() && f.last.After(v.clock)
		switch {
		case len(f.missing) == 0:
			fs.verified = append(fs.verified, f)
		case behind && a.n < maxAsk && !f.hidden:
			deeper = true
			left = append(left, f)
		case !workedOff, f.hidden: // it may still show up
			left = append(left, f)
		case behind:
			fs.unverified = append(fs.unverified, f)
		default:
			m.lose(&fs, g, f, known)
		}
	}
	m.keep(g, left)
	if progress {
		fs.revived = m.works(now)
	}
	if deeper {
		g.ask = min(4*a.n, maxAsk)
	}
	m.schedule(g, progress, deeper, now)
	return fs
}

// recognise notes which messages of a group's turns are there, and returns the
// turns that show a new one.
func (m *machine) recognise(g *group, v view, now time.Time) (found map[*flight]bool, progress bool) {
	g.blind = false
	found = make(map[*flight]bool)
	for _, f := range g.flights {
		for name, role := range f.missing {
			if v.names[name] {
				delete(f.missing, name)
				f.item.Have |= ledger.SideOf(role)
				found[f] = true
			}
		}
		if found[f] {
			g.worked, progress = now, true
			m.proven = max(m.proven, f.pos)
		}
	}
	if progress {
		m.service = (m.service + max(0, now.Sub(m.sign))/time.Duration(len(found))) / 2
	}
	return found, progress
}

// lose takes the consequences of a loss. A worker that dies takes with it all
// that waits, and only the first in line can be the cause: it alone counts its
// loss. As the first of many it may have been there by chance, when somebody
// restarted the memory; so the last loss counts only when it was alone.
func (m *machine) lose(fs *findings, g *group, f *flight, proof int64) {
	most := m.timing.MaxLosses
	f.lossCounted = proof > m.lastCounted && m.firstInLine(f) && (f.single || f.item.Losses+1 < most)
	if f.lossCounted {
		m.lastCounted = proof
		f.item.Losses++
	}
	if f.item.Losses >= most {
		fs.dead = append(fs.dead, f)
		return
	}
	fs.lost = append(fs.lost, f)
	g.isolate = g.isolate || f.item.isolated(most)
}

// isolated reports whether a turn was lost so often that it goes alone.
func (it *Item) isolated(most int) bool { return it.Losses+1 >= most }

// firstInLine reports whether no other turn that can be looked at was sent
// before a flight and is still missing.
func (m *machine) firstInLine(f *flight) bool {
	for _, g := range m.flying {
		for _, o := range g.flights {
			if !g.blind && !o.hidden && o.pos < f.pos && len(o.missing) > 0 {
				return false
			}
		}
	}
	return true
}

// keep leaves those turns in flight.
func (m *machine) keep(g *group, left []*flight) {
	g.flights = left
	if len(left) > 0 {
		return
	}
	g.ask, g.blind = 0, false
	m.flying = slices.DeleteFunc(m.flying, func(o *group) bool { return o == g })
}

// works notes a sign of work, and reports whether a stall is over. What is
// first in line now may be there already, and so may what was lost before.
func (m *machine) works(now time.Time) (revived bool) {
	m.sign = now
	revived = !m.stalled.IsZero()
	m.stalled = time.Time{}
	h := m.head()
	for _, g := range m.flying {
		if g == h || m.decided(g) {
			g.lookAt, g.lookWait = now, m.firstLook(0)
		}
	}
	return revived
}

// schedule decides when a group is looked at again.
func (m *machine) schedule(g *group, progress, deeper bool, now time.Time) {
	if len(g.flights) == 0 {
		return
	}
	g.lookWait = min(2*g.lookWait, m.timing.LastLook)
	if progress {
		g.lookWait = m.firstLook(0)
	}
	g.lookAt = now.Add(g.lookWait)
	if deeper || m.decided(g) { // the next look decides
		g.lookAt = now
	}
}

// lookFailed says that a group could not be looked at. Where nothing can be,
// whether there is work is not known.
func (m *machine) lookFailed(g *group, now time.Time) {
	g.blind = true
	m.unseen(now)
	g.lookWait = min(max(2*g.lookWait, m.timing.FirstLook), m.timing.LastLook)
	g.lookAt = now.Add(g.lookWait)
}

func (m *machine) unseen(now time.Time) {
	if m.open() == 0 {
		m.excuse(now)
	}
}

// noticeStall notes that there has been no sign of work for too long.
func (m *machine) noticeStall(now time.Time, wait *time.Duration) {
	if !m.stalled.IsZero() || m.sight.hidden || m.open() == 0 {
		return
	}
	if due(m.sign.Add(m.timing.StallAfter), now, wait) {
		m.stalled = m.sign
	}
}
