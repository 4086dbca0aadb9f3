package deliver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// breaking is a Graphiti whose calls end without a clear answer for some turns.
type breaking struct {
	*sim
	breaks map[string]bool
	calls  map[string][]time.Time // by turn
}

func (b *breaking) Write(ctx context.Context, group string, messages []graphiti.Row) error {
	turn := messages[0].Text
	b.calls[turn] = append(b.calls[turn], time.Now())
	if b.breaks[turn] {
		return errUnclear
	}
	return b.sim.Write(ctx, group, messages)
}

// TestUnclearAnswersWithoutVerification checks that the pause between calls without a clear answer
// grows to an hour, and that their turn is dead only after another one was taken.
func TestUnclearAnswersWithoutVerification(t *testing.T) {
	for name, tc := range map[string]struct {
		turns, broken int  // the first ones are broken
		later         bool // another turn is added after hours
		state         string
		calls         int
	}{
		"the only turn":            {1, 1, false, "pending", 10},
		"all turns fail":           {2, 2, false, "pending", 8},
		"another turn was taken":   {2, 1, false, "dead", 4},
		"another turn comes later": {1, 1, true, "dead", 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sim{t: t, rand: rand.New(rand.NewPCG(1, 1)), ledger: &shelf{fault: func(int) int { return 0 }}, queues: make(map[string][]accepted), kept: make(map[string][]accepted)}
				g := &breaking{s, map[string]bool{"1": true, "2": tc.broken == 2}, make(map[string][]time.Time)}
				for range tc.turns {
					s.ledger.add("g", time.Now())
				}
				l := New(Options{
					Ledger: s.ledger, Memory: g, Timing: DefaultTiming(5 * time.Minute), Timeout: time.Minute,
					OnDelivered: func(Delivery) {}, OnSeen: func(string, []graphiti.Row) {}, Log: slog.New(slog.DiscardHandler),
				}, false)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { // ends with stop
					l.Run(ctx)
					close(ended)
				}()
				time.Sleep(12 * time.Hour)
				synctest.Wait()
				if tc.later {
					s.ledger.mu.Lock()
					if got := s.ledger.rows[0].state; got != "pending" {
						t.Errorf("the only turn is %s before the other one, want pending", got)
					}
					s.ledger.add("g", time.Now())
					s.ledger.mu.Unlock()
					time.Sleep(3 * time.Hour)
					synctest.Wait()
				}
				stop()
				<-ended
				r := s.ledger.rows[0]
				if r.state != tc.state || tc.state == "dead" && r.reason != reasonUnclear {
					t.Errorf("the turn is %s: %s; want %s", r.state, r.reason, tc.state)
				}
				for _, o := range s.ledger.rows[1:] {
					if !g.breaks[o.Turn] && o.state != "delivered" {
						t.Errorf("turn %s is %s, want delivered", o.Turn, o.state)
					}
				}
				calls := g.calls["1"]
				if len(calls) < tc.calls {
					t.Errorf("the turn was sent %d times, want at least %d", len(calls), tc.calls)
				}
				if tc.broken == 1 { // else two turns share the pauses
					checkPauses(t, calls)
				}
			})
		})
	}
}

// checkPauses checks the pauses between the calls for a turn: after three calls they double up to an
// hour.
func checkPauses(t *testing.T, calls []time.Time) {
	t.Helper()
	for i := 1; i < len(calls); i++ {
		least, most := time.Duration(0), lastRetry
		if i >= maxLosses {
			least = min(30*time.Second<<i, time.Hour)
			most += least
		}
		if got := calls[i].Sub(calls[i-1]); got < least || got > most {
			t.Errorf("pause before call %d: %v, want %v to %v", i+1, got, least, most)
		}
	}
}

// TestSlowWorkerGetsOneCopy checks that a turn is stored once by a worker with a usual time of a second that
// then tries a message for 70 seconds, as Graphiti's MCP server does while its model refuses.
func TestSlowWorkerGetsOneCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sim{t: t, rand: rand.New(rand.NewPCG(1, 1)), ledger: &shelf{fault: func(int) int { return 0 }}, queues: make(map[string][]accepted), kept: make(map[string][]accepted), apart: true, takes: time.Second}
		add := func() {
			s.ledger.add("g", time.Now())
			last := s.ledger.rows[len(s.ledger.rows)-1]
			last.messages = last.messages[:1]
		}
		add()
		s.run(func() bool {
			rows := s.ledger.rows
			if len(rows) == 1 && rows[0].state == "delivered" {
				s.takes = 70 * time.Second
				add()
			}
			return len(rows) == 2 && rows[1].state == "delivered"
		})
		time.Sleep(time.Hour)
		s.work()
		if n := s.times("2.user"); n != 1 {
			t.Errorf("the turn is there %d times, want once", n)
		}
	})
}
