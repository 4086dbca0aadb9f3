package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

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
			if err != nil {
				t.Fatal(err)
			}
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
