package deliver

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// window is the most turns in flight to one worker, and tests the most further ones that
	// test a silent worker.
	window = 4
	tests  = 4

	// aloneAfter losses, a turn is sent alone. After maxLosses, the last one alone, it is dead.
	aloneAfter = 2
	maxLosses  = 3

	firstLook = 16   // episodes to list beyond the turns in flight
	deepest   = 4096 // most episodes to list
)

// sender decides the next action for one worker of the memory. It makes no calls and reads no
// clock: a Loop performs the action and reports the result.
//
// A worker processes messages in the order of acceptance. A listed message therefore proves
// that the worker has processed everything sent before it.
type sender struct {
	timing *Timing
	group  string // the worker's only group, or "" if it serves all
	waits  bool   // the ledger may have waiting copies

	flights  []*flight       // in the order of sending
	proven   int64           // everything sent up to this position is processed
	isolate  bool            // the next copy waits for an empty window
	unread   map[string]bool // groups with a failed listing; their turns do not fill the window
	depth    map[string]int  // episodes to list, by group
	lookAt   time.Time
	lookWait time.Duration
	looking  bool      // the last action was a listing
	askAt    time.Time // of the next search that may show why the worker is quiet

	holdUntil time.Time // end of the pause after an unclear answer
	retryAt   time.Time // time of the next attempt after a failure
	failures  int       // failed calls in a row

	pace   time.Duration // usual time of a turn, or 0 if unknown
	sign   time.Time     // last progress, or the first reason to expect some
	silent time.Time     // start of a silence that needs tests, or zero
	testAt time.Time     // of the next test

	restarted bool // the next test is the first after a restart
}

// flight is a turn that was sent but not yet listed.
type flight struct {
	ledger.Copy
	messages    []graphiti.Row  // as sent
	missing     map[string]bool // names of messages not yet listed
	first, last time.Time       // of the messages
	at          time.Time       // of the last call
	proves      int64           // position of the first sending: a listing proves no more
	pos         int64           // position of the last sending, in their order
	doubt       bool            // its call had no clear answer
	single      bool            // sent with nothing else in flight
	ahead       bool            // dated after the memory's clock, so that no listing can show it yet
	hidden      bool            // ahead, and processed
	tests       int             // how often it was sent again since the last restart
	fatal       int             // how often it was the first test after a restart
}

func newFlight(c *ledger.Copy, messages []graphiti.Row, now time.Time) *flight {
	f := &flight{Copy: *c, messages: messages, missing: make(map[string]bool, 2), at: now, proves: c.Sent, pos: c.Sent}
	for i := range messages {
		m := &messages[i]
		f.missing[m.Name] = true
		if i == 0 || m.Said.Before(f.first) {
			f.first = m.Said
		}
		if m.Said.After(f.last) {
			f.last = m.Said
		}
	}
	return f
}

// act is an action of a sender.
type act int

const (
	rest act = iota
	look     // list the groups in flight
	send     // send the next copy
	test     // send the next copy, or one in flight again
)

// never is later than every time that a sender waits for.
const never = time.Duration(math.MaxInt64)

// due reports whether a time has come, and otherwise shortens wait to it.
func due(at, now time.Time, wait *time.Duration) bool {
	if at.After(now) {
		*wait = min(*wait, at.Sub(now))
		return false
	}
	return true
}

// next returns the next action, or the time until there is one.
func (s *sender) next(now time.Time) (a act, wait time.Duration) {
	wait = never
	looks := len(s.flights) > 0 && due(s.lookAt, now, &wait)
	if !looks || s.looking { // a slow listing delays no turn for ever
		if a, w := s.nextSending(now); a != rest || !looks {
			s.looking = false
			return a, min(w, wait)
		}
	}
	s.looking = true
	return look, 0
}

// nextSending is next without listings.
func (s *sender) nextSending(now time.Time) (a act, wait time.Duration) {
	wait = never
	if !due(s.holdUntil, now, &wait) || !due(s.retryAt, now, &wait) {
		return rest, wait
	}
	open := s.open()
	if open == 0 {
		s.isolate = false
	}
	if !slices.ContainsFunc(s.flights, func(f *flight) bool { return !f.hidden }) {
		s.silent = time.Time{} // a failed listing ends no silence
	}
	if s.waits && (open == 0 || s.silent.IsZero() && open < window && !s.isolate && !s.alone()) {
		return send, 0
	}
	if open > 0 && due(s.nextTest(), now, &wait) {
		return test, 0
	}
	return rest, wait
}

// open returns the number of turns that fill the window.
func (s *sender) open() (n int) {
	for _, f := range s.flights {
		if !f.hidden && !s.unread[f.Group] {
			n++
		}
	}
	return n
}

// alone reports whether a turn is alone in flight.
func (s *sender) alone() bool {
	return slices.ContainsFunc(s.flights, func(f *flight) bool { return f.single && f.Losses >= aloneAfter })
}

// patience returns how long a worker may be silent.
func (s *sender) patience() time.Duration {
	switch {
	case s.pace > 0:
		return max(s.timing.Silence, 10*s.pace)
	case slices.ContainsFunc(s.flights, func(f *flight) bool { return f.doubt }):
		return s.timing.Silence
	}
	return s.timing.StallAfter
}

func (s *sender) nextTest() time.Time {
	if s.silent.IsZero() {
		return s.sign.Add(s.patience())
	}
	return s.testAt
}

// tested records a test. Graphiti tries a message for about a minute while its model refuses. The next
// test comes after an eighth of the silence: recovery takes little longer
// than the fault, and a long one gets few tests.
func (s *sender) tested(now time.Time) {
	if s.silent.IsZero() {
		s.silent = s.sign
	}
	s.testAt = now.Add(min(max(2*s.timing.Silence, 2*s.pace, now.Sub(s.silent)/8), s.timing.LastTest))
}

// again returns the turn in flight to send again as a test, or nil. The last one proves most, but a
// turn that was lost or tested before may be the one that stops the worker.
func (s *sender) again() (last *flight) {
	for _, f := range s.flights {
		if f.ahead || s.unread[f.Group] {
			continue
		}
		if last == nil || cmp.Or(cmp.Compare(f.Losses+f.fatal, last.Losses+last.fatal), cmp.Compare(f.tests, last.tests)) <= 0 {
			last = f
		}
	}
	return last
}

// inFlight records a sent turn. doubt marks a call without a clear answer.
func (s *sender) inFlight(f *flight, doubt bool, now time.Time) {
	if s.open() == 0 && s.silent.IsZero() {
		s.sign = now
	}
	f.single, f.doubt = s.open() == 0, doubt
	s.flights = append(s.flights, f)
	s.answered(doubt, now)
}

// drop removes a flight whose turn was forgotten; nil is none.
func (s *sender) drop(f *flight) {
	s.flights = slices.DeleteFunc(s.flights, func(o *flight) bool { return o == f })
}

// tried records that a turn in flight was sent again as a test.
func (s *sender) tried(f *flight, doubt bool, now time.Time) {
	f.at, f.pos, f.doubt, f.tests = now, f.Sent, doubt, f.tests+1
	if s.restarted { // the restart lost all earlier sendings
		f.fatal, f.proves, s.restarted = f.fatal+1, f.pos, false
	}
	if s.stops() == f {
		s.testAt = now.Add(s.patience())
	}
	s.answered(doubt, now)
}

// stops returns the turn that stops the worker, or nil. Such a turn was lost twice, and then sent with
// no other in flight, before and after a restart.
func (s *sender) stops() *flight {
	if len(s.flights) == 1 {
		if f := s.flights[0]; f.single && f.Losses >= aloneAfter && f.fatal > 0 && !f.ahead {
			return f
		}
	}
	return nil
}

// answered records the end of a call that sent a turn.
func (s *sender) answered(doubt bool, now time.Time) {
	s.failures, s.retryAt = 0, time.Time{}
	if doubt {
		s.holdUntil = now.Add(s.timing.DoubtAfter)
	}
	s.lookSoon(now)
}

// lookSoon schedules the next listing: after half the time that the worker needs for the window.
func (s *sender) lookSoon(now time.Time) {
	s.lookWait = min(max(s.pace*time.Duration(s.open())/2, s.timing.FirstLook), s.timing.LastLook)
	s.lookAt = now.Add(s.lookWait)
}

// failed delays further calls after a failure.
func (s *sender) failed(err error, now time.Time) {
	s.retryAt = now.Add(retryIn(s.failures, err))
	s.failures++
}

// groups returns the groups in flight.
func (s *sender) groups() (list []string) {
	for _, f := range s.flights {
		if !slices.Contains(list, f.Group) {
			list = append(list, f.Group)
		}
	}
	return list
}

// depthOf returns the number of episodes to list in a group.
func (s *sender) depthOf(group string) int { return max(firstLook, s.depth[group]) + 2*len(s.flights) }

// view is a listing of a group.
type view struct {
	names  map[string]bool
	rows   []graphiti.Row
	asked  int       // most episodes of the listing
	full   bool      // older episodes may exist
	oldest time.Time // earliest timestamp in the listing
	clock  time.Time // the memory hides later messages; zero if it hides none
}

// findings are the flights that a listing settled.
type findings struct {
	arrived []*flight
	beyond  []*flight // processed, but older than the longest listing
	lost    []*flight // to be sent again
	dead    []*flight // lost too often
	revived bool      // a silence is over
}

// looked settles flights by the listings of groups. Only positions proven before the listings
// count as a proof: the worker may have processed a missing message after the listing.
func (s *sender) looked(views map[string]*view, now time.Time) (fs findings) {
	known, began, progress, smooth := s.proven, s.sign, 0, s.silent.IsZero()
	for _, f := range s.flights {
		v := views[f.Group]
		if v == nil {
			continue
		}
		before := len(f.missing)
		for name := range f.missing {
			if v.names[name] {
				delete(f.missing, name)
			}
		}
		if len(f.missing) == before {
			continue
		}
		if progress++; len(f.missing) == 0 {
			s.proven = max(s.proven, f.proves)
		} else {
			s.proven = max(s.proven, f.proves-1)
		}
		if progress == 1 && f.at.After(began) {
			began = f.at
		}
		smooth = smooth && !f.doubt && f.tests+f.fatal == 0
	}
	deeper := s.settle(views, known, now, &fs)
	switch {
	case progress > 0:
		if s.sign = now; smooth {
			s.measure(now.Sub(began) / time.Duration(progress))
		}
		fs.revived = !s.silent.IsZero()
		s.silent = time.Time{}
		s.lookSoon(now)
	case len(fs.lost)+len(fs.dead)+len(fs.beyond) > 0:
		s.lookSoon(now)
	default:
		s.lookLater(now)
	}
	if deeper || known != s.proven && slices.ContainsFunc(s.flights, func(f *flight) bool { return s.decidable(f, s.proven, views, now) }) {
		s.lookAt, s.looking = now, false // the next listing, before all else, settles them
	}
	return fs
}

// measure updates the worker's pace.
func (s *sender) measure(took time.Duration) {
	took = max(took, time.Millisecond)
	if s.pace > 0 {
		took = (3*s.pace + took) / 4
	}
	s.pace = took
}

// decidable reports whether a listing after a proof settles a flight.
func (s *sender) decidable(f *flight, proven int64, views map[string]*view, now time.Time) bool {
	return f.pos < proven && !now.Before(s.holdUntil) && views[f.Group] != nil && !f.hidden
}

// settle moves the decided flights to fs, and reports whether a longer listing may decide others.
// Only the first missing turn can have stopped the worker, so only its loss counts.
func (s *sender) settle(views map[string]*view, known int64, now time.Time, fs *findings) (deeper bool) {
	left, first := s.flights[:0:0], true
	for _, f := range s.flights {
		v := views[f.Group]
		f.ahead = v != nil && !v.clock.IsZero() && f.last.After(v.clock)
		f.hidden = f.ahead && f.pos < known
		switch {
		case len(f.missing) == 0:
			fs.arrived = append(fs.arrived, f)
			delete(s.depth, f.Group)
			continue
		case v != nil && v.full && !v.oldest.Before(f.first) && v.asked < deepest: // it may be older than the listing
			if s.depth == nil {
				s.depth = make(map[string]int)
			}
			s.depth[f.Group], deeper = min(4*v.asked, deepest), true
			first, left = false, append(left, f)
			continue
		case !s.decidable(f, known, views, now):
			first = first && (f.hidden || s.unread[f.Group])
			left = append(left, f)
			continue
		case v.full && !v.oldest.Before(f.first):
			fs.beyond = append(fs.beyond, f)
			continue
		}
		if first && (f.single || f.Losses < aloneAfter) {
			f.Losses++
		}
		if first = false; f.Losses >= maxLosses {
			fs.dead = append(fs.dead, f)
		} else {
			fs.lost = append(fs.lost, f)
			s.waits = true
		}
	}
	s.flights = left
	return deeper
}

// unseen records that no listing succeeded: silence then proves nothing.
func (s *sender) unseen(now time.Time) {
	if s.silent.IsZero() {
		s.sign = now
	}
	s.lookLater(now)
}

// lookLater schedules the next listing after a longer time than before.
func (s *sender) lookLater(now time.Time) {
	s.lookWait = min(max(2*s.lookWait, s.timing.FirstLook), s.timing.LastLook)
	s.lookAt = now.Add(s.lookWait)
}

// testSoon makes a test due: the memory has probably restarted, it answers again, or an operator
// asks for it.
func (s *sender) testSoon(now time.Time) {
	if s.open() > 0 {
		s.refused()
		s.testAt, s.lookAt, s.restarted = now, now, true
		for _, f := range s.flights {
			f.tests = 0
		}
	}
}

// refused begins a silence after an answer with a cause, such as a status 429.
func (s *sender) refused() {
	if s.silent.IsZero() {
		s.silent = s.sign
		s.testAt = s.sign.Add(s.patience())
	}
}

// idle reports whether the sender has nothing to do.
func (s *sender) idle() bool { return len(s.flights) == 0 && !s.waits }
