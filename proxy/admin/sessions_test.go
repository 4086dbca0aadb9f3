package admin

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestSessionsEnd checks that a session ends half an hour after its last request, and at
// the latest twelve hours after its beginning.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, proof := newSessions(), sumOf("secret")
		id := s.begin(proof, service.Operator)
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
		id = s.begin(proof, service.Operator)
		lasted := time.Duration(0)
		for lasted < 2*longest && after(5*time.Minute) {
			lasted += 5 * time.Minute
		}
		if lasted += 5 * time.Minute; lasted != longest {
			t.Errorf("a session that is used lasts for %s, want %s", lasted, longest)
		}
	})
}

// TestSessionsAreBounded checks that a caller with too many sessions loses the oldest one.
// Sessions of other callers end only if there are too many in total, an operator's last.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions()
		begin := func(c service.Caller) string {
			time.Sleep(time.Microsecond)
			return s.begin(sumOf("x"), c)
		}
		person := func(name string) service.Caller {
			return service.Caller{Name: name, Own: service.Selector{User: "user:" + name}}
		}
		there := func(id string) bool { _, ok := s.of(id); return ok }
		operators, anns, first := begin(service.Operator), begin(person("ann")), begin(person("josh"))
		var last string
		for range maxSessions {
			last = begin(service.Caller{Name: "josh by another key", Own: person("josh").Own})
		}
		if !there(operators) || !there(anns) || there(first) || !there(last) || len(s.by) != maxOfCaller+2 {
			t.Errorf("after %d logins of one person there are %d sessions; the operator's %v, another's %v, their first %v, their last %v, want all but their first, of %d",
				maxSessions, len(s.by), there(operators), there(anns), there(first), there(last), maxOfCaller+2)
		}
		for i := range maxSessions {
			last = begin(person(strconv.Itoa(i)))
		}
		if !there(operators) || there(anns) || !there(last) || len(s.by) != maxSessions {
			t.Errorf("%d people later there are %d sessions; the operator's %v, the oldest %v, the newest %v, want %d, and all but the oldest", maxSessions, len(s.by), there(operators), there(anns), there(last), maxSessions)
		}
		time.Sleep(idleFor)
		if begin(person("ann")); len(s.by) != 1 {
			t.Errorf("%d sessions, though all had ended; want 1", len(s.by))
		}
	})
}
