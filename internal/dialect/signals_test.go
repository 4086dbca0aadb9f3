package dialect_test

import (
	"fmt"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// oneHeader is a Header with one field.
type oneHeader struct{ name, value string }

func (h oneHeader) Peek(name string) []byte {
	if name == h.name {
		return []byte(h.value)
	}
	return nil
}

// TestCodexSubagentsThread checks that a turn which a subagent runs for another turn counts
// as a subagent's. A turn that a person adds to the subagent's thread counts as the
// person's, but the earlier messages of the thread do not.
func TestCodexSubagentsThread(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"Count the sheep."},{"role":"assistant","content":"Seven."},{"role":"user","content":"The river is called Isar."}]}`)
	for _, tc := range []struct {
		source, turn, root string
		subagent, history  bool
	}{
		{"user", "t1", "t1", false, true},
		{"subagent", "t1", "t0", true, false},
		{"subagent", "t1", "", true, false}, // older versions send no root
		{"subagent", "", "", true, false},
		{"subagent", "t1", "t1", false, false},
	} {
		var c dialect.Conversation
		if !registry.All[0].Parse(body, &c) {
			t.Fatal("not understood")
		}
		told := fmt.Sprintf(`{"request_kind":"turn","thread_source":%q,"turn_id":%q,"root_turn_id":%q}`, tc.source, tc.turn, tc.root)
		if got := c.Signals(oneHeader{"X-Codex-Turn-Metadata", told}); got != tc.subagent {
			t.Errorf("%s: subagent %v", told, got)
		}
		if text, _ := c.AnswerTo(0); (text != nil) != tc.history {
			t.Errorf("%s: its history is a person's: %v", told, !tc.history)
		}
	}
}
