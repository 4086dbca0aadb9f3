package deliver

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// machineOf returns a machine for all groups with the default timing.
func machineOf(batch int) *machine {
	return newMachine(DefaultTiming(batch, 5*time.Minute), &sight{}, &holds{}, "", clock)
}

// flying puts n turns of a group in flight.
func flying(m *machine, name string, n int) *group {
	g := m.find(name)
	var flights []*flight
	for i := range n {
		flights = append(flights, newFlight(item(int64(i+1), name, clock), clock))
	}
	m.inFlight(g, flights, false, false, clock)
	return g
}

// wants checks the next action of a machine and returns it.
func wants(t *testing.T, m *machine, now time.Time, k kind, group string, n int) action {
	t.Helper()
	a, wait := m.next(now)
	switch {
	case a.kind != k, a.group != nil && (a.group.name != group || a.n != n):
		t.Fatalf("at %v: %+v, group %+v, want %v of %d for %q", now.Sub(clock), a, a.group, k, n, group)
	case k == nothing && wait <= 0:
		t.Fatalf("it waits for %v", wait)
	}
	return a
}

// TestWindow checks that the window limits the turns in flight, also after a reload makes
// it smaller.
func TestWindow(t *testing.T) {
	m := machineOf(100) // a window of 200
	m.add("a", true)
	m.done(wants(t, m, clock, send, "a", 100))
	flying(m, "a", 190)
	m.add("a", true)
	m.add("b", true)
	m.done(wants(t, m, clock, send, "a", 10))
	m.timing = DefaultTiming(10, 5*time.Minute)
	wants(t, m, clock, nothing, "", 0)
	g := m.find("a")
	m.setFlights(g, g.flights[:63])
	m.done(wants(t, m, clock, send, "b", 1))
}

// TestBackfillComesLast checks that earlier turns are sent after new ones, and only while
// few turns are in flight.
func TestBackfillComesLast(t *testing.T) {
	m := machineOf(10)
	m.add("old", false)
	m.add("both", false)
	m.add("both", true)
	m.done(wants(t, m, clock, send, "both", 10))
	m.done(wants(t, m, clock, send, "old", 8))
	flying(m, "old", 8)
	m.add("old", false)
	wants(t, m, clock, nothing, "", 0)
	m.add("new", true)
	m.done(wants(t, m, clock, send, "new", 10))
}

// TestLooksAtTheHead checks that only the group whose turns were sent first is polled; the
// next group follows once those are seen.
func TestLooksAtTheHead(t *testing.T) {
	m := machineOf(10)
	flying(m, "first", 2)
	flying(m, "second", 2)
	now := clock.Add(time.Second)
	a := wants(t, m, now, look, "first", pollMargin+4)
	m.applyView(a, view{}, now)
	m.done(a)
	wants(t, m, now, nothing, "", 0)
	now = now.Add(time.Second)
	a = wants(t, m, now, look, "first", pollMargin+4)
	fs := m.applyView(a, view{names: map[string]bool{"1.user": true, "1.assistant": true, "2.user": true, "2.assistant": true}}, now)
	m.done(a)
	if len(fs.verified) != 2 {
		t.Errorf("got %+v, want 2 verified", fs)
	}
	wants(t, m, now, look, "second", pollMargin+4)
}

// lookOnly performs all due polls until the time to: those of the group bad fail, the
// others show nothing. It returns the time of a stall, or the zero time.
func lookOnly(m *machine, to time.Time, bad string) time.Time {
	for now := clock; now.Before(to); {
		a, wait := m.next(now)
		switch a.kind {
		case look:
			if a.group.name == bad {
				m.pollFailed(a.group, now)
			} else {
				m.applyView(a, view{}, now)
			}
		case sendBarrier:
			m.barrierSent(sentBarrier{name: fmt.Sprint("barrier ", now), pos: m.beginBarrier()}, true, now)
		case lookForBarrier:
			m.sawBarriers("", nil, now)
		default:
			now = now.Add(max(wait, time.Millisecond))
		}
		m.done(a)
		if !m.stalled.IsZero() {
			return now
		}
	}
	return time.Time{}
}

// TestStallIsSeenBesideAGroupThatCannotBeRead checks that a stall is detected if at least
// one group can be read.
func TestStallIsSeenBesideAGroupThatCannotBeRead(t *testing.T) {
	for _, tc := range []struct {
		groups []string
		stalls bool
	}{
		{[]string{"bad", "good"}, true},
		{[]string{"good", "bad"}, true},
		{[]string{"bad"}, false},
	} {
		m := machineOf(10)
		for _, name := range tc.groups {
			flying(m, name, 1)
		}
		at := lookOnly(m, clock.Add(time.Hour), "bad")
		if got := !at.IsZero(); got != tc.stalls || got && at.Sub(clock) > m.timing.StallAfter+2*m.timing.LastLook {
			t.Errorf("%v: stalled at %v", tc.groups, at)
		}
	}
}

// TestGroupsThatCannotBeReadTakeNoRoom checks that unreadable groups take no room from the
// others and receive nothing until they can be read.
func TestGroupsThatCannotBeReadTakeNoRoom(t *testing.T) {
	m := machineOf(10)
	for i := range 9 {
		g := flying(m, fmt.Sprint("blind", i), 30)
		m.add(g.name, true)
		g.pollWait = time.Hour
		m.pollFailed(g, clock)
	}
	m.add("earlier", false)
	m.add("new", true)
	m.done(wants(t, m, clock, send, "new", 10))
	flying(m, "new", 1)
	a := wants(t, m, clock, send, "earlier", 7)
	m.done(a)
	now := clock.Add(time.Minute)
	for {
		a, _ := m.next(now)
		if a.kind != look {
			t.Fatalf("got %+v, want a look", a)
		}
		m.applyView(a, view{}, now)
		m.done(a)
		if a.group.name == "blind0" {
			break
		}
	}
	if g := m.find("blind0"); g.blind || !g.queued {
		t.Errorf("got %+v, want blind false, queued true", g)
	}
}

// TestIsolatedTurnThatHasToWait checks that the machine wakes when an isolated turn is due,
// sends it when no other turn is in flight, and sends nothing else until it is seen.
func TestIsolatedTurnThatHasToWait(t *testing.T) {
	m := machineOf(10)
	g := m.find("a")
	g.isolate = true
	m.failed(g, true, clock.Add(7*time.Second))
	if a, wait := m.next(clock); a.kind != nothing || wait != 7*time.Second {
		t.Errorf("got %+v, %v, want nothing to do for 7s", a, wait)
	}
	m.add("b", true)
	m.done(wants(t, m, clock, send, "b", 10))
	b := flying(m, "b", 1)
	b.pollAt = clock.Add(time.Hour)
	now := clock.Add(8 * time.Second)
	m.add("c", true)
	if a, _ := m.next(now); a.kind != nothing {
		t.Errorf("beside another turn: %+v", a)
	}
	m.setFlights(b, nil)
	a := wants(t, m, now, send, "a", 1)
	if !a.single {
		t.Errorf("got %+v, want single true", a)
	}
	flying(m, "a", 1).pollAt = clock.Add(time.Hour)
	m.done(a)
	wants(t, m, now, nothing, "", 0)
}

// TestBarrierIsSentOnceForSilence checks that silence causes one barrier before the stall,
// and a stall a limited number of further ones.
func TestBarrierIsSentOnceForSilence(t *testing.T) {
	m := machineOf(10)
	flying(m, "a", 1)
	var sent []time.Duration
	for now := clock; now.Before(clock.Add(time.Hour)); {
		a, wait := m.next(now)
		switch a.kind {
		case look:
			m.applyView(a, view{}, now)
		case sendBarrier:
			sent = append(sent, now.Sub(clock).Round(time.Second))
			m.barrierSent(sentBarrier{name: "b", group: "probe", pos: m.beginBarrier()}, true, now)
		case lookForBarrier:
			m.sawBarriers("probe", nil, now)
		default:
			now = now.Add(max(wait, time.Millisecond))
		}
		m.done(a)
	}
	// One barrier is sent before the stall after five minutes.
	if len(sent) < 10 || sent[0] != 150*time.Second || sent[1] != 5*time.Minute || len(sent) > 20 {
		t.Errorf("got %v, want at least 10 of them, [0] 150*time.Second, [1] 5*time.Minute, at most 20 of them", sent)
	}
}

// TestBarrierWhereGroupsAreApart checks that a barrier is written to the group itself once
// that group can be listed, and that only a barrier in that group proves anything.
func TestBarrierWhereGroupsAreApart(t *testing.T) {
	m := machineOf(10)
	m.own = "a"
	if g := m.barrierGroup("probe"); g != "probe" {
		t.Errorf("written to %s before anything was listed", g)
	}
	m.sight.lists()
	if g := m.barrierGroup("probe"); g != "a" {
		t.Errorf("written to %s", g)
	}
	for _, tc := range []struct {
		group string
		want  int64
	}{{"probe", 0}, {"a", 7}} {
		m.barrierSent(sentBarrier{name: "b", group: tc.group, pos: 7}, true, clock)
		if found, _ := m.sawBarriers(tc.group, map[string]bool{"b": true}, clock); !found || m.proven != tc.want {
			t.Errorf("in %s: found %v, proven %d", tc.group, found, m.proven)
		}
	}
}

// TestBarrierThatIsNotSeenYet checks that the machine keeps polling for a barrier sent
// after the one it has seen, since it would never be removed otherwise.
func TestBarrierThatIsNotSeenYet(t *testing.T) {
	m := machineOf(10)
	m.own = "a"
	for i, name := range []string{"first", "second", "third"} {
		m.barrierSent(sentBarrier{name: name, group: "a", pos: int64(1 + i)}, true, clock)
	}
	for _, tc := range []struct {
		shows string
		left  []string
	}{{"second", []string{"third"}}, {"third", nil}} {
		now := clock.Add(time.Minute)
		found, _ := m.sawBarriers("a", map[string]bool{tc.shows: true}, now)
		var left []string
		for _, s := range m.barrier.sent {
			left = append(left, s.name)
		}
		if !found || !slices.Equal(left, tc.left) {
			t.Fatalf("%s is seen: found %v, looked for are %q, want %q", tc.shows, found, left, tc.left)
		}
		if a, _ := m.next(now.Add(time.Hour)); (a.kind == lookForBarrier) != (tc.left != nil) {
			t.Errorf("%s is seen: the next action is %v, and %q are looked for", tc.shows, a.kind, left)
		} else {
			m.done(a)
		}
	}
}

// TestBarrierThatIsLeft checks that the removal of a barrier is retried until it succeeds,
// also for a barrier of an earlier process.
func TestBarrierThatIsLeft(t *testing.T) {
	m := machineOf(0)
	m.own = "a"
	m.showsOurs("a", clock)
	now := clock
	for tries := range 5 {
		a, wait := m.next(now)
		for since := now; a.kind != removeBarrier && now.Sub(since) <= m.timing.LastBarrier; a, wait = m.next(now) {
			now = now.Add(wait)
		}
		if a.kind != removeBarrier {
			t.Fatalf("after %d tries and %s the next action is %v, want %v", tries, m.timing.LastBarrier, a.kind, removeBarrier)
		}
		if m.idle() {
			t.Errorf("after %d tries the machine is idle, want a further try", tries)
		}
		m.removed("a", tries == 4, now)
		m.done(a)
	}
	if a, _ := m.next(now.Add(time.Hour)); a.kind == removeBarrier || !m.idle() {
		t.Errorf("it is gone: the next action is %v, idle is %v", a.kind, m.idle())
	}
}

// TestBarrierThatComesLate checks that removal is retried if an earlier barrier, whose call
// had no clear answer, may still appear after the removal of a later one.
func TestBarrierThatComesLate(t *testing.T) {
	for accepted, again := range map[bool]bool{false: true, true: false} {
		m := machineOf(0)
		m.own = "a"
		m.barrierSent(sentBarrier{name: "slow", group: "a", pos: 1, accepted: accepted}, true, clock)
		m.barrierSent(sentBarrier{name: "seen", group: "a", pos: 2, accepted: true}, true, clock)
		m.sawBarriers("a", map[string]bool{"seen": true}, clock)
		m.removed("a", true, clock)
		if got := len(m.barrier.left) > 0; got != again {
			t.Errorf("the first was accepted: %v; after the removal of the second: got another attempt %v, want %v", accepted, got, again)
		}
		m.removed("a", true, clock.Add(2*m.timing.StallAfter))
		if len(m.barrier.left) > 0 || len(m.barrier.unclear) > 0 {
			t.Errorf("the first was accepted: %v; later: got attempts in %q, want none", accepted, m.barrier.left)
		}
	}
}

func TestRetriesSpread(t *testing.T) {
	for attempt := range 100 {
		if d := retryIn(attempt, errors.New("x")); d <= 0 || d > lastRetry {
			t.Fatalf("attempt %d waits %v", attempt, d)
		}
	}
	if d := retryIn(0, &graphiti.StatusError{Code: 429, RetryAfter: 30 * time.Second}); d < 30*time.Second {
		t.Errorf("waits %v although the server asked for 30 s", d)
	}
}

// TestPauseIsNotCutShort checks that neither a shorter pause nor a successful answer ends a
// pause early.
func TestPauseIsNotCutShort(t *testing.T) {
	l := &Loop{o: Options{OpenFor: OpenFor}}
	l.run = stopped()
	asked := time.Now().Add(time.Minute)
	l.run.asked = asked
	l.pauseLocked(asked)
	l.pauseLocked(time.Now().Add(10 * time.Second))
	l.breakerChanged(true)
	l.breakerChanged(false)
	if !l.run.paused.Equal(asked) || l.run.down {
		t.Errorf("paused until %v, want %v", l.run.paused, asked)
	}
}
