package inject

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// TestNote: what a turn's tools did is read in each API, and nothing of earlier
// turns.
func TestNote(t *testing.T) {
	want := Note{
		Files:  []string{"src/b.go", "src/a.go"},
		Errors: []string{"error: cannot find package widgets"},
		Tasks:  []noteTask{{Text: "Write the parser", Done: true}, {Text: "Test the parser"}},
	}
	for name, tc := range map[string]struct {
		d    dialect.Dialect
		body string
	}{
		"chat": {chat.Dialect{}, `{"messages":[{"role":"user","content":"old"},{"role":"assistant","tool_calls":[{"function":{"name":"read","arguments":"{\"filePath\":\"old.go\"}"}}]},{"role":"tool","content":"x"},{"role":"assistant","content":"ok"},
			{"role":"user","content":"Fix it."},{"role":"assistant","tool_calls":[{"function":{"name":"edit","arguments":"{\"filePath\":\"src/a.go\"}"}},{"function":{"name":"read","arguments":"{\"filePath\": \"src/b.go\"}"}},
			{"function":{"name":"edit","arguments":"{\"filePath\":\"src/a.go\"}"}},{"function":{"name":"todowrite","arguments":"{\"todos\":[{\"content\":\"Write the parser\",\"status\":\"completed\"},{\"content\":\"Test the parser\",\"status\":\"in_progress\"}]}"}}]},
			{"role":"tool","content":"building\nerror: cannot find package widgets\ndone"}]}`},
		"messages": {messages.Dialect{}, `{"messages":[{"role":"user","content":"Fix it."},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Read","input":{"file_path":"src/b.go"}},{"type":"tool_use","id":"2","name":"Edit","input":{"file_path":"src/a.go"}},
			{"type":"tool_use","id":"3","name":"TodoWrite","input":{"todos":[{"content":"Write the parser","status":"completed"},{"content":"Test the parser","status":"pending"}]}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"error: cannot find package widgets\nnothing else"}]}]}`},
		"responses": {responses.Dialect{}, `{"input":[{"role":"user","content":"Fix it."},{"type":"function_call","call_id":"1","name":"read","arguments":"{\"path\":\"src/b.go\"}"},{"type":"function_call","call_id":"2","name":"edit","arguments":"{\"path\":\"src/a.go\"}"},
			{"type":"function_call","call_id":"3","name":"update_plan","arguments":"{\"plan\":[{\"status\":\"completed\",\"step\":\"Write the parser\"},{\"status\":\"pending\",\"step\":\"Test the parser\"}]}"},
			{"type":"function_call_output","call_id":"1","output":"error: cannot find package widgets\n"}]}`},
	} {
		var c dialect.Conversation
		if !tc.d.Parse([]byte(tc.body), &c) {
			t.Fatalf("%s: not understood", name)
		}
		if diff := cmp.Diff(want, ReadNote(NoteOf(&c))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSnapshotLines(t *testing.T) {
	var s snapshot
	s.add(Note{Files: []string{"a.go"}, Errors: []string{"error: one"}, Tasks: []noteTask{{Text: "Do this"}, {Text: "Done that", Done: true}}},
		"Let's use Postgres for it.")
	s.add(Note{Files: []string{"b.go"}}, "Now the tests.")
	want := []string{
		resumes + "Now the tests.", "open task: Do this", "files touched: a.go, b.go",
	}
	if diff := cmp.Diff(want, s.lines(GuardOff)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 50 {
		s.add(Note{Files: []string{string(rune('a'+i%26)) + "/a/long/path/to/a/file/that/was/touched.go"}}, "Now the tests.")
	}
	size := 0
	for _, l := range s.lines(GuardOff) {
		size += len([]rune(l)) + 3
	}
	if size > snapshotChars || len(s.Files) > maxNoteFiles {
		t.Errorf("%d characters, %d files", size, len(s.Files))
	}
}

// fakeSnapshots keeps texts in memory.
type fakeSnapshots map[string][]byte

func (f fakeSnapshots) Load(_ context.Context, key string) ([]byte, error) { return f[key], nil }
func (f fakeSnapshots) Save(_ context.Context, key string, body []byte, _ int64, _ ...string) error {
	f[key] = bytes.Clone(body)
	return nil
}

// TestShortTermMemoryHoldsNoSecret: what is taken in is redacted as it was
// written, and not when its lines have been joined and cut.
func TestShortTermMemoryHoldsNoSecret(t *testing.T) {
	const secret = "correct-horse-battery"
	// As the rules of capture/redact, for lines; and for what goes on behind
	// the length of a line of ours.
	rule := regexp.MustCompile(`(?m)(^|\\n)DB_PASSWORD=[a-z-]+|://\w+:[a-z-]+@[\w.]+`)
	redact := func(text string, _ time.Time) (string, bool) { return rule.ReplaceAllString(text, "[redacted]"), true }
	long := strings.Repeat("x", 125)
	for name, tc := range map[string]struct{ body, said, want string }{
		"what was asked":      {said: "DB_PASSWORD=" + secret + "\nis my setting", want: resumes + "[redacted] is my setting"},
		"what was asked, cut": {said: long + " postgres://bob:" + secret + "@db.example.com", want: resumes + long + " postgres[redacted]"},
		"an error": {said: "Fix it.", want: "error met: error: " + long + " postgres[redacted]",
			body: `{"messages":[{"role":"user","content":"Fix it."},{"role":"assistant","content":"","tool_calls":[]},{"role":"tool","content":"building\nerror: ` + long + ` postgres://bob:` + secret + `@db.example.com\ndone"}]}`},
		"a task": {said: "Fix it.", want: "open task: set [redacted] now",
			body: `{"messages":[{"role":"user","content":"Fix it."},{"role":"assistant","tool_calls":[{"function":{"name":"todowrite","arguments":"{\"todos\":[{\"content\":\"set ://bob:` + secret + `@db now\",\"status\":\"pending\"}]}"}}]},{"role":"tool","content":"ok"}]}`},
	} {
		m := memory(t, always(), &fakeDecisions{}, &fakeFacts{})
		kept := fakeSnapshots{}
		o := *m.opts()
		o.Snapshots, o.Redact = kept, redact
		m.Set(o.Groups, o.RecallSettings)
		var c dialect.Conversation
		if tc.body != "" && !(chat.Dialect{}).Parse([]byte(tc.body), &c) {
			t.Fatalf("%s: not understood", name)
		}
		var work []byte
		if tc.body != "" {
			work = NoteOf(&c)
		}
		who := graphiti.Who{User: "user:p", Session: "session:1"}
		m.Remember(who, 0, work, tc.said)
		if strings.Contains(string(kept[snapshotKey(who)]), "horse") {
			t.Errorf("%s: got %s, want no \"horse\" in it", name, kept[snapshotKey(who)])
		}
		// The conversation goes on without its history.
		if sent, _ := ask(t, m, `{"messages":[{"role":"user","content":"Go on, please."}]}`, both); !strings.Contains(sent, tc.want) || strings.Contains(sent, "horse") {
			t.Errorf("%s: got %s, want %q in it, no horse", name, sent, tc.want)
		}
	}
}
