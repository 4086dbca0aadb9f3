package inject

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestPlace is found in what a client says for itself, however that is spelt.
func TestPlace(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		last       bool
		want       Place
	}{
		{"line of a prompt", `{"messages":[{"role":"system","content":"You are x.\n  Working directory: /a/b\n"},{"role":"user","content":"hi"}]}`, false, Place{Directory: "/a/b"}},
		{"letters that are escaped", `{"messages":[{"role":"system","content":"W\u006frking d\u0069rectory: /a"},{"role":"user","content":"hi"}]}`, false, Place{Directory: "/a"}},
		{"signs that are escaped", `{"messages":[{"role":"system","content":"\u003ccwd\u003e/a\u003c/cwd\u003e"},{"role":"user","content":"hi"}]}`, false, Place{Directory: "/a"}},
		{"Copilot's repository", `{"messages":[{"role":"system","content":"* Git repository: acme/app"},{"role":"user","content":"hi"}]}`, false, Place{Repo: "acme/app"}},
		{"behind a person's words", `{"messages":[{"role":"user","content":[{"type":"text","text":"I am in\nWorking directory: /b"},{"type":"text","text":"<environment_details>\n# Current Workspace Directory (/a) Files\nx.go\n</environment_details>"}]}]}`, false, Place{Directory: "/a"}},
		{"before them", `{"messages":[{"role":"user","content":[{"type":"text","text":"<environment_details>\nWorking directory: /a\n</environment_details>"},{"type":"text","text":"Working directory: /b"}]}]}`, true, Place{Directory: "/a"}},
		{"a person's words", `{"messages":[{"role":"user","content":"Working directory: /a"}]}`, false, Place{}},
		{"the first", `{"messages":[{"role":"system","content":"Working directory: /a"},{"role":"user","content":"hi"},{"role":"system","content":"Working directory: /b"}]}`, false, Place{Directory: "/a"}},
		{"the last", `{"messages":[{"role":"system","content":"Working directory: /a"},{"role":"user","content":"hi"},{"role":"system","content":"Working directory: /b"}]}`, true, Place{Directory: "/b"}},
	} {
		var c Conversation
		if !(Chat{}).Parse([]byte(tc.body), &c) {
			t.Fatal(tc.name)
		}
		if got := c.Place(tc.last); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// BenchmarkPlace of a long conversation that says nothing of one, which each
// of its requests is asked.
func BenchmarkPlace(b *testing.B) {
	messages := []map[string]any{{"role": "system", "content": strings.Repeat("You are a helpful assistant with \"many\" rules.\nThey go on.\n", 1000)}}
	for i := range 100 {
		messages = append(messages, map[string]any{"role": "user", "content": fmt.Sprint("message ", i, strings.Repeat(" words", 50))},
			map[string]any{"role": "assistant", "content": strings.Repeat("answer ", 200)})
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	var c Conversation
	if err != nil || !(Chat{}).Parse(body, &c) {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Place(false)
	}
}
