package inject

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNote: what a turn's tools did is read in each API, and nothing of earlier
// turns.
func TestNote(t *testing.T) {
	want := Note{
		Files:  []string{"src/b.go", "src/a.go"},
		Errors: []string{"error: cannot find package widgets"},
		Tasks:  []Task{{"Write the parser", true}, {"Test the parser", false}},
	}
	for name, tc := range map[string]struct {
		d    Dialect
		body string
	}{
		"chat": {Chat{}, `{"messages":[{"role":"user","content":"old"},{"role":"assistant","tool_calls":[{"function":{"name":"read","arguments":"{\"filePath\":\"old.go\"}"}}]},{"role":"tool","content":"x"},{"role":"assistant","content":"ok"},
			{"role":"user","content":"Fix it."},{"role":"assistant","tool_calls":[{"function":{"name":"edit","arguments":"{\"filePath\":\"src/a.go\"}"}},{"function":{"name":"read","arguments":"{\"filePath\": \"src/b.go\"}"}},
			{"function":{"name":"edit","arguments":"{\"filePath\":\"src/a.go\"}"}},{"function":{"name":"todowrite","arguments":"{\"todos\":[{\"content\":\"Write the parser\",\"status\":\"completed\"},{\"content\":\"Test the parser\",\"status\":\"in_progress\"}]}"}}]},
			{"role":"tool","content":"building\nerror: cannot find package widgets\ndone"}]}`},
		"messages": {Messages{}, `{"messages":[{"role":"user","content":"Fix it."},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Read","input":{"file_path":"src/b.go"}},{"type":"tool_use","id":"2","name":"Edit","input":{"file_path":"src/a.go"}},
			{"type":"tool_use","id":"3","name":"TodoWrite","input":{"todos":[{"content":"Write the parser","status":"completed"},{"content":"Test the parser","status":"pending"}]}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"error: cannot find package widgets\nnothing else"}]}]}`},
		"responses": {Responses{}, `{"input":[{"role":"user","content":"Fix it."},{"type":"function_call","call_id":"1","name":"read","arguments":"{\"path\":\"src/b.go\"}"},{"type":"function_call","call_id":"2","name":"edit","arguments":"{\"path\":\"src/a.go\"}"},
			{"type":"function_call","call_id":"3","name":"update_plan","arguments":"{\"plan\":[{\"status\":\"completed\",\"step\":\"Write the parser\"},{\"status\":\"pending\",\"step\":\"Test the parser\"}]}"},
			{"type":"function_call_output","call_id":"1","output":"error: cannot find package widgets\n"}]}`},
	} {
		var c Conversation
		if !tc.d.Parse([]byte(tc.body), &c) {
			t.Fatalf("%s: not understood", name)
		}
		if diff := cmp.Diff(want, ReadNote(c.Work())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSnapshotLines(t *testing.T) {
	var s snapshot
	s.add(Note{Files: []string{"a.go"}, Errors: []string{"error: one"}, Tasks: []Task{{"Do this", false}, {"Done that", true}}},
		"Let's use Postgres for it. Should we decide to wait?", "Fine. We'll keep the old table.")
	s.add(Note{Files: []string{"b.go"}}, "Now the tests.", "")
	want := []string{
		resumes + "Now the tests.", "open task: Do this", "decided: We'll keep the old table.", "decided: Let's use Postgres for it.", "files touched: a.go, b.go",
	}
	if diff := cmp.Diff(want, s.lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 50 {
		s.add(Note{Files: []string{string(rune('a'+i%26)) + "/a/long/path/to/a/file/that/was/touched.go"}}, "Now the tests.", "")
	}
	size := 0
	for _, l := range s.lines() {
		size += len([]rune(l)) + 3
	}
	if size > snapshotChars || len(s.Files) > maxFiles {
		t.Errorf("%d characters, %d files", size, len(s.Files))
	}
}
