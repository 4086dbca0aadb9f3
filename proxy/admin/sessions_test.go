package admin

import (
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

// TestSessionsAreBounded checks that the least used session ends if there are too many, and that
// people end no session of an operator.
func TestSessionsAreBounded(t *testing.T) {
	s := newSessions()
	person := service.Caller{Own: service.Selector{User: "user:ann"}}
	there := func(id string) bool { _, ok := s.of(id); return ok }
	operators, unused, used := s.begin(sumOf("x"), service.Operator), s.begin(sumOf("x"), person), s.begin(sumOf("x"), person)
	var last string
	for range maxSessions - 1 {
		there(used)
		last = s.begin(sumOf("x"), person)
	}
	if !there(operators) || there(unused) || !there(used) || !there(last) {
		t.Errorf("the operator's session is there: %v, an unused one %v, a used one %v, the last %v; want all but the unused one", there(operators), there(unused), there(used), there(last))
	}
}
