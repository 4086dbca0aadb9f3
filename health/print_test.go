package health

import (
	"strings"
	"testing"
)

// TestMemoryThatIsOffRecallsNothing: a person is not told that recall is on
// where nothing can be recalled.
func TestMemoryThatIsOffRecallsNothing(t *testing.T) {
	for state, want := range map[State]bool{StateOff: false, StateWorking: true} {
		var out strings.Builder
		(&Status{Memory: Memory{Backend: "graphiti", State: state, Recall: true, Ingest: true}}).Print(&out)
		if got := strings.Contains(out.String(), "recall on, ingestion on"); got != want {
			t.Errorf("%s: %s", state, out.String())
		}
	}
}
