package connect

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

const base = "http://127.0.0.1:8787"

// machine returns a machine with an empty home.
func machine(t *testing.T, env map[string]string) *Machine {
	t.Helper()
	home := t.TempDir()
	return &Machine{
		Home: home, Dir: filepath.Join(home, "src"), Store: filepath.Join(home, "store"),
		Env:   func(name string) string { return env[name] },
		Look:  func(string) (string, error) { return "", os.ErrNotExist },
		Proxy: Proxy{Base: base, Providers: map[string]string{"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com", "gemini": "https://generativelanguage.googleapis.com"}, Named: map[string]string{"groq": "https://api.groq.com/openai", ChatGPT: "https://chatgpt.com/backend-api/codex"}},
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return "(no file)"
	}
	must(t, err)
	return string(text)
}

// own is a file of each client before the proxy.
var own = map[string]struct{ file, text, want string }{
	"claude-code": {".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n", `"ANTHROPIC_BASE_URL": "` + base + `"`},
	"codex":       {".codex/config.toml", "# mine\nmodel = \"gpt-5\"\n[tui]\n", "openai_base_url = \"" + base + "/v1\"\n# mine"},
	"opencode":    {".config/opencode/opencode.json", "{\n  // mine\n  \"theme\": \"x\",\n}\n", `"baseURL": "` + base + `/v1"`},
	"kilo":        {".config/kilo/kilo.jsonc", "{\n}\n", `"baseURL": "` + base + `/v1"`},
	"gemini":      {".gemini/.env", "GEMINI_API_KEY=k\n", "GOOGLE_GEMINI_BASE_URL=" + base + "\n"},
	"qwen":        {".qwen/settings.json", "{\"modelProviders\": {\"openai\": [{\"id\": \"m\", \"baseUrl\": \"https://api.groq.com/openai/v1\"}]}} // mine\n", `"baseUrl": "` + base + `/u/groq/v1"`},
	"cline":       {".cline/data/settings/providers.json", `{"providers": {"openai-compatible": {"settings": {"apiKey": "k"}}}}`, `"baseUrl": "` + base + `/v1"`},
	"continue":    {".continue/config.yaml", "models:\n  - name: a # mine\n    provider: anthropic\n", "apiBase: " + base + "/v1\n"},
	"kimi":        {".kimi-code/config.toml", "[providers.a]\ntype = \"anthropic\"\n", "base_url = \"" + base + "\"\n"},
	"pi":          {".pi/agent/models.json", "{}", `"baseUrl": "` + base + `"`},
	"aider":       {".aider.conf.yml", "model: m # mine\n", "openai-api-base: " + base + "/v1\n"},
	"goose":       {".config/goose/config.yaml", "A: 1\n", "OPENAI_HOST: " + base + "\n"},
	"zed":         {".config/zed/settings.json", "// mine\n{\n}\n", `"api_url": "` + base + `"`},
}

func TestConnect(t *testing.T) {
	t.Parallel()
	for _, c := range Clients {
		if c.format == nil {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m, o := machine(t, nil), own[c.Name]
			file := filepath.Join(m.Home, filepath.FromSlash(o.file))
			write(t, file, o.text)
			for range 2 { // again after a first time
				p, err := m.Plan(c)
				must(t, err)
				must(t, m.Apply(p))
			}
			if got := read(t, file); !strings.Contains(got, o.want) {
				t.Errorf("got %s, want it with %s", got, o.want)
			}
			if through, problems := m.Examine(c); !through || len(problems) > 0 {
				t.Errorf("Examine = %v, %q; want true, none", through, problems)
			}
			done, err := m.Disconnect(c)
			if got := read(t, file); err != nil || !done.Exact || got != o.text {
				t.Errorf("after disconnect (%+v, %v) got %q, want %q", done, err, got, o.text)
			}
			if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
				t.Errorf("got %v, %v; want the same permissions", info.Mode(), err)
			}
			if _, err := m.Disconnect(c); err == nil {
				t.Error("got no error for a client that is not connected")
			}
		})
	}
}

func TestConnect_FileOfOthers(t *testing.T) {
	t.Parallel()
	c := Find("opencode")
	for _, o := range []struct{ name, before, edited, want string }{
		{"the client adds a key", "{\n  \"theme\": \"x\"\n}\n", "\"theme\": \"y\",\n  \"$schema\": \"s\"", "{\n  \"theme\": \"y\",\n  \"$schema\": \"s\"\n}\n"},
		{"no file, and the client adds a key", "", "", "{\n  \"$schema\": \"s\"\n}\n"},
		{"no file", "", "-", "(no file)"},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			m := machine(t, nil)
			file := m.File(c)
			if o.before != "" {
				write(t, file, o.before)
			}
			p, err := m.Plan(c)
			if err == nil {
				err = m.Apply(p)
			}
			must(t, err)
			text := read(t, file)
			switch o.edited {
			case "-":
			case "":
				write(t, file, strings.Replace(text, "{\n", "{\n  \"$schema\": \"s\",\n", 1))
			default:
				write(t, file, strings.Replace(text, `"theme": "x"`, o.edited, 1))
			}
			must(t, helptest.ErrorOf(m.Disconnect(c)))
			if got := read(t, file); got != o.want {
				t.Errorf("got %q, want %q", got, o.want)
			}
		})
	}
}

func TestPlan_Refuses(t *testing.T) {
	t.Parallel()
	for _, o := range []struct {
		name, client, file, text string
		env                      map[string]string
		want                     string
	}{
		{"an address without an upstream", "claude-code", ".claude/settings.json", `{"env": {"ANTHROPIC_BASE_URL": "https://gateway.example/v1"}}`, nil, "upstreams: {NAME: https://gateway.example}"},
		{"a variable with an address", "claude-code", "", "", map[string]string{"ANTHROPIC_BASE_URL": "https://gateway.example"}, "https://gateway.example"},
		{"a broken file", "claude-code", ".claude/settings.json", "{ // mine\n}", nil, "ignores a file"},
		{"no provider", "continue", ".continue/config.yaml", "name: x\n", nil, "names no provider"},
		{"a provider without a known address", "kimi", ".kimi-code/config.toml", "[providers.k]\ntype = \"kimi\"\n", nil, "no known address"},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			m := machine(t, o.env)
			if o.file != "" {
				write(t, filepath.Join(m.Home, o.file), o.text)
			}
			if _, err := m.Plan(Find(o.client)); err == nil || !strings.Contains(err.Error(), o.want) {
				t.Errorf("got %v, want an error with %q", err, o.want)
			}
		})
	}
}

func TestPlan_DanglingLink(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"claude-code": ".claude/settings.json", "opencode": ".config/opencode/opencode.jsonc"} {
		m := machine(t, nil)
		link := filepath.Join(m.Home, filepath.FromSlash(file))
		write(t, filepath.Join(filepath.Dir(link), "x"), "")
		if err := os.Symlink("../none.json", link); err != nil {
			t.Skipf("make a link: %v", err)
		}
		if p, err := m.Plan(Find(name)); err == nil || !strings.Contains(err.Error(), "does not exist; create it") {
			t.Errorf("%s: got %+v, %v; want a refusal of the link", name, p, err)
		}
	}
}

func TestDisconnect_FileIsALinkNow(t *testing.T) {
	t.Parallel()
	m, c := machine(t, nil), Find("claude-code")
	file, moved := m.File(c), filepath.Join(m.Home, "dotfiles", "settings.json")
	write(t, file, "{}")
	write(t, filepath.Join(m.Home, "dotfiles", "x"), "")
	p, err := m.Plan(c)
	if err == nil {
		err = m.Apply(p)
	}
	must(t, err)
	must(t, os.Rename(file, moved))
	if err := os.Symlink(moved, file); err != nil {
		t.Skipf("make a link: %v", err)
	}
	_, err = m.Disconnect(c)
	info, bad := os.Lstat(file)
	if err != nil || bad != nil || info.Mode()&os.ModeSymlink == 0 || read(t, moved) != "{}" {
		t.Errorf("got %v, %v and %q; want the link, and its target as before", err, info, read(t, moved))
	}
}

func TestApply_FailedLeavesTheRecord(t *testing.T) {
	t.Parallel()
	m, c := machine(t, nil), Find("claude-code")
	file := m.File(c)
	apply := func(text string, mode os.FileMode) error {
		write(t, file, text)
		p, err := m.Plan(c)
		must(t, err)
		must(t, os.Chmod(file, mode))
		return m.Apply(p)
	}
	if err := apply("{}", 0o400); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v, want a refusal of the read-only file", err)
	}
	if _, err := m.Disconnect(c); !errors.Is(err, ErrNotConnected) {
		t.Errorf("disconnect after it: got %v, want %v", err, ErrNotConnected)
	}
	must(t, os.Chmod(file, 0o600))
	must(t, apply("{}", 0o600))
	want := read(t, m.recordFile(c.Name))
	if err := apply(`{"a": 1}`, 0o400); err == nil {
		t.Error("got no error for the read-only file")
	}
	if got := read(t, m.recordFile(c.Name)); got != want {
		t.Errorf("got the record %s, want the one of the first connect, %s", got, want)
	}
}

func TestDisconnect_Says(t *testing.T) {
	t.Parallel()
	c := Find("opencode")
	const openai, anthropic = "provider.openai.options.baseURL", "provider.anthropic.options.baseURL"
	other := func(text, url string) string { return strings.Replace(text, `"`+url+`"`, `"https://other"`, 1) }
	for _, o := range []struct {
		name string
		edit func(text string) string // "" removes the file
		want Undone
	}{
		{"as written", func(text string) string { return text }, Undone{Exact: true}},
		{"another key", func(text string) string { return strings.Replace(text, "{", `{"a": 1,`, 1) }, Undone{}},
		{"one value", func(text string) string { return other(text, base+"/v1") }, Undone{Left: []string{openai}}},
		{"all values", func(text string) string { return other(other(text, base+"/v1"), base+"/v1") }, Undone{Left: []string{openai, anthropic}}},
		{"a file without them", func(string) string { return "{}" }, Undone{Left: []string{openai, anthropic}}},
		{"no file", func(string) string { return "" }, Undone{Gone: true}},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			m := machine(t, nil)
			file := m.File(c)
			write(t, file, "{\n}\n")
			p, err := m.Plan(c)
			if err == nil {
				err = m.Apply(p)
			}
			must(t, err)
			if text := o.edit(read(t, file)); text != "" {
				write(t, file, text)
			} else if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			o.want.Client, o.want.File = c.Name, file
			if done, err := m.Disconnect(c); err != nil || !reflect.DeepEqual(done, o.want) {
				t.Errorf("got %+v, %v; want %+v", done, err, o.want)
			}
		})
	}
	if _, err := machine(t, nil).Disconnect(Find("copilot")); err == nil || !strings.Contains(err.Error(), "unset COPILOT_PROVIDER_BASE_URL") {
		t.Errorf("copilot: got %v, want the variable", err)
	}
}

func TestCodex_ChatGPTLogin(t *testing.T) {
	t.Parallel()
	m := machine(t, nil)
	write(t, filepath.Join(m.Home, ".codex", "auth.json"), `{"OPENAI_API_KEY": null, "tokens": {"access_token": "x"}}`)
	p, err := m.Plan(Find("codex"))
	if err != nil || p.Changes[0].Value != base+"/u/chatgpt" {
		t.Errorf("got %+v, %v; want the upstream of ChatGPT", p, err)
	}
}

func TestCodex_ProviderWithADot(t *testing.T) {
	t.Parallel()
	m := machine(t, nil)
	file := filepath.Join(m.Home, ".codex", "config.toml")
	write(t, file, "model_provider = \"corp.eu\"\n[model_providers.\"corp.eu\"]\nbase_url = \"https://api.groq.com/openai/v1\"\n")
	p, err := m.Plan(Find("codex"))
	if err == nil {
		err = m.Apply(p)
	}
	if got := read(t, file); err != nil || !strings.Contains(got, base+"/u/groq/v1") {
		t.Errorf("got %q, %v; want the provider through the proxy", got, err)
	}
}

func TestExamine(t *testing.T) {
	t.Parallel()
	through := `{"env": {"ANTHROPIC_BASE_URL": "` + base + `"}}`
	for _, o := range []struct {
		name, client string
		files        map[string]string
		env          map[string]string
		want         string // "" for none
	}{
		{"a project's file", "claude-code", map[string]string{".claude/settings.json": through, "src/.claude/settings.json": `{"env": {"ANTHROPIC_BASE_URL": "https://x"}}`}, nil, "overrides"},
		{"a project's file without the key", "claude-code", map[string]string{".claude/settings.json": through, "src/.claude/settings.json": `{}`}, nil, ""},
		{"a project's file hides the whole file", "gemini", map[string]string{".gemini/.env": "GOOGLE_GEMINI_BASE_URL=" + base, "src/.gemini/.env": "A=1"}, nil, "overrides"},
		{"a variable wins", "gemini", map[string]string{".gemini/.env": "GOOGLE_GEMINI_BASE_URL=" + base}, map[string]string{"GOOGLE_GEMINI_BASE_URL": "https://x"}, "unset it"},
		{"another API", "claude-code", map[string]string{".claude/settings.json": through}, map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}, "selects another API"},
		{"a login", "gemini", map[string]string{".gemini/.env": "GOOGLE_GEMINI_BASE_URL=" + base, ".gemini/settings.json": `{"security": {"auth": {"selectedType": "oauth-personal"}}}`}, nil, "Google login"},
		{"a comment in strict JSON", "claude-code", map[string]string{".claude/settings.json": "// mine\n" + through}, nil, "line 1"},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			m := machine(t, o.env)
			for file, text := range o.files {
				write(t, filepath.Join(m.Home, file), text)
			}
			through, problems := m.Examine(Find(o.client))
			if through != (o.want == "") || !strings.Contains(strings.Join(problems, "\n"), o.want) {
				t.Errorf("got %v, %q; want the problem %q", through, problems, o.want)
			}
		})
	}
}

// TestConnect_Also checks settings of another file that a client needs with a base URL.
func TestConnect_Also(t *testing.T) {
	t.Parallel()
	for _, o := range []struct {
		name, dotenv, settings string
		env                    map[string]string
		want                   string
	}{
		{"a key", "GEMINI_API_KEY=k\n", "", nil, "{\n  \"security\": {\n    \"auth\": {\n      \"selectedType\": \"gemini-api-key\"\n    }\n  }\n}\n"},
		{"a key in a variable", "", "{\n  // mine\n}\n", map[string]string{"GEMINI_API_KEY": "k"}, "{\n  \"security\": {\n    \"auth\": {\n      \"selectedType\": \"gemini-api-key\"\n    }\n  }\n  // mine\n}\n"},
		{"another choice", "GEMINI_API_KEY=k\n", `{"security": {"auth": {"selectedType": "vertex-ai"}}}`, nil, `{"security": {"auth": {"selectedType": "vertex-ai"}}}`},
		{"no key", "A=1\n", "", nil, "(no file)"},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			m, c := machine(t, o.env), Find("gemini")
			file := filepath.Join(m.Home, ".gemini", "settings.json")
			before := "(no file)"
			write(t, m.File(c), o.dotenv)
			if o.settings != "" {
				write(t, file, o.settings)
				before = o.settings
			}
			for range 2 {
				p, err := m.Plan(c)
				if err == nil {
					err = m.Apply(p)
				}
				if got := read(t, file); err != nil || got != o.want {
					t.Fatalf("got %q, %v; want %q", got, err, o.want)
				}
			}
			if p, err := m.Plan(c); err != nil || !p.Unchanged() {
				t.Errorf("got %+v, %v; want no further change", p, err)
			}
			if _, err := m.Disconnect(c); err != nil || read(t, file) != before || read(t, m.File(c)) != o.dotenv {
				t.Errorf("after disconnect (%v) got %q, want %q", err, read(t, file), before)
			}
		})
	}
}

// TestConnect_MergedFiles checks that the file that overrides the others is changed, and that
// the others' address is kept.
func TestConnect_MergedFiles(t *testing.T) {
	t.Parallel()
	m, c := machine(t, nil), Find("opencode")
	strong, weak := filepath.Join(m.Home, ".config/opencode/opencode.jsonc"), filepath.Join(m.Home, ".config/opencode/opencode.json")
	write(t, strong, "{\n  // mine\n}\n")
	write(t, weak, `{"provider": {"openai": {"options": {"baseURL": "https://api.groq.com/openai/v1"}}}}`)
	p, err := m.Plan(c)
	if err == nil {
		err = m.Apply(p)
	}
	if got := read(t, strong); err != nil || !strings.Contains(got, base+"/u/groq/v1") {
		t.Errorf("got %s, %v; want the address of the other file through the proxy", got, err)
	}
	if through, problems := m.Examine(c); !through {
		t.Errorf("Examine = %v, %q; want true", through, problems)
	}
	write(t, strong, `{"provider": {"openai": {"options": {"baseURL": "https://x"}}, "anthropic": {"options": {"baseURL": "https://x"}}}}`)
	write(t, weak, `{"provider": {"openai": {"options": {"baseURL": "`+base+`/v1"}}}}`)
	if through, _ := m.Examine(c); through {
		t.Error("an overridden address counts")
	}
}

// TestLogin_EndsWithSession checks that a service over SSH asks whether the person lingers.
func TestLogin_EndsWithSession(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	says := filepath.Join(t.TempDir(), "says")
	for answer, want := range map[string]bool{"Linger=no": true, "Linger=yes": false} {
		write(t, says, "#!/bin/sh\necho "+answer+"\n")
		must(t, os.Chmod(says, 0o700))
		l, err := LoginOf("linux", machine(t, map[string]string{"SSH_CONNECTION": "a"}), 1, []string{"x"})
		if err != nil || len(l.Lingers) == 0 {
			t.Fatalf("got %+v, %v; want a question about lingering", l, err)
		}
		if l.Lingers = []string{says}; l.EndsWithSession(t.Context()) != want {
			t.Errorf("%s: got %v, want %v", answer, !want, want)
		}
	}
	if l, err := LoginOf("linux", machine(t, nil), 1, []string{"x"}); err != nil || l.EndsWithSession(t.Context()) {
		t.Errorf("without SSH: got %+v, %v; want no question", l, err)
	}
}

func TestLoginOf(t *testing.T) {
	t.Parallel()
	m := machine(t, nil)
	for system, want := range map[string]string{
		"linux":   `ExecStart="/opt/a b/graphiti-proxy" "serve" "--config" "/x/100%%"`,
		"darwin":  "<string>/opt/a b/graphiti-proxy</string>",
		"windows": "",
	} {
		l, err := LoginOf(system, m, 1, []string{"/opt/a b/graphiti-proxy", "serve", "--config", "/x/100%"})
		if err != nil || !strings.Contains(l.Text, want) || (l.File == "") != (system == "windows") {
			t.Errorf("%s: got %+v, %v; want it with %s", system, l, err, want)
		}
	}
	if _, err := LoginOf("plan9", m, 1, nil); err == nil {
		t.Error("got no error for an unknown system")
	}
}

func TestLogin_Ready(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tagged := filepath.Join(dir, "moved")
	write(t, filepath.Join(tagged, "CACHEDIR.TAG"), "")
	for program, want := range map[string]string{
		filepath.Join(dir, ".npm", "_npx", "1f", "node_modules", "x", "graphiti-proxy"): "is in a cache and may disappear; install it first: npm install --global graphiti-proxy",
		filepath.Join(dir, ".cache", "uv", "archive-v0", "x", "bin", "graphiti-proxy"):  "uv tool install graphiti-proxy",
		filepath.Join(tagged, "archive-v0", "x", "bin", "graphiti-proxy"):               "is in a cache",
		filepath.Join(dir, "lib", "node_modules", "graphiti-proxy"):                     "",
	} {
		l := &Login{Program: program}
		if err := l.Ready(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", program, err, want)
		}
	}
}

// TestLogin_Leftover checks that a failed installation leaves no file, and that the file
// goes without a service manager.
func TestLogin_Leftover(t *testing.T) {
	t.Parallel()
	fails := []string{filepath.Join(t.TempDir(), "absent")}
	for name, o := range map[string]struct {
		login Login
		want  string
	}{
		"without a service manager": {Login{Manager: fails, Uninstall: [][]string{fails}}, "run graphiti-proxy serve"},
		"a command fails":           {Login{Install: [][]string{fails}}, "absent"},
	} {
		l := &o.login
		l.Program, l.File = filepath.Join(t.TempDir(), "graphiti-proxy"), filepath.Join(t.TempDir(), "units", unitName)
		if err := l.Start(t.Context()); err == nil || !strings.Contains(err.Error(), o.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: start: got %v, want one line with %q", name, err, o.want)
		}
		if got := read(t, l.File); got != "(no file)" {
			t.Errorf("%s: got the file %q after start, want no file", name, got)
		}
		write(t, l.File, "earlier")
		if err := l.Stop(t.Context()); err != nil {
			t.Errorf("%s: stop: got %v, want no error", name, err)
		}
		if got := read(t, l.File); got != "(no file)" {
			t.Errorf("%s: got the file %q after stop, want no file", name, got)
		}
	}
}

// TestTakeBack checks that a client keeps the proxy only if it fails without it, too.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	for fails, want := range map[string]bool{"grep -q 8787 \"$HOME_DIR/.claude/settings.json\" && exit 41; exit 0": true, "exit 1": false} {
		m, c := machine(t, nil), Find("claude-code")
		program := filepath.Join(m.Home, "client")
		write(t, program, "#!/bin/sh\nHOME_DIR='"+m.Home+"'\n"+fails+"\n")
		write(t, m.File(c), "{}")
		must(t, os.Chmod(program, 0o700))
		m.Look = func(string) (string, error) { return program, nil }
		p, err := m.Plan(c)
		if err == nil {
			err = m.Apply(p)
		}
		must(t, err)
		restored, err := m.TakeBack(t.Context(), p)
		if connected := strings.Contains(read(t, m.File(c)), base); err != nil || restored != want || connected == want {
			t.Errorf("%s: got %v, %v, connected %v; want %v", fails, restored, err, connected, want)
		}
	}
}
