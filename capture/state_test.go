package capture

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestMistakeInDelivery checks that a panic ends neither the process nor delivery, and
// leaves no lock held.
func TestMistakeInDelivery(t *testing.T) {
	looks := 0
	g := &graph{fails: func(call, _ string) error {
		if call == "episodes" {
			if looks++; looks == 1 {
				panic("BUG")
			}
		}
		return nil
	}}
	inBubble(t, g, func(t *testing.T, p *Pipeline, log *logged) {
		add(t, p, spoken("1", "a"))
		until(t, "the first turn", func() bool { return p.Status().Verified == 1 })
		add(t, p, spoken("2", "a"))
		until(t, "the second turn", func() bool { return p.Status().Verified == 2 })
		if g.times("a", "1") != 1 || g.times("a", "2") != 1 || len(log.lines("panicked")) != 1 {
			t.Errorf("%d listings; %q", looks, log.lines(""))
		}
	})
}

// TestTroubleOfOneGroup checks that a failing group stays in the status and is logged once
// while other groups are delivered, and that a dead worker is noticed meanwhile.
func TestTroubleOfOneGroup(t *testing.T) {
	g := &graph{takes: time.Second, fails: func(call, group string) error {
		if call == "episodes" && group == "bad" {
			return &graphiti.StatusError{Code: 500}
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
			t.Errorf("got %+v, want Failing and LastError set, no stall", st)
		}
		g.set(func() { g.dead = true })
		add(t, p, spoken("lost", "good"))
		begun := time.Now()
		until(t, "the stall", func() bool { return p.Status().Stalled != nil })
		if d := time.Since(begun); d > 6*time.Minute {
			t.Errorf("noticed after %v", d)
		}
		if n := len(log.lines("stay queued")); n != 1 {
			t.Errorf("logged %d times", n)
		}
		g.restart()
		g.set(func() { g.fails = nil })
		until(t, "all turns", func() bool { return p.Status().Verified == 52 })
		if st := p.Status(); st.Failing != nil || len(log.lines("delivery works again")) != 1 {
			t.Errorf("got %+v\n%q, want no failure, and one line about the recovery", st, log.lines(""))
		}
		if g.times("bad", "bad") != 1 || g.times("good", "lost") != 1 {
			t.Error("a turn is not there once")
		}
	})
}

// TestMemoryThatAsksToBeLeftAlone checks that a memory gets no calls for the pause that it
// asks for in any answer, at most an hour, although it would try again earlier.
func TestMemoryThatAsksToBeLeftAlone(t *testing.T) {
	for _, tc := range []struct {
		call string // with this answer
		code int
		asks time.Duration
		want time.Duration
	}{
		{"write", 503, 10 * time.Minute, 10 * time.Minute},
		{"episodes", 429, 10 * time.Minute, 10 * time.Minute},
		{"write", 429, 48 * time.Hour, time.Hour},
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
				until(t, "trouble", func() bool { return strings.Contains(p.Status().LastError, "asked for a pause of") })
				until(t, "both turns", func() bool { return p.Status().Verified == 2 })
				if after < tc.want || after > tc.want+time.Minute {
					t.Errorf("asked for a pause for %v, want %v", after, tc.want)
				}
				if st := p.Status(); st.Stalled != nil || g.times("a", "1") != 1 || g.times("b", "2") != 1 {
					t.Errorf("got %+v, want no stall, and each turn sent once", st)
				}
			})
		})
	}
}
