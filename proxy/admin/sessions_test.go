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
		if s.operators.Len() != 0 {
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

// TestSessionsAreBounded checks that the least used session ends if there are too many, of a
// caller or in total, and that people end no session of an operator.
func TestSessionsAreBounded(t *testing.T) {
	s := newSessions()
	begin := func(c service.Caller) string { return s.begin(sumOf("x"), c) }
	person := func(i int) service.Caller { return service.Caller{Own: service.Selector{User: strconv.Itoa(i)}} }
	there := func(id string) bool { _, ok := s.of(id); return ok }
	operators, anns, first := begin(service.Operator), begin(person(-1)), begin(person(0))
	var last string
	for range maxSessions {
		last = begin(service.Caller{Name: "by another key", Own: person(0).Own})
	}
	if n := s.people.Len(); !there(operators) || !there(anns) || there(first) || !there(last) || n != maxOfCaller+1 {
		t.Errorf("after %d logins of one person there are %d sessions; the operator's %v, another's %v, their first %v, their last %v", maxSessions, n, there(operators), there(anns), there(first), there(last))
	}
	for i := range maxSessions {
		there(anns)
		begin(person(i + 1))
	}
	if !there(operators) || !there(anns) || there(last) {
		t.Errorf("%d people later the operator's session is there: %v, a used one %v, an unused one %v", maxSessions, there(operators), there(anns), there(last))
	}
}
