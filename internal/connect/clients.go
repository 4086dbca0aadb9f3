// Package connect owns the settings of clients that send their requests through the proxy:
// the table of clients, the editing and restoring of their files, the trial of a client, the
// search for reasons why a client is not remembered, and the start of the proxy at login.
//
// It must not know how the proxy serves a request.
package connect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Client describes where a client stores the base URL of its provider.
type Client struct {
	Name    string
	Program string
	agent   string   // its name in the request log, or "" if requests do not tell
	moves   string   // variable that moves the directory
	dir     string   // below home; XDG paths are below .config
	files   []string // candidates: the first existing one, or else the first; it overrides the others
	format  *format  // nil if only variables set the base URL
	keys    []key
	choose  func(dir string, tree any) []key // replaces keys if not nil

	also *Client // further settings, of which each is added where it has no value

	env string // variable, or setting of the client, with which also is needed; "" if it is asked for

	project  []string // project files that override the client's file
	replaces bool     // any project file hides the whole file
	envWins  bool     // the variables of keys override the file
	bypass   []string // variables that select an API without a base URL
	login    []login
	trial    []string // arguments that send one short request
	vars     []string // variables for the trial
}

// key is a setting with a base URL.
type key struct {
	path     []string // * means every existing element
	api      string   // openai, anthropic or gemini; "" for another provider
	suffix   string   // part of the client's base URL after the proxy's address
	env      string   // variable with the same meaning
	by, is   string   // the sibling by has the value is
	existing bool     // only if the parent exists
	value    string   // instead of a base URL
}

func dots(path string) []string { return strings.Split(path, ".") }

// login is a setting that selects a login without a configurable base URL.
type login struct{ file, path, value, says string }

var openCodeKeys = []key{
	{path: dots("provider.openai.options.baseURL"), api: "openai", suffix: "/v1"},
	{path: dots("provider.anthropic.options.baseURL"), api: "anthropic", suffix: "/v1"},
}

// StatusLine is the status line of Claude Code.
var StatusLine = &Client{
	Name: "claude-code-statusline", moves: "CLAUDE_CONFIG_DIR", dir: ".claude", files: []string{"settings.json"}, format: strictJSON,
	keys: []key{{path: dots("statusLine.command"), value: "graphiti-proxy statusline"}, {path: dots("statusLine.type"), value: "command"}},
}

// geminiKey selects the API key of Gemini CLI: with a base URL, it does not select it by itself.
var geminiKey = &Client{
	Name: "gemini-key", dir: ".gemini", files: []string{"settings.json"}, format: jsonC, env: "GEMINI_API_KEY",
	keys: []key{{path: dots("security.auth.selectedType"), value: "gemini-api-key"}},
}

// Clients are the known clients.
var Clients = []*Client{
	{
		Name: "claude-code", Program: "claude", agent: "Claude Code", moves: "CLAUDE_CONFIG_DIR", dir: ".claude", files: []string{"settings.json"}, format: strictJSON,
		keys:    []key{{path: dots("env.ANTHROPIC_BASE_URL"), api: "anthropic", env: "ANTHROPIC_BASE_URL"}},
		project: []string{".claude/settings.local.json", ".claude/settings.json"},
		also:    StatusLine,
		bypass:  []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"},
		trial:   []string{"-p", "--no-session-persistence", "--", "hi"},
	},
	{
		Name: "codex", Program: "codex", agent: "Codex", moves: "CODEX_HOME", dir: ".codex", files: []string{"config.toml"}, format: tomlFile,
		choose: codexKeys,
		trial:  []string{"exec", "--ephemeral", "--skip-git-repo-check", "hi"},
	},
	{
		Name: "opencode", Program: "opencode", agent: "opencode", dir: ".config/opencode", files: []string{"opencode.jsonc", "opencode.json", "config.json"}, format: jsonC,
		keys: openCodeKeys, project: []string{"opencode.json", "opencode.jsonc"},
		trial: []string{"run", "hi"},
	},
	{
		Name: "kilo", Program: "kilo", agent: "Kilo", dir: ".config/kilo", files: []string{"kilo.jsonc", "kilo.json", "config.json"}, format: jsonC,
		keys: openCodeKeys, project: []string{"kilo.json", "kilo.jsonc"},
		trial: []string{"run", "hi"},
	},
	{
		Name: "gemini", Program: "gemini", agent: "Gemini CLI", dir: ".gemini", files: []string{".env"}, format: dotenv,
		keys:    []key{{path: dots("GOOGLE_GEMINI_BASE_URL"), api: "gemini", env: "GOOGLE_GEMINI_BASE_URL"}},
		also:    geminiKey,
		project: []string{".gemini/.env", ".env"}, replaces: true, envWins: true,
		bypass: []string{"GOOGLE_GENAI_USE_VERTEXAI"},
		login:  []login{{"settings.json", "security.auth.selectedType", "oauth-personal", "a Google login"}},
		trial:  []string{"-p", "hi"}, vars: []string{"GEMINI_CLI_TRUST_WORKSPACE=true"},
	},
	{
		Name: "qwen", Program: "qwen", agent: "Qwen Code", dir: ".qwen", files: []string{"settings.json"}, format: jsonC,
		keys: []key{
			{path: dots("security.auth.baseUrl"), api: "openai", suffix: "/v1", env: "OPENAI_BASE_URL"},
			{path: dots("modelProviders.openai.*.baseUrl"), api: "openai", suffix: "/v1"},
		},
		project: []string{".qwen/settings.json"}, envWins: true,
		login: []login{{"settings.json", "security.auth.selectedType", "qwen-oauth", "a Qwen login"}},
		trial: []string{"--chat-recording=false", "-p", "hi"},
	},
	{
		Name: "copilot", Program: "copilot", agent: "Copilot CLI", moves: "COPILOT_HOME", dir: ".copilot",
		keys:  []key{{path: dots("COPILOT_PROVIDER_BASE_URL"), api: "openai", suffix: "/v1", env: "COPILOT_PROVIDER_BASE_URL"}},
		trial: []string{"-p", "hi"},
	},
	{
		Name: "cline", Program: "cline", agent: "Cline", dir: ".cline/data", files: []string{"settings/providers.json"}, format: strictJSON,
		keys: []key{
			{path: dots("providers.openai-compatible.settings.baseUrl"), api: "openai", suffix: "/v1", existing: true},
			{path: dots("providers.openai-native.settings.baseUrl"), api: "openai", suffix: "/v1", existing: true},
			{path: dots("providers.anthropic.settings.baseUrl"), api: "anthropic", existing: true},
		},
		trial: []string{"--json", "say hi"},
	},
	{
		Name: "continue", Program: "cn", agent: "Continue", moves: "CONTINUE_GLOBAL_DIR", dir: ".continue", files: []string{"config.yaml"}, format: yamlFile,
		keys: []key{
			{path: dots("models.*.apiBase"), api: "openai", suffix: "/v1", by: "provider", is: "openai"},
			{path: dots("models.*.apiBase"), api: "anthropic", suffix: "/v1", by: "provider", is: "anthropic"},
			{path: dots("models.*.apiBase"), api: "gemini", suffix: "/v1beta", by: "provider", is: "gemini"},
		},
		trial: []string{"-p", "hi"},
	},
	{
		Name: "kimi", Program: "kimi", agent: "Kimi Code", moves: "KIMI_CODE_HOME", dir: ".kimi-code", files: []string{"config.toml"}, format: tomlFile,
		keys: []key{
			{path: dots("providers.*.base_url"), suffix: "/v1", by: "type", is: "kimi"},
			{path: dots("providers.*.base_url"), api: "openai", suffix: "/v1", by: "type", is: "openai"},
			{path: dots("providers.*.base_url"), api: "anthropic", by: "type", is: "anthropic"},
		},
		trial: []string{"-p", "hi"},
	},
	{
		Name: "pi", Program: "pi", agent: "pi", moves: "PI_CODING_AGENT_DIR", dir: ".pi/agent", files: []string{"models.json"}, format: strictJSON,
		keys: []key{
			{path: dots("providers.openai.baseUrl"), api: "openai", suffix: "/v1"},
			{path: dots("providers.anthropic.baseUrl"), api: "anthropic"},
		},
		trial: []string{"--no-session", "-p", "hi"},
	},
	{
		Name: "aider", Program: "aider", dir: ".", files: []string{".aider.conf.yml"}, format: yamlFile,
		keys:    []key{{path: dots("openai-api-base"), api: "openai", suffix: "/v1", env: "OPENAI_API_BASE"}},
		project: []string{".aider.conf.yml"},
		trial:   []string{"--message", "hi", "--no-git"},
	},
	{
		Name: "goose", Program: "goose", agent: "Goose", dir: ".config/goose", files: []string{"config.yaml"}, format: yamlFile,
		keys: []key{
			{path: dots("OPENAI_HOST"), api: "openai", env: "OPENAI_HOST"},
			{path: dots("ANTHROPIC_HOST"), api: "anthropic", env: "ANTHROPIC_HOST"},
		},
		envWins: true,
		trial:   []string{"run", "-t", "hi"},
	},
	{
		Name: "zed", Program: "zed", agent: "Zed", dir: ".config/zed", files: []string{"settings.json"}, format: jsonC,
		keys: []key{
			{path: dots("language_models.openai.api_url"), api: "openai", suffix: "/v1"},
			{path: dots("language_models.anthropic.api_url"), api: "anthropic"},
		},
	},
}

// Find returns a client by its name, or nil.
func Find(name string) *Client {
	for _, c := range Clients {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Names returns the names of the known clients.
func Names() (names []string) {
	for _, c := range Clients {
		names = append(names, c.Name)
	}
	return names
}

// codexKeys returns the base URL of the selected provider. A ChatGPT login has an upstream
// of its own.
func codexKeys(dir string, tree any) []key {
	if name := textAt(tree, "model_provider"); name != "" && name != "openai" {
		return []key{{path: []string{"model_providers", name, "base_url"}, api: "openai", suffix: "/v1", existing: true}}
	}
	own := key{path: dots("openai_base_url"), api: "openai", suffix: "/v1"}
	text, err := os.ReadFile(filepath.Join(dir, "auth.json")) // #nosec G304 -- the client's own
	if err != nil {
		return []key{own}
	}
	login, err := strictJSON.decode(text)
	if _, tokens := at(login, []string{"tokens", "access_token"}); err == nil && tokens == 2 && textAt(login, "OPENAI_API_KEY") == "" {
		own.api, own.suffix = ChatGPT, ""
	}
	return []key{own}
}

// ChatGPT is the name of the upstream of Codex with a ChatGPT login.
const ChatGPT = "chatgpt"

// Machine is the place where clients run.
type Machine struct {
	Home  string
	Dir   string // current directory
	Env   func(name string) string
	Look  func(program string) (string, error)
	Proxy Proxy
	Store string // directory of the records that disconnect needs
}

// directory returns the directory with a client's settings.
func (m *Machine) directory(c *Client) string {
	if c.moves != "" && m.Env(c.moves) != "" {
		return m.Env(c.moves)
	}
	if rest, ok := strings.CutPrefix(c.dir, ".config/"); ok && m.Env("XDG_CONFIG_HOME") != "" {
		return filepath.Join(m.Env("XDG_CONFIG_HOME"), rest)
	}
	return filepath.Join(m.Home, c.dir)
}

// File returns the file with a client's base URL, or "" if only variables set it.
func (m *Machine) File(c *Client) string {
	for _, name := range c.files {
		if file := filepath.Join(m.directory(c), name); exists(file) {
			return file
		}
	}
	if len(c.files) == 0 {
		return ""
	}
	return filepath.Join(m.directory(c), c.files[0])
}

// exists reports whether there is a file, or a link to nothing.
func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// values returns the places of a client's base URLs in its decoded settings.
func (c *Client) values(m *Machine, tree any) (found []place) {
	keys := c.keys
	if c.choose != nil {
		keys = c.choose(m.directory(c), tree)
	}
	for _, k := range keys {
		for _, path := range expand(tree, k.path) {
			parent := path[:len(path)-1]
			if k.by != "" && textAt(tree, slices.Concat(parent, []string{k.by})...) != k.is {
				continue
			}
			if _, depth := at(tree, parent); k.existing && depth < len(parent) {
				continue
			}
			found = append(found, place{k, path})
		}
	}
	return found
}

// place is one base URL in a file.
type place struct {
	key
	path []string
}
