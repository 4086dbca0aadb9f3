package capture

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestRestartsMakeNoDeadLetters checks that no turn is put aside because it happens to be the
// first lost turn in each restart of the memory.
func TestRestartsMakeNoDeadLetters(t *testing.T) {
	g := &graph{takes: 10 * time.Second}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		for i := range 12 {
			add(t, p, spoken(fmt.Sprint(i), fmt.Sprint("g", i%2)))
		}
		for range 5 {
			// The restart loses the first turn with all the others.
			until(t, "turns under way", func() bool { st := p.Status(); return st.UnderWay > 0 && st.Stalled == nil || st.Pending == 0 })
			before := p.Status()
			if before.Pending == 0 {
				t.Fatalf("all is done: %+v", before)
			}
			g.restart()
			until(t, "the loss", func() bool { return p.Status().Lost > before.Lost })
		}
		until(t, "the end", func() bool { return p.Status().Pending == 0 })
		if st := p.Status(); st.Dead != 0 || st.Verified != 12 {
			t.Errorf("got %+v, want Dead 0, Verified 12", st)
		}
		for i := range 12 {
			if n := g.times(fmt.Sprint("g", i%2), fmt.Sprint(i)); n != 1 {
				t.Errorf("turn %d is there %d times", i, n)
			}
		}
	})
}

// TestSuspectGoesAlone checks that a turn that ends the worker is put aside after three
// attempts, the last of them alone, and that all other turns arrive, even if another group
// cannot be read.
func TestSuspectGoesAlone(t *testing.T) {
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprint("beside a group that cannot be read: ", blind), func(t *testing.T) {
			g := &graph{takes: time.Second, raises: func(content string) bool { return strings.Contains(content, "user poison") }}
			g.fails = func(call, group string) error {
				if call == "episodes" && group == "blind" {
					return &graphiti.StatusError{Code: 500}
				}
				return nil
			}
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				all := 20
				if blind {
					add(t, p, spoken("blind", "blind"))
					until(t, "trouble", func() bool { return p.Status().Failing != nil })
				}
				add(t, p, spoken("poison", "a"))
				for i := range all {
					add(t, p, spoken(fmt.Sprint(i), fmt.Sprint("g", i%2)))
				}
				deaths := 0
				for p.Status().Dead == 0 {
					until(t, "a stall", func() bool { st := p.Status(); return st.Stalled != nil || st.Dead > 0 })
					if deaths++; deaths > 10 {
						t.Fatalf("got %+v, want deaths at most 10", p.Status())
					}
					g.restart()
					until(t, "work", func() bool { return p.Status().Stalled == nil })
					lost := p.Status().Lost
					until(t, "the consequence", func() bool { st := p.Status(); return st.Lost > lost || st.Dead > 0 || st.Stalled != nil })
				}
				g.restart() // after the last attempt
				until(t, "the others", func() bool { return p.Status().Verified == all })
				if deaths != 3 { // the fourth one makes it dead, as the first one may be the memory's fault
					t.Errorf("%d stalls, want 3", deaths)
				}
				for i := range all {
					if n := g.times(fmt.Sprint("g", i%2), fmt.Sprint(i)); n != 1 {
						t.Errorf("turn %d is there %d times", i, n)
					}
				}
			})
		})
	}
}

// TestRestartShowsByRefusedConnections checks that delivery goes on within 15 seconds of a restart
// that refuses connections for three seconds, although nothing new is sent, and that a turn that ends the
// worker becomes a dead letter even if no other follows it.
func TestRestartShowsByRefusedConnections(t *testing.T) {
	away := false
	g := &graph{takes: time.Second, raises: func(content string) bool { return strings.Contains(content, "user poison") }}
	g.fails = func(string, string) error {
		if away {
			return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return nil
	}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		for _, id := range []string{"1", "poison", "2", "3", "4"} {
			add(t, p, spoken(id, "a"))
		}
		restarts := 0
		for p.Status().Pending > 0 {
			until(t, "a stall, or the end", func() bool { st := p.Status(); return st.Stalled != nil || st.Pending == 0 })
			before := p.Status()
			if before.Pending == 0 {
				break
			}
			if restarts++; restarts > 6 {
				t.Fatalf("got %+v after %d restarts, want no turn pending", before, restarts)
			}
			g.set(func() { away = true })
			time.Sleep(3 * time.Second)
			g.restart()
			g.set(func() { away = false })
			if before.Pending > 1 {
				time.Sleep(15 * time.Second)
				if st := p.Status(); st.Verified == before.Verified {
					t.Errorf("got %+v 15 seconds after restart %d, want more than %d turns stored", st, restarts, before.Verified)
				}
			} else {
				time.Sleep(time.Hour)
			}
		}
		if st := p.Status(); st.Dead != 1 || st.Verified != 4 {
			t.Errorf("got %+v, want Dead 1, Verified 4", st)
		}
	})
}

// TestRestartAfterRefusals checks that turns which a worker lost while its model refused arrive within 15
// seconds of a restart, although they were sent again as tests meanwhile.
func TestRestartAfterRefusals(t *testing.T) {
	for _, refused := range []time.Duration{time.Second, time.Minute, 2 * time.Minute, 10 * time.Minute, time.Hour} {
		t.Run(refused.String(), func(t *testing.T) {
			away, refuses := false, true
			g := &graph{takes: time.Second, raises: func(string) bool { return refuses }}
			g.fails = func(string, string) error {
				if away {
					return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return nil
			}
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				g.set(func() { refuses = false })
				add(t, p, spoken("0", "a"))
				until(t, "the pace", func() bool { return p.Status().Verified == 1 })
				g.set(func() { refuses = true })
				for _, id := range []string{"1", "2", "3"} {
					add(t, p, spoken(id, "a"))
				}
				time.Sleep(refused)
				g.set(func() { away = true })
				time.Sleep(3 * time.Second)
				g.restart()
				g.set(func() { away, refuses = false, false })
				time.Sleep(15 * time.Second)
				if st := p.Status(); st.Verified != 4 || st.Pending != 0 || st.Dead != 0 {
					t.Errorf("got %+v 15 seconds after the restart, want 4 turns stored", st)
				}
			})
		})
	}
}

// TestRestartOfAnIdleMemory checks that a turn lost in a restart is sent again, and that a
// running memory is not reported as dead.
func TestRestartOfAnIdleMemory(t *testing.T) {
	g := &graph{takes: 5 * time.Second}
	inBubble(t, g, func(t *testing.T, p *Pipeline, log *logged) {
		add(t, p, spoken("1", "a"))
		time.Sleep(time.Second)
		g.restart()
		until(t, "the turn", func() bool { return p.Status().Verified == 1 })
		if n := len(log.lines("without storing them")); n != 0 || g.times("a", "1") != 1 {
			t.Errorf("it lives, and is called dead %d times", n)
		}
	})
}

// TestSuspectWhereGroupsAreApart checks that, with independent groups, a suspect holds up
// only its own group and is put aside within an hour.
func TestSuspectWhereGroupsAreApart(t *testing.T) {
	g := &graph{takes: time.Second, apart: true, raises: func(content string) bool { return strings.Contains(content, "user poison") }}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("poison", "a"))
		add(t, p, spoken("after it", "a"))
		add(t, p, spoken("elsewhere", "b"))
		begun := time.Now()
		until(t, "the other group", func() bool { return g.times("b", "elsewhere") == 1 })
		for i := range 2 { // each proves a loss
			until(t, "the loss", func() bool { return p.Status().Lost > i })
			add(t, p, spoken(fmt.Sprint("later", i), "a"))
		}
		until(t, "the end", func() bool { st := p.Status(); return st.Dead == 1 && st.Verified == 4 && st.Pending == 0 })
		if g.times("a", "after it") != 1 || g.times("b", "elsewhere") != 1 || time.Since(begun) > time.Hour {
			t.Errorf("after %v: %+v", time.Since(begun), p.Status())
		}
	})
}

// TestWaitForADeletionEnds checks that a forget with --wait ends before its timeout, and reports one
// message as left, if Graphiti has lost the last accepted message: no later one proves the loss.
func TestWaitForADeletionEnds(t *testing.T) {
	why := map[bool]graphiti.Diagnosis{false: graphiti.WorkerDead, true: graphiti.ModelFails}
	for name, g := range map[string]*graph{
		"its worker ended":     {raises: func(content string) bool { return strings.Contains(content, "user last") }},
		"its model refused it": {apart: true, raises: func(content string) bool { return strings.Contains(content, "user last") }},
	} {
		t.Run(name, func(t *testing.T) {
			g.takes = time.Second
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				for _, id := range []string{"0", "1", "last"} {
					add(t, p, spoken(id, "a"))
					time.Sleep(10 * time.Second)
				}
				forget(t, p, ledger.Part{Group: "a", Message: graphiti.MessageID(graphiti.EpisodeName("last", graphiti.RoleUser))})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				left, err := p.Withdrawn(ctx, "a", true)
				if left != 1 || err != nil || ctx.Err() != nil {
					t.Errorf("got %d left, %v, and the context is %v; want 1 left and no error in time", left, err, ctx.Err())
				}
				time.Sleep(time.Second)
				if got := p.Status().Diagnosis; got != why[g.apart] {
					t.Errorf("got the diagnosis %q, want %q", got, why[g.apart])
				}
			})
		})
	}
}
