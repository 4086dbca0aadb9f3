package deliver

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

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

// TestReturnIsNoticed checks that a memory that was out of reach gets the next turn within five seconds of its return.
func TestReturnIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			s := &sim{t: t, rand: rand.New(rand.NewPCG(1, 1)), ledger: &shelf{fault: func(int) int { return 0 }}, queues: make(map[string][]accepted), kept: make(map[string][]accepted), back: time.Now().Add(2 * time.Minute)}
			s.ledger.add("g", time.Now())
			s.run(func() bool { return s.ledger.rows[0].state == "delivered" })
			if late := s.kept["g"][0].at.Sub(s.back); late > 5100*time.Millisecond {
				t.Errorf("sent %v after the return", late)
			}
		}
	})
}
