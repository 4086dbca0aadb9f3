package inject

import (
	"errors"
	"testing"
)

// TestATurnIsDecidedOnce checks that a turn's first request reports a decision, and that
// retries and tool rounds do not, if decisions can be read. Counters of turns depend on it.
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
		m := memory(t, always(tc.finds...), tc.blocks)
		for i, body := range []string{turn1, turn1, turn1tool, turn2} {
			if _, p := ask(t, m, body, tc.mode); p.Decided != tc.want[i] {
				t.Errorf("%s, request %d: decided %v, want %v", tc.name, i, p.Decided, tc.want[i])
			}
		}
	}
}
