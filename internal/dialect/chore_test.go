package dialect_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// choreFixture is the shape of a client's own request: its markers, without the rest of its
// texts.
type choreFixture struct {
	Client string          `json:"client"`
	API    string          `json:"api"` // chat, responses or messages
	Kind   string          `json:"kind"`
	Body   json.RawMessage `json:"body"`
}

var kindNames = map[string]dialect.Kind{"title": dialect.KindTitle, "summary": dialect.KindSummary, "probe": dialect.KindProbe, "machine": dialect.KindMachine, "turn": dialect.KindTurn, "subagent": dialect.KindTurn}

// noHeader is a header without fields.
type noHeader struct{}

func (noHeader) Peek(string) []byte { return nil }

// TestChores checks that each rule recognizes a fixture, and that no rule recognizes a
// person's quotation of its text.
func TestChores(t *testing.T) {
	raw, err := os.ReadFile("testdata/chores.json")
	must(t, err)
	var fixtures []choreFixture
	must(t, json.Unmarshal(raw, &fixtures))
	dialects := map[string]dialect.Dialect{"chat": chat.Dialect{}, "responses": responses.Dialect{}, "messages": messages.Dialect{}}
	chores, used := dialect.Chores(), make(map[int]bool)
	for _, f := range fixtures {
		var c dialect.Conversation
		if !dialects[f.API].Parse(f.Body, &c) {
			t.Fatalf("%s: not understood: %s", f.Client, f.Body)
		}
		if agent := c.Signals(noHeader{}); agent != (f.Kind == "subagent") {
			t.Errorf("%s: a subagent speaks: %v: %s", f.Client, agent, f.Body)
		}
		if c.Kind != kindNames[f.Kind] {
			t.Errorf("%s: kind %d, want %s: %s", f.Client, c.Kind, f.Kind, f.Body)
		}
		for i, one := range chores {
			dialect.Only(i, func() {
				dialects[f.API].Parse(f.Body, &c)
			})
			if c.Kind == one.Kind && c.Signals(noHeader{}) == one.Agent && f.Kind != "turn" && strings.HasPrefix(one.Client, f.Client) {
				used[i] = true
			}
		}
	}
	for i, ch := range chores {
		if !used[i] {
			t.Errorf("no fixture for %+v", ch)
		}
		if ch.User == "" {
			continue
		}
		// A person quotes the rule's text.
		body, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Why does it say \"" + ch.User + ch.Then + "\"?"}}})
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse(body, &c) || c.Kind != dialect.KindTurn {
			t.Errorf("a person who quotes %q is not heard", ch.User)
		}
	}
}

// TestPersonsMessageAboutChores checks that a person's message with the words of a client's
// chore is still a person's.
func TestPersonsMessageAboutChores(t *testing.T) {
	for _, said := range []string{
		"Please write a summary of this session.",
		"Please create a detailed summary of the conversation so far.",
		"Please provide a concise summary of our conversation so far, and mail it to Ann.",
		"Please analyze the conversation history above and tell me what Ann wants.",
		"Summarize this session for continuation by my colleague.",
		"Summarize the conversation so far, please.",
		"Your task is to create a detailed summary of the report.",
		"What did we do so far?",
		"What did we do so far? And what is next?",
		"Context summary: the build is red, and Ann is ill.",
		"Here is the conversation so far: she said no.",
		"### Task:\nFix the build.\n### Output:\nA patch.",
		"### Task:\nFix it.\n### Output:\nJSON, as in <chat_history> of Open WebUI.",
		"Why does pi say \"The conversation history before this point was compacted into the following summary:\"?",
		"The conversation history has been summarized to free up context. Why?",
		"Got it. Thanks for the additional context!",
		"What is in `<bash-input>`? And <ide_selection>?",
		"--- Content from referenced files --- is what Qwen writes, and --- End of content ---.",
		"How does <user_query>x</user_query> work in Cursor?",
		"a <task>b</task> c",
		"Does Codex put its words behind ## My request for Codex:?",
	} {
		body, err := json.Marshal(map[string]any{
			"tools":    []any{map[string]any{"type": "function", "function": map[string]string{"name": "bash"}}},
			"messages": []any{map[string]string{"role": "system", "content": "You are an agent."}, map[string]string{"role": "user", "content": said}, map[string]string{"role": "assistant", "content": "Well."}, map[string]string{"role": "user", "content": said}},
		})
		must(t, err)
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse(body, &c) || c.Kind != dialect.KindTurn || c.Last != 3 || !c.Messages[1].Person {
			t.Errorf("a person is not heard who says %q", said)
			continue
		}
		if got := string(c.Text(1)); got != said {
			t.Errorf("%q became %q", said, got)
		}
	}
}

// TestBuiltInCommands checks that a client's own prompt for a command counts as the command, in the
// words of any client, and that a person's request for a file does not.
func TestBuiltInCommands(t *testing.T) {
	rest := "\n\n## Structure\n\n" + strings.Repeat("- Describe the modules, and how to build and test them.\n", 12)
	for text, want := range map[string]string{
		"Generate a file named AGENTS.md that serves as a contributor guide for this repository.":                                                                                                                        "/init",
		"You are an AI agent that brings the power of Gemini directly into the terminal. Your task is to analyze the current directory and generate a comprehensive GEMINI.md file to be used as instructional context.": "/init",
		"You are Qwen Code, an interactive CLI agent. Analyze the current directory and generate a comprehensive QWEN.md file.":                                                                                          "/init",
		"Please analyze this codebase and create an AGENTS.md file containing:":                                                                                                                                          "/init",
		"Create or update `AGENTS.md` for this repository.":                                                                                                                                                              "/init",
		"`high effort → 4 angles`\n\nYou are reviewing for **recall** at high effort.":                                                                                                                                   "/review",
		"Our README.md says that the vault is called Quetzal. Please keep it.":                                                                                                                                           "",
		"`vault` is the name of our bird.": "",
	} {
		for _, text := range []string{text, text + rest} {
			body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": text}}})
			must(t, err)
			var c dialect.Conversation
			if !(chat.Dialect{}).Parse(body, &c) || c.Last != 0 {
				t.Fatalf("%q: not understood", text)
			}
			expected := want
			if want == "" || len(text) < 500 {
				expected = strings.TrimSpace(text)
			}
			if got := string(c.Text(0)); got != expected || want != "" && got == want && c.Typed(0) {
				t.Errorf("the person said %q, want %q", got, expected)
			}
		}
	}
}
