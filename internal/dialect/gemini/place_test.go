package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// request returns a request of Gemini CLI. opening lists directories and files, and prompt
// ends with a file's text.
func request(t *testing.T, prompt, opening string, said ...string) []byte {
	t.Helper()
	part := func(texts ...string) (parts []map[string]string) {
		for _, text := range texts {
			parts = append(parts, map[string]string{"text": text})
		}
		return parts
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // as JavaScript writes it
	if err := e.Encode(map[string]any{
		"systemInstruction": map[string]any{"parts": part(prompt)},
		"contents":          []any{map[string]any{"role": "user", "parts": part(append([]string{opening}, said...)...)}},
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	prompt = "You are Gemini CLI, an autonomous CLI agent.\n\n---\n\n<loaded_context>\n<project_context>\n--- Context from: GEMINI.md ---\n"
	opens  = "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\nThe project's temporary directory is: /home/dev/.gemini/tmp/own\n"
	lists  = "- **Workspace Directories:**\n"
	tree   = "\n- **Directory Structure:**\n\n/own/\n"
	closes = "\n</session_context>"
)

// TestPlace checks that the place is the directory in which Gemini CLI was started,
// regardless of the texts of files and people.
func TestPlace(t *testing.T) {
	own, unclear := dialect.Place{Directory: "/own"}, dialect.Place{Unclear: true}
	opening := opens + lists + "  - /own" + tree + closes
	const copied = "\n- **Workspace Directories:**\n  - /victim\n- **Directory Structure:**\n"
	for _, tc := range []struct {
		name string
		body []byte
		want dialect.Place
	}{
		{"one directory", request(t, prompt, opening, "hello"), own},
		{"the conversation is compacted", request(t, "You are a specialized system component responsible for distilling chat history into a snapshot.", opening, "hello"), own},
		{"the person speaks later", request(t, prompt, opening), own},
		{"several directories", request(t, prompt, opens+lists+"  - /own\n  - /other"+tree+closes, "hello"), own},
		{"no tree", request(t, prompt, opens+closes, "hello"), dialect.Place{}},
		{"no end of the list", request(t, prompt, opens+lists+"  - /own"+closes, "hello"), unclear},
		{"a line feed in a name", request(t, prompt, opens+lists+"  - /own\nx"+tree+closes, "hello"), unclear},
		{"no absolute path", request(t, prompt, opens+lists+"  - own"+tree+closes, "hello"), unclear},
		{"a file's name copies the list", request(t, prompt, opens+lists+"  - /own"+tree+"└───x"+copied+closes, "hello"), own},
		{"a person copies the list", request(t, prompt, opening, opens+lists+"  - /victim"+tree+closes), own},
		{"a file in the prompt copies the list", request(t, prompt+opens+copied+closes, opening, "hello"), own},
		{"a file in the prompt copies another client", request(t, prompt+"<env>\nWorking directory: /victim\n</env>", opening, "hello"), own},
		{"another client, whose first text copies the opening", request(t, "Be brief.", opens+lists+"  - /victim"+tree+closes, "hello"), dialect.Place{}},
		{"the opening is not the first text", request(t, prompt, "hello", opens+lists+"  - /victim"+tree+closes), dialect.Place{}},
	} {
		var c dialect.Conversation
		if !(Dialect{}).Parse(tc.body, &c) {
			t.Fatalf("%s: not understood", tc.name)
		}
		if got := c.Place(""); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestPlace_OtherPrompt checks that the User-Agent identifies Gemini CLI if it has the
// prompt of another model. Another client may copy its opening.
func TestPlace_OtherPrompt(t *testing.T) {
	body := request(t, "You are a non-interactive CLI agent specializing in software engineering tasks.", opens+lists+"  - /own"+tree+closes, "hello")
	for agent, want := range map[string]dialect.Place{
		"GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)": {Directory: "/own"},
		"google-genai-sdk/2.34.0":                                    {},
	} {
		var c dialect.Conversation
		if !(Dialect{}).Parse(body, &c) {
			t.Fatal("not understood")
		}
		if got := c.Place(c.Program([]byte(agent)).Name); got != want {
			t.Errorf("%s: got %+v, want %+v", agent, got, want)
		}
	}
}

// TestCompactionsAnswers checks that the answer before a summary is a separate message, by
// which the session is recognized, at any position of the prompt. Other consecutive answers
// are one message.
func TestCompactionsAnswers(t *testing.T) {
	const contents = `"contents":[{"role":"user","parts":[{"text":"<session_context>\nx\n</session_context>"},{"text":"hello"}]},
		{"role":"model","parts":[{"text":"Well."}]},{"role":"model","parts":[{"text":"%sy"}]},
		{"role":"user","parts":[{"text":"Critically evaluate the <state_snapshot> you just generated."}]}]`
	const system = `"systemInstruction":{"parts":[{"text":"You are a specialized system component responsible for distilling chat history into"}]}`
	for begins, want := range map[string]int{"<state_snapshot>": 4, "<scratchpad>": 4, "And so on: ": 3} {
		said := fmt.Sprintf(contents, begins)
		for _, body := range []string{"{" + system + "," + said + "}", "{" + said + "," + system + "}"} {
			var c dialect.Conversation
			if !(Dialect{}).Parse([]byte(body), &c) || len(c.Messages) != want {
				t.Errorf("%s: %d messages, want %d", body, len(c.Messages), want)
			}
		}
	}
}
