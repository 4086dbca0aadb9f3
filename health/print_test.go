package health

import (
	"strings"
	"testing"
)

// TestUnknownTagsAreShown with the client's name.
func TestUnknownTagsAreShown(t *testing.T) {
	for want, tags := range map[string]map[string]int64{
		"1 turn of Codex begins with": {"Codex": 1},
		"3 turns of other begin with": {"other": 3, "Codex": 1},
		"":                            nil,
	} {
		var out strings.Builder
		(&Status{UnknownTags: tags}).Print(&out)
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "no rule knows") != (want != "") {
			t.Errorf("%v: %s", tags, got)
		}
	}
}

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
