package capture

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// clock is a moment that tests of the state count from.
var clock = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// stateOf is a state whose timing is that of a configuration.
func stateOf(batch int) *state {
	o := Options{MaxBatch: batch, StallAfter: 5 * time.Minute}
	return newState(o.defaultTiming(), clock)
}

// underWayIn has n turns be under way in a lane, in which more wait; it is
// looked at later.
func underWayIn(s *state, group string, n int, later time.Duration) *lane {
	s.add(group, true)
	l := s.lane(group)
	start := s.tick()
	var turns []*under
	for i := range n {
		turns = append(turns, &under{names: map[string]ledger.Sides{fmt.Sprint(group, i): ledger.SideUser}, at: clock, start: start, tick: s.tick()})
	}
	acked := s.tick()
	for _, u := range turns {
		u.acked = acked
	}
	s.handed(l, turns, clock)
	l.lookAt = clock.Add(later)
	s.place(l)
	return l
}

// TestSmallerBatches: SIGHUP makes batches, and with them the window, smaller
// than what is under way. A full lane is given nothing, and the others go on.
func TestSmallerBatches(t *testing.T) {
	for _, under := range []int{32, 56} { // as many as the new window takes, and more
		s := stateOf(100)
		full := underWayIn(s, "full", under, time.Hour)
		s.add("other", true)
		o := Options{MaxBatch: 10, StallAfter: 5 * time.Minute}
		s.retime(o.defaultTiming())
		a, _ := s.next(clock)
		if a.kind != handOver || a.lane.group != "other" || a.n != 10 {
			t.Fatalf("%d under way: %+v", under, a)
		}
		s.finish(a)
		if a, _ := s.next(clock); a.kind != nothing || a.n != 0 {
			t.Errorf("%d under way: %+v", under, a)
		}
		s.keep(full, full.under[:31])
		s.place(full)
		if a, _ := s.next(clock); a.kind != handOver || a.lane != full || a.n != 1 {
			t.Errorf("%d under way: %+v", under, a)
		}
	}
}

// TestLargerBatches: a lane that was full is not any more.
func TestLargerBatches(t *testing.T) {
	s := stateOf(10)
	full := underWayIn(s, "full", 32, time.Hour)
	if a, _ := s.next(clock); a.kind != nothing {
		t.Fatalf("%+v", a)
	}
	o := Options{MaxBatch: 100, StallAfter: 5 * time.Minute}
	s.retime(o.defaultTiming())
	if a, _ := s.next(clock); a.lane != full || a.n != 100 {
		t.Errorf("%+v", a)
	}
}

// TestMistakeInDelivery: what panics ends neither the process nor delivery,
// and holds no lock.
func TestMistakeInDelivery(t *testing.T) {
	told := 0
	g := &graph{}
	inBubble(t, g, func(t *testing.T, p *Pipeline, log *logged) {
		add(t, p, spoken("1", "a"))
		until(t, "the first turn", func() bool { return p.Status().Verified == 1 })
		add(t, p, spoken("2", "a"))
		until(t, "the second turn", func() bool { return p.Status().Verified == 2 })
		if told != 2 || g.times("a", "1") != 1 || g.times("a", "2") != 1 || len(log.lines("a mistake")) != 1 {
			t.Errorf("told %d times; %q", told, log.lines(""))
		}
	}, func(o *Options) {
		o.OnStored = func(string) {
			if told++; told == 1 {
				panic("BUG")
			}
		}
	})
}

// lookOnly performs the looks that are due, of which those at bad fail and the
// others, and those for probes, show nothing, until a moment.
func lookOnly(s *state, from, to time.Time, bad string) time.Time {
	for now := from; now.Before(to); {
		a, wait := s.next(now)
		switch {
		case a.kind == nothing:
			now = now.Add(max(wait, time.Millisecond))
		case a.kind == sendProbe:
			s.probed(fmt.Sprint("probe ", now), s.tick(), true, now)
		case a.kind == lookForProbe:
			s.sawProbes(nil, true, now)
		case a.lane.group == bad:
			s.lookFailed(a.lane, now)
			s.finish(a)
		default:
			s.saw(a, seen{}, now)
			s.finish(a)
		}
		if s.stall(now) {
			return now
		}
	}
	return time.Time{}
}

// TestStallIsSeenBesideAGroupThatCannotBeRead: another group's look shows that
// there is no work. Where no group can be read it is not known.
func TestStallIsSeenBesideAGroupThatCannotBeRead(t *testing.T) {
	for _, tc := range []struct {
		groups []string
		stalls bool
	}{
		{[]string{"bad", "good"}, true},
		{[]string{"good", "bad"}, true},
		{[]string{"bad"}, false},
	} {
		s := stateOf(10)
		for _, g := range tc.groups {
			s.lane(g).ready = false
			underWayIn(s, g, 1, time.Second).ready = false
			s.place(s.lane(g))
		}
		at := lookOnly(s, clock, clock.Add(time.Hour), "bad")
		if got := !at.IsZero(); got != tc.stalls || got && at.Sub(clock) > s.timing.stallAfter+2*s.timing.lastLook {
			t.Errorf("%v: stalled at %v", tc.groups, at)
		}
	}
}

// TestTroubleOfOneGroup: that others are delivered neither hides it nor has it
// logged again and again; and a dead worker is noticed beside it.
func TestTroubleOfOneGroup(t *testing.T) {
	g := &graph{takes: time.Second, fails: func(call, group string) error {
		if call == "episodes" && group == "bad" {
			return errors.New("the answer is not what Graphiti sends")
		}
		return nil
	}}
	inBubble(t, g, func(t *testing.T, p *Pipeline, log *logged) {
		add(t, p, spoken("bad", "bad"))
		for i := range 50 {
			add(t, p, spoken(fmt.Sprint(i), "good"))
			until(t, "delivery", func() bool { return p.Status().Verified == i+1 })
		}
		st := p.Status()
		if st.Failing == nil || st.LastError == "" || st.Stalled != nil {
			t.Errorf("%+v", st)
		}
		g.set(func() { g.dead = true })
		add(t, p, spoken("lost", "good"))
		begun := time.Now()
		until(t, "the stall", func() bool { return p.Status().Stalled != nil })
		if d := time.Since(begun); d > 6*time.Minute {
			t.Errorf("noticed after %v", d)
		}
		if n := len(log.lines("cannot be delivered")); n != 1 {
			t.Errorf("logged %d times", n)
		}
		g.restart()
		g.set(func() { g.fails = nil })
		until(t, "all turns", func() bool { return p.Status().Verified == 52 })
		if st := p.Status(); st.Failing != nil || len(log.lines("delivered again")) != 1 {
			t.Errorf("%+v\n%q", st, log.lines(""))
		}
		if g.times("bad", "bad") != 1 || g.times("good", "lost") != 1 {
			t.Error("a turn is not there once")
		}
	})
}

// TestMemoryThatAsksToBeLeftAlone is, whatever it was asked, and for as long as
// it said; that the circuit breaker waits less changes nothing.
func TestMemoryThatAsksToBeLeftAlone(t *testing.T) {
	for _, tc := range []struct {
		call string // that is answered so
		code int
		asks time.Duration
		want time.Duration
	}{
		{"write", 503, 10 * time.Minute, 10 * time.Minute},
		{"episodes", 429, 10 * time.Minute, 10 * time.Minute},
		{"health", 503, 10 * time.Minute, 10 * time.Minute},
		{"write", 429, 48 * time.Hour, maxRetryAfter},
	} {
		t.Run(fmt.Sprint(tc.call, " ", tc.asks), func(t *testing.T) {
			var asked time.Time
			var after time.Duration // until the next call
			g := &graph{fails: func(call, group string) error {
				switch {
				case !asked.IsZero():
					after = time.Since(asked)
					return nil
				case call == tc.call:
					asked = time.Now()
					return &graphiti.StatusError{Code: tc.code, RetryAfter: tc.asks}
				case call == "write" && tc.call == "health":
					return &graphiti.StatusError{Code: 503}
				}
				return nil
			}}
			ask := g.fails
			g.fails = func(call, group string) error {
				if after > 0 {
					return nil
				}
				return ask(call, group)
			}
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				add(t, p, spoken("1", "a"))
				until(t, "the answer", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return !asked.IsZero() })
				add(t, p, spoken("2", "b"))
				if tc.call != "health" {
					until(t, "trouble", func() bool { return strings.Contains(p.Status().LastError, "left alone for") })
				}
				until(t, "both turns", func() bool { return p.Status().Verified == 2 })
				if after < tc.want || after > tc.want+time.Minute {
					t.Errorf("left alone for %v, want %v", after, tc.want)
				}
				if st := p.Status(); st.Stalled != nil || g.times("a", "1") != 1 || g.times("b", "2") != 1 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestPauseIsNotCutShort by a shorter one, nor by an answer.
func TestPauseIsNotCutShort(t *testing.T) {
	s := stateOf(10)
	s.add("a", true)
	s.leaveAlone(clock.Add(time.Minute))
	s.pause(clock.Add(10 * time.Second))
	s.resume(clock.Add(time.Second), func() time.Duration { return 0 })
	if a, wait := s.next(clock.Add(2 * time.Second)); a.kind != nothing || wait != 58*time.Second {
		t.Errorf("%+v, %v", a, wait)
	}
	if a, _ := s.next(clock.Add(time.Minute)); a.kind != handOver {
		t.Errorf("%+v", a)
	}
}

// TestGroupsThatCannotBeReadTakeNoRoom from the others, and are given nothing
// more until they can be.
func TestGroupsThatCannotBeReadTakeNoRoom(t *testing.T) {
	s := stateOf(10)
	for i := range 9 {
		l := underWayIn(s, fmt.Sprint("blind", i), 30, time.Hour)
		s.lookFailed(l, clock)
	}
	s.add("earlier", false)
	s.add("new", true)
	for _, want := range []string{"new", "earlier"} {
		a, _ := s.next(clock)
		if a.kind != handOver || a.lane.group != want {
			t.Fatalf("%+v", a)
		}
		s.reserved -= a.n - 1 // it hands over one
	}
	if a, _ := s.next(clock); a.kind != nothing {
		t.Errorf("%+v", a)
	}
	now := clock.Add(time.Minute)
	a, _ := s.next(now)
	if a.kind != look {
		t.Fatalf("%+v", a)
	}
	s.saw(a, seen{}, now)
	s.finish(a)
	if a.lane.blind || a.lane.pos[agendaFresh] == 0 {
		t.Errorf("%+v", a.lane)
	}
}
