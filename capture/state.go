package capture

import (
	"math"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// state decides what is done next for the turns in the spool. It does nothing
// itself and looks at no clock; the Pipeline owns it, performs its actions,
// and tells it what came of them.
//
// What a turn goes through in the spool, for one group:
//
//	          ┌─────────────── not sent, or lost ───────────────┐
//	          ▼                                                 │
//	add ► waiting ──hand over──► under way ──seen in the group──┼─► gone
//	          │                      │                          │
//	       refused              lost too often                  └─ or accepted, where acceptance is proof
//	          └────────► dead ◄──────┘
//
// Graphiti answers 202 to what it has queued in memory and keeps it only when
// its one worker has come to it. So order is what proves a loss: the worker
// takes messages in the order in which they were accepted. When something is
// seen that was handed over after the answer to an earlier call, that call has
// been worked off: what is not to be seen of it then was lost. Ticks of a
// logical clock say what came after what.
type state struct {
	timing timing

	lanes               map[string]*lane
	withheld            map[string]bool // groups to which nothing is handed over
	fresh, older, looks agenda
	alone               agenda // lanes whose first turn goes alone
	solo                *lane  // for which one went that is under way

	clock    int64
	evidence int64    // what was answered before this tick has been worked off
	under    int      // turns that are under way
	reserved int      // turns that calls in progress may hand over
	doubts   int      // of those under way: whether they were accepted is not known
	late     []*under // of those: they may still be accepted, the oldest first

	typical time.Duration // from hand-over until a turn is seen
	arrived time.Time     // when there was last a sign of work, or reason to wait for one
	stalled time.Time     // since when there is none; zero: work goes on
	paused  time.Time     // nothing is done before
	asked   time.Time     // for what the memory said of it itself
	down    bool          // and then it is asked whether the memory is up again
	knocked bool          // which is going on

	unlisted time.Time // since when it is known that episodes cannot be listed; zero: they can, or it is not known
	hidden   bool      // that was so once: a listing without an episode proves nothing any more
	listed   bool      // a listing has shown what was written
	shown    bool      // a search has, where a listing did not

	troubles map[*lane]struct{} // lanes for which something fails
	blind    int                // turns under way in lanes that cannot be looked at
	probe    probe
}

// timing is when things happen and how many at a time.
type timing struct {
	batch      int           // turns in one call
	window     int           // turns of one group that may be under way
	maxUnder   int           // turns of all groups
	olderUnder int           // turns that may be under way when an earlier one is handed over
	stallAfter time.Duration // without a sign of work
	firstLook  time.Duration // after a hand-over; doubled up to lastLook
	lastLook   time.Duration
	doubtAfter time.Duration // until what is in doubt will not be accepted any more, and a probe is sent for it
	showAfter  time.Duration // how long a turn is searched for that cannot be listed
	firstProbe time.Duration // between two probes; doubled up to lastProbe
	lastProbe  time.Duration
	maxLosses  int // of one turn, being first in line, and the last time alone

	// apart says that groups are worked off by themselves: that another group
	// goes on proves nothing until a turn has been waited for as long as for a
	// sign of work.
	apart bool
}

const (
	firstAsk = 16   // episodes asked for, beyond those that are expected
	maxAsk   = 4096 // episodes asked for at most
)

// lane is what there is to do for one group.
type lane struct {
	group    string
	ready    bool      // turns may wait in the file
	fresh    bool      // not only earlier ones
	next     time.Time // no hand-over before
	failures int       // in a row
	active   bool      // a call is in progress
	blocked  int       // how often the group is being emptied now
	suspect  bool      // its first turn goes alone
	solo     bool      // one that went alone is under way

	under    []*under // in the order in which they were handed over
	doubts   int
	seenTick int64     // of the newest message that was seen
	worked   time.Time // when something in it was seen for the first time last
	lookAt   time.Time
	lookWait time.Duration
	ask      int
	back     []ledger.Entry // wait, and the spool may say otherwise; of who acts for the lane
	blind    bool           // the last look failed
	trouble  map[kind]trouble

	at  [agendas]time.Time
	pos [agendas]int // in each agenda, from 1; 0: not there
}

// under is a turn that was handed over and not seen yet.
type under struct {
	entry ledger.Entry
	names map[string]ledger.Sides // of the messages that were sent
	times map[string]time.Time    // that they speak of
	at    time.Time               // when it was handed over
	said  time.Time               // the earliest time that a message speaks of
	until time.Time               // and the latest
	start int64                   // when the call began
	tick  int64                   // of the message, within the call
	acked int64                   // when the answer came; math.MaxInt64 while it may still be accepted
	ended time.Time               // when the call did
	doubt bool
	alone bool // nothing else was under way

	blamed bool // when it was lost the last time
}

func newState(t timing, now time.Time) *state {
	return &state{
		timing: t, lanes: make(map[string]*lane), troubles: make(map[*lane]struct{}), arrived: now,
		fresh: agenda{which: agendaFresh}, older: agenda{which: agendaOlder}, looks: agenda{which: agendaLooks}, alone: agenda{which: agendaAlone},
		probe: probe{wait: t.firstProbe},
	}
}

// again returns a fresh state.
func (s *state) again(now time.Time) *state {
	n := newState(s.timing, now)
	n.withheld = s.withheld
	return n
}

// action is what is to be done.
type action struct {
	kind  kind
	lane  *lane
	n     int       // turns to hand over, or episodes to ask for
	after int64     // evidence that was known when the look began
	began time.Time // of a look
	alone bool      // of a hand-over: nothing else is under way
}

type kind uint8

const (
	nothing kind = iota
	handOver
	look
	sendProbe
	lookForProbe
	knock // ask whether the memory is up again
)

// next says what is to be done now, or how long there will be nothing. The
// lane of an action is active until finish.
func (s *state) next(now time.Time) (a action, wait time.Duration) {
	if s.paused.After(now) {
		return action{}, s.paused.Sub(now)
	}
	wait = upkeep
	s.settle(now, &wait)
	if s.down {
		if s.knocked {
			return action{}, wait
		}
		s.knocked = true
		return action{kind: knock}, 0
	}
	if l := s.looks.due(now, &wait); l != nil {
		return s.begin(action{kind: look, lane: l, n: max(l.ask, 2*len(l.under)+firstAsk), after: s.evidence, began: now}), 0
	}
	if a := s.nextProbe(now, &wait); a.kind != nothing {
		return a, 0
	}
	if !s.stalled.IsZero() {
		return action{}, wait
	}
	busy := s.under - s.blind + s.reserved // what cannot be looked at takes nobody's room
	room := s.timing.maxUnder - busy
	if a, held := s.nextAlone(room, now, &wait); a.kind != nothing {
		return a, 0
	} else if held {
		return action{}, s.untilStall(now, wait)
	}
	if a := s.nextHandOver(&s.fresh, room, now, &wait); a.kind != nothing {
		return a, 0
	}
	if a := s.nextHandOver(&s.older, min(room, s.timing.olderUnder-busy), now, &wait); a.kind != nothing {
		return a, 0
	}
	return action{}, s.untilStall(now, wait)
}

// untilStall shortens a wait to when silence is too long.
func (s *state) untilStall(now time.Time, wait time.Duration) time.Duration {
	if s.under > 0 {
		wait = min(wait, max(0, s.arrived.Add(s.timing.stallAfter).Sub(now)))
	}
	return wait
}

// nextAlone is the hand-over of a turn that is suspected of ending the worker:
// it goes when nothing else is under way, and nothing else goes while it is, so
// that it is known whether it was to blame. held says that all others wait.
// What cannot be looked at holds up nobody.
func (s *state) nextAlone(room int, now time.Time, wait *time.Duration) (a action, held bool) {
	l := s.alone.due(now, wait)
	switch {
	case l != nil && room > 0 && (s.timing.apart || s.under == s.blind && s.reserved == 0):
		return s.begin(action{kind: handOver, lane: l, n: 1, alone: true}), false
	case s.timing.apart:
		return action{}, false
	}
	return action{}, l != nil || s.solo != nil && !s.solo.blind
}

// nextHandOver is one for the next lane of an agenda, of no more turns than
// there is room for.
func (s *state) nextHandOver(of *agenda, room int, now time.Time, wait *time.Duration) action {
	for room > 0 {
		l := of.due(now, wait)
		if l == nil {
			break
		}
		if n := min(room, s.room(l)); n > 0 {
			return s.begin(action{kind: handOver, lane: l, n: n})
		}
		s.place(l) // which takes it off the agenda
	}
	return action{}
}

// room is how many turns a call may hand over for a lane.
func (s *state) room(l *lane) int {
	return max(0, min(s.timing.batch, s.timing.window-len(l.under)))
}

// retime changes the timing. A lane may now be full that was not, or the other
// way round.
func (s *state) retime(t timing) {
	t.apart = s.timing.apart
	s.timing = t
	for _, l := range s.lanes {
		s.place(l)
	}
}

func (s *state) begin(a action) action {
	if a.kind == handOver {
		s.reserved += a.n
		a.lane.ready, a.lane.fresh = false, false
	}
	if a.alone {
		a.lane.suspect, a.lane.solo = false, true
		if !s.timing.apart {
			s.solo = a.lane
		}
	}
	a.lane.active = true
	s.place(a.lane)
	return a
}

// finish says that an action is over.
func (s *state) finish(a action) {
	if a.kind == handOver {
		s.reserved -= a.n
	}
	if a.lane != nil {
		a.lane.active = false
		s.place(a.lane)
	}
}

// broke says that an action ended in the middle, by a mistake of ours: what it
// was about is tried again after a while.
func (s *state) broke(a action, now time.Time) {
	switch a.kind {
	case handOver:
		s.failed(a.lane, true, now.Add(lastRetry))
	case look:
		s.lookFailed(a.lane, now)
	case sendProbe:
		s.probed("", 0, false, now)
	case lookForProbe:
		s.sawProbes(nil, false, now)
	case knock:
		s.knocked = false
		s.pause(now.Add(lastRetry))
	case nothing:
	}
}

// lane finds or makes the lane of a group.
func (s *state) lane(group string) *lane {
	l := s.lanes[group]
	if l == nil {
		l = &lane{group: group, seenTick: math.MinInt64}
		s.lanes[group] = l
	}
	return l
}

// place puts a lane where it belongs on the agendas, and lets go of one for
// which there is nothing to do.
func (s *state) place(l *lane) {
	if l.solo && !l.active && len(l.under) == 0 {
		l.solo = false
		if s.solo == l {
			s.solo = nil
		}
	}
	unseen := l.blind && len(l.under) > 0
	send := !l.active && l.blocked == 0 && !s.withheld[l.group] && l.ready && l.doubts == 0 && !l.solo && !unseen
	s.alone.set(l, send && l.suspect && len(l.under) == 0, l.next)
	send = send && !l.suspect && s.room(l) > 0
	s.fresh.set(l, send && l.fresh, l.next)
	s.older.set(l, send && !l.fresh, l.next)
	s.looks.set(l, !l.active && l.blocked == 0 && len(l.under) > 0, l.lookAt)
	if !l.active && l.blocked == 0 && !l.ready && len(l.under) == 0 {
		delete(s.lanes, l.group)
		delete(s.troubles, l)
	}
}

// add says that turns wait for a group.
func (s *state) add(group string, fresh bool) {
	l := s.lane(group)
	l.ready, l.fresh = true, l.fresh || fresh
	s.place(l)
}

// tick is a moment of the logical clock.
func (s *state) tick() int64 {
	s.clock++
	return s.clock
}

// handed says that turns are under way in a lane.
func (s *state) handed(l *lane, turns []*under, now time.Time) {
	if s.under == 0 {
		s.arrived = now
	}
	for _, u := range turns {
		s.under++
		if u.doubt {
			s.doubts++
			l.doubts++
		}
		if u.acked == math.MaxInt64 {
			s.late = append(s.late, u)
		}
	}
	if l.blind {
		s.blind += len(turns)
	}
	l.under = append(l.under, turns...)
	l.lookWait = s.firstLook()
	l.lookAt = now.Add(l.lookWait)
	s.place(l)
}

// handedAgain says that turns are still under way, because what was found out
// about them could not be written down. They are looked for more and more
// rarely.
func (s *state) handedAgain(l *lane, turns []*under, now time.Time) {
	wait := l.lookWait
	s.handed(l, turns, now)
	l.lookWait = wait
	l.lookAt = now.Add(wait)
	s.place(l)
}

// firstLook is the wait before a look at what was just handed over: not much
// before it can be there.
func (s *state) firstLook() time.Duration {
	return min(max(s.typical/2, s.timing.firstLook), s.timing.lastLook)
}

// failed says that a hand-over has to be tried again after a while.
func (s *state) failed(l *lane, fresh bool, next time.Time) {
	l.failures++
	l.ready, l.fresh, l.next = true, l.fresh || fresh, next
	s.place(l)
}

// pause has nothing done until then, or until a later time that was said
// before.
func (s *state) pause(until time.Time) {
	if until.After(s.paused) {
		s.paused = until
	}
	if until.After(s.arrived) {
		s.arrived = until // until then there can be no sign of work
	}
}

// leaveAlone is pause where the memory asked for it: that it answers meanwhile
// is no reason to go on.
func (s *state) leaveAlone(until time.Time) {
	if until.After(s.asked) {
		s.asked = until
	}
	s.pause(until)
}

// resume has all lanes tried soon: the memory answers again.
func (s *state) resume(now time.Time, spread func() time.Duration) {
	s.paused, s.down = s.asked, false
	for _, l := range s.lanes {
		if t := now.Add(spread()); l.failures > 0 && t.Before(l.next) {
			l.next = t
			s.place(l)
		}
	}
}

// lookFailed says that a group could not be looked at.
func (s *state) lookFailed(l *lane, now time.Time) {
	s.sight(l, false)
	s.unseen(now)
	l.lookWait = min(2*l.lookWait, s.timing.lastLook)
	l.lookAt = now.Add(l.lookWait)
	s.place(l)
}

// sight notes whether a lane can be looked at.
func (s *state) sight(l *lane, ok bool) {
	if l.blind == ok {
		n := len(l.under)
		if ok {
			n = -n
		}
		s.blind += n
		l.blind = !ok
	}
}

// unseen says that something could not be looked at. Where nothing can be,
// whether there was work is not known; another lane would show it.
func (s *state) unseen(now time.Time) {
	if s.blind >= s.under {
		s.arrived = now
	}
}

// stall says, once, that there has been no sign of work for too long.
func (s *state) stall(now time.Time) bool {
	if s.under == 0 || s.hidden || !s.stalled.IsZero() || s.paused.After(now) || now.Sub(s.arrived) < s.timing.stallAfter {
		return false
	}
	s.stalled = s.arrived
	return true
}
