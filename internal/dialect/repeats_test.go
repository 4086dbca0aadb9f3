package dialect_test

import (
	"encoding/json"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// TestRepeats: from the third time in a conversation, a sentence counts as a client's.
func TestRepeats(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       bool
	}{
		{"continue", "Continue from where you left off.", true},
		{"stop hook", "Stop hook feedback:\n- [./check.sh]: the tests \"unit\" fail", true},
		{"retry", "Validation has failed: the field \"port\" is missing.", true},
		{"nod", "continue", false},
		{"agreement", "Yes, go on.", false},
		{"short request", "Run the tests again, please.", false},
		{"short request in Japanese", "続けてください", false},
	} {
		for times := range 5 {
			var messages []map[string]string
			for range times {
				messages = append(messages, map[string]string{"role": "user", "content": tc.text}, map[string]string{"role": "assistant", "content": "I see."})
			}
			body, err := json.Marshal(map[string]any{"messages": append(messages, map[string]string{"role": "user", "content": tc.text})})
			if err != nil {
				t.Fatal(err)
			}
			var c dialect.Conversation
			if !(chat.Dialect{}).Parse(body, &c) || c.Last != 2*times {
				t.Fatalf("%s: Last = %d, want %d", tc.name, c.Last, 2*times)
			}
			for i := 0; i <= c.Last; i += 2 {
				same, got := c.Repeats(i)
				if want := tc.want && i >= 4; got != want || want && string(same) != "I see." {
					t.Errorf("%s: Repeats(%d) = %q, %v, want %v", tc.name, i, same, got, want)
				}
			}
		}
	}
}
