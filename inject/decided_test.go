package inject

import (
	"errors"
	"testing"
)

// TestATurnIsDecidedOnce: its first request says so, and no retry or tool round does. What
// is counted for each turn relies on it.
func TestATurnIsDecidedOnce(t *testing.T) {
	for _, tc := range []struct {
		name   string
		blocks *fakeDecisions
		finds  []string
		mode   Mode
		want   []bool // of the first request, a retry, a tool round, the next turn
	}{
		{"a block is shown", &fakeDecisions{}, []string{"cat Miso"}, both, []bool{true, false, false, true}},
		{"nothing is found", &fakeDecisions{}, nil, both, []bool{true, false, false, true}},
		{"memory is off", &fakeDecisions{}, nil, Mode{Reason: ReasonOptOut}, []bool{true, false, false, true}},
		{"decisions cannot be read", &fakeDecisions{lookupErr: errors.New("disk gone")}, nil, both, []bool{true, true, false, true}},
	} {
		m := memory(t, always(tc.finds...), tc.blocks, &fakeFacts{})
		for i, body := range []string{turn1, turn1, turn1tool, turn2} {
			if _, p := ask(t, m, body, tc.mode); p.Decided != tc.want[i] {
				t.Errorf("%s, request %d: decided %v, want %v", tc.name, i, p.Decided, tc.want[i])
			}
		}
	}
}
