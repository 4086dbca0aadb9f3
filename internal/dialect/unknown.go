package dialect

import (
	"bytes"
	"slices"
)

// Other is the name of all unknown clients.
const Other = "other"

// Codex is the client that changes its directory within a conversation.
const Codex = "Codex"

// GeminiCLI is Google's client. It has another prompt with each model.
const GeminiCLI = "Gemini CLI"

// Program is a client as identified by a request: a program that people use, or the library
// with which a program sends its requests.
type Program struct {
	Name string // one of a few

	// Places is true if it states its working directory in each conversation.
	Places bool
}

// program is a client with its marks in requests.
type program struct {
	Program
	agents  []string // the beginnings of its User-Agent, up to a version
	prompts []string // the beginnings of its prompt, for the User-Agent of a library
	title   string   // its X-Title, if it sends the User-Agent of the program that it is a fork of
	library bool     // other programs send their requests with it
}

var programs = []program{
	{Program: Program{"Claude Code", true}, agents: []string{"claude-cli"}, prompts: []string{"You are Claude Code, ", "You are a Claude agent, built on "}},
	{Program: Program{Codex, true}, agents: []string{"codex_cli_rs", "codex_exec", "codex-tui", "codex_vscode"}},
	{Program: Program{"opencode", true}, agents: []string{"opencode"}, prompts: []string{"You are opencode, ", "You are OpenCode, "}},
	{Program: Program{"Kilo", true}, agents: []string{"Kilo-Code"}, prompts: []string{"You are Kilo"}, title: "Kilo Code"},
	{Program: Program{"Roo", true}, agents: []string{"RooCode"}, prompts: []string{"You are Roo"}},
	{Program: Program{"Qwen Code", true}, agents: []string{"QwenCode"}, prompts: []string{"You are Qwen Code, "}},
	{Program: Program{GeminiCLI, true}, agents: []string{"GeminiCLI", "GeminiCLI-tui"}},
	{Program: Program{"Copilot CLI", true}, prompts: []string{"You are the GitHub Copilot CLI"}},
	{Program: Program{"Cline", true}, agents: []string{"Cline"}, prompts: []string{"You are Cline, "}},
	{Program: Program{"Continue", true}, prompts: []string{"You are an agent in the Continue CLI"}},
	{Program: Program{"Continue", false}, agents: []string{"ls"}, library: true}, // in an editor it states no place
	{Program: Program{"pi", true}, agents: []string{"pi"}, prompts: []string{"You are an expert coding assistant operating inside pi, ", "You are a coding assistant running inside pi, "}},
	{Program: Program{"Droid", true}, agents: []string{"factory-cli"}, prompts: []string{"You are Droid, "}},
	{Program: Program{"Crush", true}, agents: []string{"Crush", "Charm"}, prompts: []string{"You are Crush, "}},
	{Program: Program{"Kimi Code", true}, agents: []string{"kimi-code-cli"}, prompts: []string{"You are Kimi Code CLI, "}},
	{Program: Program{"Mistral Vibe", true}, agents: []string{"Mistral-Vibe"}, prompts: []string{"You are Mistral Vibe, ", "You help users get complex tasks done. Act directly and proactively."}},
	{Program: Program{"gptme", true}, prompts: []string{"You are gptme v"}},
	{Program: Program{"VS Code Copilot", false}, agents: []string{"GitHubCopilotChat"}},
	{Program: Program{"Zed", false}, agents: []string{"Zed"}},
	{Program: Program{"Goose", false}, agents: []string{"goose", "Goose"}},
	{Program: Program{"LibreChat", false}, agents: []string{"LibreChat"}},
	{Program: Program{"LiteLLM", false}, agents: []string{"litellm"}, library: true},
	{Program: Program{"OpenAI SDK", false}, agents: []string{"OpenAI", "AsyncOpenAI"}, library: true},
	{Program: Program{"Anthropic SDK", false}, agents: []string{"Anthropic", "AsyncAnthropic"}, library: true},
	{Program: Program{"AI SDK", false}, agents: []string{"ai-sdk", "ai"}, library: true},
}

// Chats reports whether the client is a known one that people talk with, not the library of an
// unknown program.
func (p Program) Chats() bool { return p.isKnown(false) }

// IsLibrary reports whether the client is the library of an unknown program.
func (p Program) IsLibrary() bool { return p.isKnown(true) && !p.isKnown(false) }

func (p Program) isKnown(library bool) bool {
	return slices.ContainsFunc(programs, func(known program) bool { return known.Program == p && known.library == library })
}

// byAgent holds the programs by the product in their User-Agent.
var byAgent = func() map[string]*program {
	all := make(map[string]*program)
	for i := range programs {
		for _, name := range programs[i].agents {
			all[name] = &programs[i]
		}
	}
	return all
}()

// ProgramOf returns the client with an X-Title or, without a known title, with a
// User-Agent. sure is false if the User-Agent is unknown or a library's.
func ProgramOf(title, agent []byte) (p Program, sure bool) {
	for i := range programs {
		if len(title) > 0 && programs[i].title == string(title) {
			return programs[i].Program, true
		}
	}
	name, _, _ := bytes.Cut(agent, []byte{'/'})
	if known := byAgent[string(name)]; known != nil {
		return known.Program, !known.library
	}
	return Program{Name: Other}, false
}

// Program returns the client that sent the request, judged by its User-Agent or, if that is
// not sure, by the beginning of its prompt.
func (c *Conversation) Program(agent []byte) Program {
	p, sure := ProgramOf(nil, agent)
	if sure {
		return p
	}
	var parts [maxParts][]byte
	for _, begin := range c.prompts(parts[:0]) {
		for i := range programs {
			for _, prompt := range programs[i].prompts {
				if bytes.HasPrefix(begin, []byte(prompt)) {
					return programs[i].Program
				}
			}
		}
	}
	return p
}

// Named returns the name of the client with this product in its User-Agent, or Other.
func Named(product string) string {
	if p := byAgent[product]; p != nil {
		return p.Name
	}
	return Other
}

// Names returns the names of all clients.
func Names() []string {
	all := []string{Other}
	for i := range programs {
		if !slices.Contains(all, programs[i].Name) {
			all = append(all, programs[i].Name)
		}
	}
	return all
}

// maxTag bounds the name of a tag, in bytes; longer ones do not count.
const maxTag = 64
