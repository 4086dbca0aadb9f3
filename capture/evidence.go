package capture

import (
	"math"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// seen is what a look at a group showed.
type seen struct {
	names  map[string]bool
	full   bool      // there may be more, older ones
	oldest time.Time // the time that the oldest of them speaks of
	clock  time.Time // by the memory; what speaks of a later time is not shown; zero: it is
}

// findings is what follows from a look.
type findings struct {
	verified []*under
	lost     []*under // to be sent again, as far as they are not there
	hidden   []*under // worked off, and behind more episodes than can be asked for
	buried   []*under // lost too often
	unknown  []*under // whether they are there cannot be found out
	revived  bool     // work goes on after a stall
}

// saw says what a look showed.
func (s *state) saw(a action, v seen, now time.Time) (f findings) {
	l, before := a.lane, a.lane.seenTick
	s.sight(l, true)
	progress, back := false, false
	veil := time.Duration(math.MaxInt64) // until something that is hidden by its time may be seen
	var left []*under
	first := s.firstElsewhere(l)
	for _, u := range l.under {
		if u.recognise(v) {
			progress = true
			l.worked = now
			l.seenTick = max(l.seenTick, u.tick)
			s.evidence = max(s.evidence, u.start)
			s.typical = (3*s.typical + now.Sub(u.at)) / 4
		}
		if len(u.names) == 0 {
			f.verified = append(f.verified, u)
			continue
		}
		processed := u.tick < before || s.passed(l, u, a.after, a.began)
		behind := v.full && v.oldest.After(u.said) // it may be there, further back
		switch {
		case processed && !v.clock.IsZero() && u.until.After(v.clock): // it may be there, and hidden
			veil = min(veil, u.until.Sub(v.clock))
			left = append(left, u)
		case behind && a.n < maxAsk:
			back = true
			left = append(left, u)
		case !processed: // it may still come
			left = append(left, u)
		case behind:
			f.hidden = append(f.hidden, u)
		default:
			f.lose(u, u.tick < first, s.timing.maxLosses)
		}
		first = min(first, u.tick)
	}
	s.keep(l, left)
	if progress {
		f.revived = s.alive(now)
	}
	if back { // further, at once
		l.ask = min(4*a.n, maxAsk)
	}
	s.schedule(l, progress, back, veil, now)
	return f
}

// passed reports whether the memory has come past a turn, as far as other lanes
// show: up to a tick all was worked off. Where groups are apart that says
// little, and only the silence of its own group counts: since the turn was
// handed over, and since the group last showed something, because whatever is
// in line before it takes its time. at is when the memory was looked at, and
// not when its answer was read: we may be slow too.
func (s *state) passed(l *lane, u *under, tick int64, at time.Time) bool {
	if u.acked >= tick {
		return false
	}
	silent := u.at
	if l.worked.After(silent) {
		silent = l.worked
	}
	return !s.timing.apart || at.Sub(silent) > s.timing.stallAfter
}

// firstElsewhere is the tick of the first turn in line, other lanes' only
// where there is one line.
func (s *state) firstElsewhere(not *lane) int64 {
	first := int64(math.MaxInt64)
	if s.timing.apart {
		return first
	}
	for _, l := range s.lanes {
		if l != not && len(l.under) > 0 && !l.blind {
			first = min(first, l.under[0].tick)
		}
	}
	return first
}

// recognise notes which messages of a turn are there, and reports whether
// there is a new one.
func (u *under) recognise(v seen) (found bool) {
	for name, side := range u.names {
		if v.names[name] {
			delete(u.names, name)
			u.entry.Have |= side
			found = true
		}
	}
	return found
}

// lose takes the consequences of a loss. A worker that dies takes with it all
// that waits, and only the first in line can be to blame: it alone counts its
// losses. As the first of many it may have been there by chance, when somebody
// restarted the memory; the last loss counts only when it was alone.
func (f *findings) lose(u *under, first bool, most int) {
	u.blamed = first && (u.alone || u.entry.Losses+1 < most)
	if u.blamed && u.entry.Losses+1 >= most {
		f.buried = append(f.buried, u)
	} else {
		f.lost = append(f.lost, u)
	}
}

// suspect reports whether a turn was lost so often that it goes alone.
func (t *timing) suspect(e *ledger.Entry) bool { return e.Losses+1 >= t.maxLosses }

// keep leaves those turns under way in a lane.
func (s *state) keep(l *lane, left []*under) {
	doubts := 0
	for _, u := range left {
		if u.doubt {
			doubts++
		}
	}
	s.under += len(left) - len(l.under)
	if l.blind {
		s.blind += len(left) - len(l.under)
	}
	s.doubts += doubts - l.doubts
	l.under, l.doubts = left, doubts
	if len(left) == 0 {
		l.seenTick, l.ask = math.MinInt64, 0
		s.fine(l, look)
	}
}

// alive says that there was a sign of work, and reports whether a stall is
// over. Everything that was worked off before it is looked at now.
func (s *state) alive(now time.Time) (revived bool) {
	s.arrived = now
	revived = !s.stalled.IsZero()
	s.stalled = time.Time{}
	var due []*lane
	for _, l := range s.looks.lanes {
		if s.passed(l, l.under[0], s.evidence, now) {
			due = append(due, l)
		}
	}
	for _, l := range due {
		l.lookAt = now
		s.place(l)
	}
	return revived
}

// schedule decides when a lane is looked at again; veil is how long something
// is hidden at least.
func (s *state) schedule(l *lane, progress, again bool, veil time.Duration, now time.Time) {
	switch {
	case progress:
		l.lookWait = s.firstLook()
	default:
		l.lookWait = min(2*l.lookWait, s.timing.lastLook)
	}
	l.lookAt = now.Add(l.lookWait)
	known := len(l.under) > 0 && (l.under[0].tick < l.seenTick || s.passed(l, l.under[0], s.evidence, now))
	switch {
	case again || known && veil == math.MaxInt64:
		l.lookAt = now // what proves a loss is known; the next look decides
	case known:
		l.lookAt = now.Add(min(max(veil, s.timing.firstLook), l.lookWait))
	}
	s.place(l)
}

// inDoubt puts a turn under way that an earlier process handed over. It may
// have been accepted or not; it comes before whatever this one hands over.
func (s *state) inDoubt(group string, u *under, order, of int, now time.Time) {
	u.tick = int64(order - of)
	u.start, u.acked, u.doubt, u.at, u.ended = u.tick-int64(of), math.MaxInt64, true, now, now
	s.handed(s.lane(group), []*under{u}, now)
}

// settle notes of what is in doubt that it will not be accepted any more: only
// what is sent from now on can prove that it was lost. A call that was given up
// may wait somewhere before the memory, and arrive after those that came later.
func (s *state) settle(now time.Time, wait *time.Duration) {
	for ; len(s.late) > 0; s.late = s.late[1:] {
		u := s.late[0]
		if d := u.ended.Add(s.timing.doubtAfter).Sub(now); d > 0 {
			*wait = min(*wait, d)
			return
		}
		u.acked = s.tick()
	}
}

// probe is a message of our own that shows whether the worker lives, where
// nothing else does: after a restart that lost what was under way, nothing else
// would. It costs the memory an extraction, so it is sent only when there is no
// other way to know.
type probe struct {
	sent   map[string]int64 // when the calls began, by name
	active bool
	nextAt time.Time
	wait   time.Duration
	lookAt time.Time
	look   time.Duration
}

// nextProbe says what is to be done about probes.
func (s *state) nextProbe(now time.Time, wait *time.Duration) action {
	p := &s.probe
	if p.active {
		return action{}
	}
	if s.hidden { // what a search does not show is not waited for
		p.sent = nil
		return action{}
	}
	if len(p.sent) > 0 {
		if d := p.lookAt.Sub(now); d <= 0 {
			p.active = true
			return action{kind: lookForProbe, n: firstAsk}
		} else {
			*wait = min(*wait, d)
		}
	}
	var at time.Time
	switch {
	case !s.stalled.IsZero():
	case s.doubts > 0, s.solo != nil && len(p.sent) == 0:
		at = s.arrived.Add(s.timing.doubtAfter)
		if n := len(s.late); n > 0 && s.late[n-1].ended.After(s.arrived) {
			at = s.late[n-1].ended.Add(s.timing.doubtAfter)
		}
	case s.under > s.blind && len(p.sent) == 0:
		at = s.arrived.Add(s.timing.stallAfter / 2) // before the worker is taken for dead
	default:
		return action{}
	}
	if p.nextAt.After(at) {
		at = p.nextAt
	}
	if d := at.Sub(now); d > 0 {
		*wait = min(*wait, d)
		return action{}
	}
	p.active = true
	return action{kind: sendProbe}
}

// maxProbes bounds the probes that are waited for. Should a worker be dead for
// longer, the older ones are lost with all else.
const maxProbes = 16

// probed says that a probe was handed over, or could not be.
func (s *state) probed(name string, start int64, ok bool, now time.Time) {
	p := &s.probe
	p.active = false
	p.nextAt = now.Add(p.wait)
	p.wait = min(2*p.wait, s.timing.lastProbe)
	if ok {
		s.awaitProbe(name, start, now)
	}
}

// awaitProbe has a probe looked for that was handed over.
func (s *state) awaitProbe(name string, start int64, now time.Time) {
	p := &s.probe
	if len(p.sent) == 0 || len(p.sent) >= maxProbes {
		p.sent = make(map[string]int64)
	}
	p.sent[name] = start
	p.look = s.timing.firstLook
	p.lookAt = now.Add(p.look)
}

// sawProbes says which probes are there. When one is, everything before it has
// been worked off.
func (s *state) sawProbes(names map[string]bool, ok bool, now time.Time) (found, revived bool) {
	p := &s.probe
	p.active = false
	for name, start := range p.sent {
		if names[name] {
			found = true
			s.evidence = max(s.evidence, start)
		}
	}
	if found {
		p.sent, p.wait, p.nextAt = nil, s.timing.firstProbe, time.Time{}
		return true, s.alive(now)
	}
	if !ok {
		s.unseen(now)
	}
	if s.under == 0 && s.stalled.IsZero() && p.look >= s.timing.lastLook {
		p.sent = nil // nobody needs to know any more
	}
	p.look = min(2*p.look, s.timing.lastLook)
	p.lookAt = now.Add(p.look)
	return false, false
}
