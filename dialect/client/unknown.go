package client

import "strings"

// Other is the name of clients that are not known.
const Other = "other"

// products are the names of clients, by what their User-Agent calls them. Some are
// named after the SDK that sends their requests.
var products = map[string]string{
	"claude-cli": "Claude Code", "codex_cli_rs": "Codex", "codex_exec": "Codex", "codex-tui": "Codex", "codex_vscode": "Codex",
	"opencode": "opencode", "Kilo-Code": "Kilo", "QwenCode": "Qwen Code", "GeminiCLI": "Gemini CLI", "GeminiCLI-tui": "Gemini CLI",
	"GitHubCopilotChat": "VS Code Copilot", "RooCode": "Roo", "Cline": "Cline", "Zed": "Zed", "goose": "Goose", "Goose": "Goose",
	"Crush": "Crush", "Charm": "Crush", "LibreChat": "LibreChat", "litellm": "LiteLLM", "ls": "Continue",
	"OpenAI": "OpenAI SDK", "AsyncOpenAI": "OpenAI SDK", "Anthropic": "Anthropic SDK", "AsyncAnthropic": "Anthropic SDK", "ai-sdk": "AI SDK", "ai": "AI SDK",
}

// Named is the name of the client with a product in its User-Agent: one of a few.
func Named(product string) string {
	if name, known := products[product]; known {
		return name
	}
	return Other
}

// Names are all that Named returns, some of them more than once.
func Names() []string {
	all := []string{Other}
	for _, name := range products {
		all = append(all, name)
	}
	return all
}

// UnknownTag reports whether a text that is kept as a person's words begins with a
// tag: those of the table have been taken out.
func UnknownTag(text string) bool {
	rest, opens := strings.CutPrefix(text, "<")
	name, _, closes := strings.Cut(rest[:min(len(rest), maxTag)], ">")
	return opens && closes && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// maxTag bounds the name of a tag that counts, in bytes.
const maxTag = 64
