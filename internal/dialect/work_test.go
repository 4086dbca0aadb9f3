package dialect_test

import (
	"encoding/json"
	"slices"
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

// TestAction has the shapes of the tools of known clients, and of some unknown ones.
func TestAction(t *testing.T) {
	run := func(c string) dialect.Action { return dialect.Action{Commands: []string{c}} }
	change := func(f ...string) dialect.Action { return dialect.Action{Changed: f} }
	list := func(tasks ...dialect.Task) dialect.Action { return dialect.Action{Tasks: tasks, IsList: true} }
	two := []dialect.Task{{Text: "Write it", Done: true}, {Text: "Test it"}}
	for name, tc := range map[string]struct {
		tool, arguments string
		want            dialect.Action
	}{
		"Claude Code, command":  {"Bash", `{"command":"make","description":"builds"}`, run("make")},
		"Claude Code, edit":     {"Edit", `{"file_path":"/p/a.go","old_string":"a","new_string":"b","replace_all":false}`, change("/p/a.go")},
		"Claude Code, write":    {"Write", `{"file_path":"/p/a.go","content":"a"}`, change("/p/a.go")},
		"Claude Code, read":     {"Read", `{"file_path":"/p/a.go","limit":5}`, dialect.Action{}},
		"Claude Code, grep":     {"Grep", `{"pattern":"x","path":"src","output_mode":"content"}`, dialect.Action{}},
		"Claude Code, todos":    {"TodoWrite", `{"todos":[{"content":"Write it","status":"completed","activeForm":"Writing"},{"content":"Test it","status":"pending"}]}`, list(two...)},
		"Claude Code, subagent": {"Task", `{"description":"d","prompt":"edit the file","subagent_type":"x"}`, dialect.Action{}},
		"Claude Code, fetch":    {"WebFetch", `{"url":"https://x","prompt":"p"}`, dialect.Action{}},
		"Codex, command":        {"exec_command", `{"cmd":"make","workdir":"/p"}`, run("make")},
		"Codex, plan":           {"update_plan", `{"plan":[{"step":"Write it","status":"completed"},{"status":"pending","step":"Test it"}]}`, list(two...)},
		"Codex, patch":          {"apply_patch", "*** Begin Patch\n*** Update File: src/a.go\n@@\n-a\n+b\n*** Add File: b.go\n+x\n*** End Patch", change("src/a.go", "b.go")},
		"local shell":           {"", `{"type":"exec","command":["bash","-lc","make all"],"working_directory":"/p"}`, run("make all")},
		"a list of arguments":   {"shell", `{"command":["ls","-la"]}`, run("ls -la")},
		"opencode, edit":        {"edit", `{"filePath":"a.go","oldString":"a","newString":"b"}`, change("a.go")},
		"opencode, todos":       {"todowrite", `{"todos":[{"content":"Write it","status":"completed","priority":"high"},{"content":"Test it","status":"in_progress"}]}`, list(two...)},
		"Copilot, create":       {"create", `{"path":"a.go","file_text":"x"}`, change("a.go")},
		"Copilot, view":         {"view", `{"path":"a.go","view_range":[1,5]}`, dialect.Action{}},
		"an editor, view":       {"str_replace_editor", `{"command":"view","path":"a.go"}`, dialect.Action{}},
		"an editor, insert":     {"str_replace_editor", `{"command":"insert","path":"a.go","insert_line":1}`, change("a.go")},
		"Gemini CLI, command":   {"run_shell_command", `{"command":"make","dir_path":"src"}`, run("make")},
		"Gemini CLI, replace":   {"replace", `{"file_path":"a.go","instruction":"i","old_string":"a","new_string":"b"}`, change("a.go")},
		"Gemini CLI, todos":     {"write_todos", `{"todos":[{"description":"Write it","status":"completed"},{"description":"Test it","status":"in_progress"}]}`, list(two...)},
		"Qwen Code, command":    {"run_shell_command", `{"command":"make","is_background":false,"directory":"/p"}`, run("make")},
		"Kimi Code, todos":      {"SetTodoList", `{"todos":[{"title":"Write it","status":"done"},{"title":"Test it","status":"pending"}]}`, list(two...)},
		"Cline, commands":       {"run_commands", `{"commands":["make","make test"]}`, dialect.Action{Commands: []string{"make", "make test"}}},
		"Cline, edit":           {"replace_in_files", `{"files":[{"path":"a.go","old_text":"a","new_text":"b"}]}`, change("a.go")},
		"Cline, read":           {"read_files", `{"files":[{"path":"a.go"},{"path":"b.go"}]}`, dialect.Action{}},
		"Continue, checklist":   {"checklist", `{"checklist":"- [x] Write it\n- [ ] Test it"}`, list(two...)},
		"a deletion":            {"delete_file", `{"target_file":"a.go"}`, change("a.go")},
		"a move":                {"move_path", `{"source_path":"a.go","destination_path":"b.go"}`, change("a.go", "b.go")},
		"no JSON":               {"x", `rm -rf`, dialect.Action{}},
		"nothing":               {"", ``, dialect.Action{}},
	} {
		c := dialect.Call{Name: tc.tool, Arguments: tc.arguments}
		if diff := cmp.Diff(tc.want, c.Action()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTextsOfCalls: the strings in the arguments of an answer's calls, whole, in
// pieces, and in JSON within a string.
func TestTextsOfCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		reader dialect.Reader
		events []string
		body   string
		want   []string
	}{
		"chat": {reader: chat.Dialect{}.NewReader(""), body: `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{\"a\":\" one \",\"n\":1}"}},{"function":{"arguments":"{\"b\":[\"two\"]}"}}]},"finish_reason":"tool_calls"}]}`, want: []string{"one", "two"}},
		"chat, in pieces": {reader: chat.Dialect{}.NewReader(""), events: []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{\"a\":\"o"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"b\":\"two\"}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ne\"}"}}]}}]}`,
		}, want: []string{"one", "two"}},
		"messages": {reader: messages.Dialect{}.NewReader(""), body: `{"type":"message","content":[{"type":"tool_use","input":{"a":"one"}},{"type":"tool_use","input":{"b":"two"}}],"stop_reason":"tool_use"}`, want: []string{"one", "two"}},
		"messages, in pieces": {reader: messages.Dialect{}.NewReader(""), events: []string{
			`{"type":"content_block_start","content_block":{"type":"tool_use","input":{}}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"\"one\"}"}}`,
			`{"type":"content_block_start","content_block":{"type":"tool_use","input":{}}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"b\":\"two\"}"}}`,
		}, want: []string{"one", "two"}},
		"responses":              {reader: responses.Dialect{}.NewReader(""), body: `{"status":"completed","output":[{"type":"function_call","arguments":"{\"a\":\"one\"}"}]}`, want: []string{"one"}},
		"gemini":                 {reader: gemini.Dialect{}.NewReader(""), body: `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"x","args":{"a":"one"}}}]}}]}`, want: []string{"one"}},
		"JSON within a string":   {reader: gemini.Dialect{}.NewReader(""), body: `{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"a":"{\"b\":\"one\"}"}}}]}}]}`, want: []string{`{"b":"one"}`, "one"}},
		"arguments that are cut": {reader: chat.Dialect{}.NewReader(""), body: `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{\"a\":"}}]}}]}`},
		"no calls":               {reader: chat.Dialect{}.NewReader(""), body: `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}`},
	} {
		for _, e := range tc.events {
			tc.reader.Event(nil, []byte(e))
		}
		if tc.body != "" {
			tc.reader.Body([]byte(tc.body))
		}
		a := tc.reader.Answer()
		if got := a.Calls.Texts(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
