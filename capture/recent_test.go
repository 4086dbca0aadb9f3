package capture

import (
	"fmt"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func targetsIn(groups ...string) (in []graphiti.Target) {
	for _, g := range groups {
		in = append(in, graphiti.Target{Group: g})
	}
	return in
}

func TestRecentTurnsHaveTheirGroups(t *testing.T) {
	r := newRecent()
	r.begin("begun")
	r.recorded("one", targetsIn("ab", "c"))
	r.recorded("one", targetsIn("d", "ab"))
	for _, tc := range []struct {
		turn   string
		groups []string
		want   bool
	}{
		{"one", []string{"ab"}, true},
		{"one", []string{"d", "c", "ab"}, true},
		{"one", []string{"b"}, false},
		{"one", []string{"a"}, false},
		{"one", []string{"ab", "e"}, false},
		{"one", []string{""}, false},
		{"one", nil, false},
		{"begun", []string{"ab"}, false},
		{"other", []string{"ab"}, false},
	} {
		if got := r.has(tc.turn, targetsIn(tc.groups...)); got != tc.want {
			t.Errorf("turn %s in %q: got %v, want %v", tc.turn, tc.groups, got, tc.want)
		}
	}
}

func TestRecentTurnsAreBounded(t *testing.T) {
	r := newRecent()
	for i := range 2*recentMax + 10 {
		r.recorded(fmt.Sprint("turn", i), targetsIn("group", "other"))
	}
	if r.turns.Len() != recentMax || r.stored.Len() != 2*recentMax {
		t.Errorf("%d turns in %d groups, want %d and %d", r.turns.Len(), r.stored.Len(), recentMax, 2*recentMax)
	}
}
