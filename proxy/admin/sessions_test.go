package admin

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSessionsEnd: half an hour after the last request, and twelve hours after their
// begin however often something is asked.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, proof := newSessions(), sumOf("secret")
		id := s.begin(proof, true)
		after := func(pause time.Duration) bool {
			time.Sleep(pause)
			got, ok := s.of(id)
			return ok && got == proof
		}
		for _, tc := range []struct {
			pause time.Duration
			there bool
		}{{idleFor - time.Second, true}, {idleFor - time.Second, true}, {idleFor, false}} {
			if after(tc.pause) != tc.there {
				t.Errorf("after %s without a request it is there: %v, want %v", tc.pause, !tc.there, tc.there)
			}
		}
		if len(s.by) != 0 {
			t.Error("what has ended is held")
		}
		id = s.begin(proof, true)
		lasted := time.Duration(0)
		for lasted < 2*longest && after(5*time.Minute) {
			lasted += 5 * time.Minute
		}
		if lasted += 5 * time.Minute; lasted != longest {
			t.Errorf("a session that is used lasts for %s, want %s", lasted, longest)
		}
	})
}

// TestSessionsAreBounded: the oldest goes, and an operator's only where nobody else has
// one: who has any credential must not end it.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions()
		begin := func(operator bool) string {
			time.Sleep(time.Microsecond)
			return s.begin(sumOf("x"), operator)
		}
		there := func(id string) bool { _, ok := s.of(id); return ok }
		operators, first, second := begin(true), begin(false), begin(false)
		for len(s.by) < maxSessions {
			begin(false)
		}
		last := begin(false)
		if !there(operators) || there(first) || !there(second) || !there(last) || len(s.by) != maxSessions {
			t.Errorf("%d sessions; the operator's %v, the first %v, the second %v, the last %v", len(s.by), there(operators), there(first), there(second), there(last))
		}
		for range 2 * maxSessions {
			last = begin(true)
		}
		if there(operators) || there(second) || !there(last) || len(s.by) != maxSessions {
			t.Errorf("%d sessions of operators", len(s.by))
		}
		time.Sleep(idleFor)
		if begin(false); len(s.by) != 1 {
			t.Errorf("%d sessions, though all had ended", len(s.by))
		}
	})
}
