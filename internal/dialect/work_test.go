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
	if raw != nil && !json.Valid(raw) {
		t.Fatalf("Round() = %.200s, want JSON", raw)
	}
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

// TestRound_HugeOutput: a result of 10 MB keeps both ends, up to a line's end, and no
// escape or nested JSON breaks.
func TestRound_HugeOutput(t *testing.T) {
	line := `a "quoted" \ line of output of a tool` + "\n"
	for name, output := range map[string]string{
		"lines":       "first\n" + strings.Repeat(line, 10<<20/len(line)) + "last",
		"one line":    "first " + strings.Repeat(`\" `, 3<<20) + "last",
		"no space":    strings.Repeat(`\`, 1<<20),
		"nested JSON": `{"output":"` + strings.Repeat(`\\n\"x\"`, 1<<20) + `","exit_code":3}`,
	} {
		content, _ := json.Marshal(output)
		got := round(t, chat.Dialect{}, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":`+string(content)+`}]}`)
		text := got.Results[0].Text
		if len(text) > 9<<10 {
			t.Errorf("%s: kept %d bytes, want at most 9 kB", name, len(text))
		}
		if name == "nested JSON" && !strings.HasSuffix(text, `"exit_code":3}`) || strings.HasPrefix(output, "first") && (!strings.HasPrefix(text, "first") || !strings.HasSuffix(text, "last")) {
			t.Errorf("%s: kept %.60q … %q, want both ends", name, text, text[max(0, len(text)-60):])
		}
	}
}

func BenchmarkRound(b *testing.B) {
	for name, size := range map[string]int{"4kB": 4 << 10, "1MB": 1 << 20, "10MB": 10 << 20} {
		line := `a "quoted" \ line of output of a tool` + "\n"
		content, _ := json.Marshal(strings.Repeat(line, size/len(line)+1))
		body := []byte(`{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":` + string(content) + `}]}`)
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse(body, &c) {
			b.Fatal("Parse = false, want true")
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Round()
			}
		})
	}
}
