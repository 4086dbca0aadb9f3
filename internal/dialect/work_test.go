package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

func round(t *testing.T, d dialect.Dialect, body string) dialect.Work {
	t.Helper()
	var c dialect.Conversation
	if !d.Parse([]byte(body), &c) {
		t.Fatalf("Parse(%.200s) = false, want true", body)
	}
	raw := c.Round()
	return dialect.ReadRound(d, raw)
}

func TestRound_NewestInEachAPI(t *testing.T) {
	want := dialect.Work{
		Calls:   []dialect.Call{{ID: "1", Name: "bash", Arguments: `{"command":"ls"}`}, {ID: "2", Name: "read", Arguments: `{"path":"a.go"}`}},
		Results: []dialect.Result{{ID: "1", Text: "a.go\nb.go"}, {ID: "2", Text: "x"}},
	}
	for name, tc := range map[string]struct {
		d    dialect.Dialect
		body string
	}{
		"chat": {chat.Dialect{}, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"0","function":{"name":"old","arguments":"{}"}}]},{"role":"tool","tool_call_id":"0","content":"old"},
			{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"2","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]},
			{"role":"tool","tool_call_id":"1","content":"a.go\nb.go"},{"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"x"}]}]}`},
		"messages": {messages.Dialect{}, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"bash","input":{"command":"ls"}},{"type":"tool_use","id":"2","name":"read","input":{"path":"a.go"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"a.go\nb.go"},{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"x"}]}]}]}`},
		"responses": {responses.Dialect{}, `{"input":[{"role":"user","content":"q"},{"type":"function_call","call_id":"0","name":"old","arguments":"{}"},{"type":"function_call_output","call_id":"0","output":"old"},{"type":"reasoning","summary":[]},
			{"type":"function_call","call_id":"1","name":"bash","arguments":"{\"command\":\"ls\"}"},{"type":"function_call","call_id":"2","name":"read","arguments":"{\"path\":\"a.go\"}"},
			{"type":"function_call_output","call_id":"1","output":"a.go\nb.go"},{"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"x"}]}]}`},
		"gemini": {gemini.Dialect{}, `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"bash","args":{"command":"ls"}}},{"functionCall":{"id":"2","name":"read","args":{"path":"a.go"}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"1","name":"bash","response":{"output":"a.go\nb.go"}}},{"functionResponse":{"id":"2","name":"read","response":{"output":"x"}}}]}]}`},
	} {
		got := round(t, tc.d, tc.body)
		if name == "gemini" {
			want := dialect.Work{Calls: want.Calls, Results: []dialect.Result{{ID: "1", Text: `{"output":"a.go\nb.go"}`}, {ID: "2", Text: `{"output":"x"}`}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRound_OnlyResults(t *testing.T) {
	got := round(t, responses.Dialect{}, `{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"1","output":"x"}]}`)
	if want := (dialect.Work{Results: []dialect.Result{{ID: "1", Text: "x"}}}); !cmp.Equal(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	r := responses.Dialect{}.NewReader("")
	r.Body([]byte(`{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"1","name":"bash","arguments":"{\"command\":\"ls\"}"}]}`))
	if want := []dialect.Call{{ID: "1", Name: "bash", Arguments: `{"command":"ls"}`}}; !cmp.Equal(want, r.Answer().Calls.Made.Calls) {
		t.Errorf("the answer's calls = %+v, want %+v", r.Answer().Calls.Made.Calls, want)
	}
}

func TestRound_NoNewResults(t *testing.T) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"q"}]}`,
		`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"}]}`,
	} {
		if got := round(t, chat.Dialect{}, body); got.Calls != nil || got.Results != nil {
			t.Errorf("Round of %s = %+v, want none", body, got)
		}
	}
}

// TestRound_LongOutput: a long result keeps both ends, where clients state an exit code. In a
// round that is too long, it has no text.
func TestRound_LongOutput(t *testing.T) {
	line := `a "quoted" \ line of output of a tool` + "\n"
	for size, ends := range map[int][2]string{100 << 10: {"first\n", "\nlast"}, 10 << 20: {}} {
		content, _ := json.Marshal("first\n" + strings.Repeat(line, size/len(line)) + "last")
		got := round(t, chat.Dialect{}, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":`+string(content)+`}]}`)
		text := got.Results[0].Text
		if len(text) > 3<<10 || !strings.HasPrefix(text, ends[0]) || !strings.HasSuffix(text, ends[1]) {
			t.Errorf("%d bytes: kept %d, %.60q … %q, want at most 3 kB, both ends", size, len(text), text, text[max(0, len(text)-60):])
		}
	}
}
