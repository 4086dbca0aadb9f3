//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// toolWish matches the text with which a test asks the model for a tool call.
var toolWish = regexp.MustCompile(`\[\[tool (\w+) (\{.*?\})\]\]`)

// coderModel makes the requested tool call, then answers with the name of the database or
// cat if a memory block holds it.
func coderModel(c proxytest.Input) proxytest.Reply {
	var wish []string // of the person: a block may quote another one
	called := false
	for _, m := range c.Messages {
		_, own, ok := strings.Cut(m.Text, "</graphiti_memory>")
		if !ok {
			own = m.Text
		}
		switch asked := toolWish.FindStringSubmatch(own); {
		case m.Role == "user" && asked != nil:
			wish, called = asked, false
		case m.Role == "tool" || m.Role == "user":
			called = true
		}
	}
	if wish != nil && !called && c.Tools {
		return proxytest.Reply{Tool: wish[1], Arguments: wish[2]}
	}
	for _, m := range c.Messages {
		if _, memory, ok := strings.Cut(m.Text, "<graphiti_memory>"); ok && m.Role == "user" && strings.Contains(memory, "called Miso") {
			return proxytest.Reply{Text: "It is called Miso."}
		}
	}
	return proxytest.Reply{Text: "Understood."}
}

// coder runs a coding client in a repository.
type coder struct {
	name string
	tool string // call of its shell

	// later moves the tool call to the resumed conversation. Gemini CLI 0.61 would send the
	// results of an earlier call twice there, which the API refuses.
	later bool

	// run sends a prompt and returns the client's output.
	run func(t *testing.T, url, home, repo, prompt string, how how) string
}

// how describes the way in which a client sends a prompt.
type how struct {
	goOn bool   // continue the newest conversation
	file string // attachment, or ""
}

// at returns the prompt with a reference to the attached file, in the syntax of most
// clients.
func (h how) at(prompt string) string {
	if h.file != "" {
		prompt += " @" + h.file
	}
	return prompt
}

func cli(t *testing.T, repo string, env []string, name string, args ...string) string {
	t.Helper()
	return program(t, repo, env, nil, filepath.Join("cli", "node_modules", name), args...)
}

// program runs a client that is installed below .cache, and returns its output.
func program(t *testing.T, repo string, env []string, in io.Reader, name string, args ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(".cache", name))
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh where npm's registry is reached", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = repo, env, in, 10*time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", name, err, out, errs.String())
	}
	return string(out)
}

// xdg returns an environment in which clients store all their files in home.
func xdg(home, repo string) []string {
	return append(os.Environ(), "HOME="+home, "PWD="+repo, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "XDG_DATA_HOME="+filepath.Join(home, ".local"),
		"XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "XDG_STATE_HOME="+filepath.Join(home, ".state"), "OPENCODE_DISABLE_MODELS_FETCH=1")
}

// write writes a file with a client's settings.
func write(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

// claude runs Claude Code. Its requests, and the form in which they state the directory,
// depend on the model, which more may name.
func claude(t *testing.T, url, home, repo, prompt string, how how, more ...string) string {
	args := append([]string{"-p", how.at(prompt), "--allowedTools", "Bash"}, more...)
	if how.goOn {
		args = append(args, "--continue")
	}
	return cli(t, repo, append(append(os.Environ(), exports(t, "claude-code", 0, url)...), "HOME="+home, "ANTHROPIC_API_KEY=sk-ant-test",
		"DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"), ".bin/claude", args...)
}

// gemini runs Gemini CLI.
func gemini(t *testing.T, url, home, repo, prompt string, how how, more ...string) string {
	settings := strings.Replace(recipeText(t, "gemini-cli", 1, url), "{", `{"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true},`, 1)
	write(t, settings, home, ".gemini", "settings.json")
	args := append([]string{"--yolo", "-p", how.at(prompt)}, more...)
	if how.goOn {
		args = append(args, "--resume", "latest")
	}
	return cli(t, repo, append(append(os.Environ(), exports(t, "gemini-cli", 0, url)...), "HOME="+home, "GEMINI_API_KEY=k-test", "GEMINI_CLI_TRUST_WORKSPACE=true"), ".bin/gemini", args...)
}

var theCoders = []coder{
	{name: "Codex", tool: `exec_command {"cmd":"echo forty-two"}`, run: func(t *testing.T, url, home, repo, prompt string, how how) string {
		write(t, "model = \"gpt-5.1-codex\"\n"+recipeText(t, "codex", 0, url), home, ".codex", "config.toml")
		args := []string{"exec", "--skip-git-repo-check"}
		if how.goOn {
			args = append(args, "resume", "--last")
		}
		return cli(t, repo, append(os.Environ(), "HOME="+home, "OPENAI_API_KEY=sk-test"), ".bin/codex", append(args, prompt)...)
	}},
	{name: "opencode", tool: `bash {"command":"echo forty-two","description":"counts"}`, run: func(t *testing.T, url, home, repo, prompt string, how how) string {
		config := strings.Replace(recipeText(t, "opencode", 0, url), "{", `{"autoupdate":false,"share":"disabled","permission":"allow",`, 1)
		write(t, config, home, ".config", "opencode", "opencode.json")
		args := []string{"run"}
		if how.goOn {
			args = append(args, "--continue")
		}
		if how.file != "" {
			args = append(args, "-f", how.file, "--")
		}
		return cli(t, repo, append(xdg(home, repo), "OPENAI_API_KEY=sk-test"), "opencode-linux-x64/bin/opencode", append(args, prompt)...)
	}},
	{name: "Claude Code", tool: `Bash {"command":"echo forty-two","description":"counts"}`, run: func(t *testing.T, url, home, repo, prompt string, how how) string {
		return claude(t, url, home, repo, prompt, how)
	}},
	{name: "Gemini CLI", tool: `run_shell_command {"command":"echo forty-two","description":"counts"}`, later: true, run: func(t *testing.T, url, home, repo, prompt string, how how) string {
		return gemini(t, url, home, repo, prompt, how)
	}},
}

// TestSharedRepositoryMemory checks that a fact from one client reaches the
// next client in another of the person's clones of the repository, across a call of its
// shell. The first message of a resumed conversation keeps its block byte for byte, each
// turn is stored exactly once, in the repository's memory, and requests for titles are not
// stored. The question is about the project, because a question about the person would find
// the person's memory without any repository.
func TestSharedRepositoryMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := serve(t, "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw", "GRAPHITI_PROXY_WORKSPACE_CLONES="+dir+"/*")
	w.model.SetAnswer(coderModel)
	var clones []string
	for i := range theCoders {
		clones = append(clones, clone(t, filepath.Join(dir, fmt.Sprint("clone", i))))
	}
	told := 0
	kept := func(t *testing.T, c coder) {
		t.Helper()
		told++
		w.until(t, "the turn of "+c.name, func(q queue) bool { return q.Delivered >= told })
	}
	for i, c := range theCoders {
		t.Run(c.name+" is told", func(t *testing.T) {
			out := c.run(t, w.url, filepath.Join(dir, fmt.Sprint("home", i)), clones[i], fmt.Sprintf("This is %s. The staging database is called Miso. Remember it.", c.name), how{})
			if !strings.Contains(out, "Understood.") && i == 0 {
				t.Errorf("%s printed %q", c.name, out)
			}
			kept(t, c)
		})
	}
	for i, c := range theCoders {
		t.Run(c.name+" is asked", func(t *testing.T) {
			clone := clones[(i+1)%len(clones)]
			home := filepath.Join(dir, fmt.Sprint("new home", i))
			w.model.Forget()
			call, then := " Count first. [[tool "+c.tool+"]]", ""
			if c.later {
				call, then = then, call
			}
			out := c.run(t, w.url, home, clone, "What is the staging database called?"+call, how{})
			if !strings.Contains(out, "It is called Miso.") {
				t.Errorf("%s in another clone printed %q", c.name, out)
			}
			kept(t, c)
			first := lastBlock(t, w.model)
			c.run(t, w.url, home, clone, "And which port does it listen on?"+then, how{goOn: true})
			if again := lastBlock(t, w.model); first == "" || again != first {
				t.Errorf("the first message's block became\n%s\nfrom\n%s", again, first)
			}
			kept(t, c)
			if !slices.ContainsFunc(w.model.Requests(), func(r *proxytest.Received) bool {
				return strings.Contains(string(r.Body), "forty-two") && strings.Contains(string(r.Body), "tool_result") ||
					strings.Contains(string(r.Body), "function_call_output") || strings.Contains(string(r.Body), `"role":"tool"`) || strings.Contains(string(r.Body), `"functionResponse"`)
			}) {
				t.Error("no tool was called")
			}
			for _, r := range w.model.Requests() {
				if r.Refused != "" {
					t.Errorf("%s was refused: %s", r.Path, r.Refused)
				}
			}
		})
	}
	if q := w.queue(t); q.Delivered != told {
		t.Errorf("%d turns were kept of %d", q.Delivered, told)
	}
	all := w.export(t, widgets)
	for _, c := range theCoders {
		if !strings.Contains(all, "This is "+c.name+". The staging database is called Miso.") {
			t.Errorf("what %s was told is not the repository's: %s", c.name, all)
		}
	}
	if kept := w.export(t, "user_josh"); kept != "" {
		t.Errorf("the person's memory holds %s", kept)
	}
}

// widgets is the group of the repository acme/widgets.
const widgets = "workspace_github_repo_github_com_acme_widgets-27bf01bfae610991"

// clone makes a clone of acme/widgets, as far as possible without a network, and returns
// its directory.
func clone(t *testing.T, dir string) string {
	t.Helper()
	origin := filepath.Join(filepath.Dir(dir), "origin")
	steps := [][]string{{"clone", "-q", origin, dir}, {"-C", dir, "remote", "set-url", "origin", "https://github.com/acme/widgets.git"}}
	if _, err := os.Stat(origin); err != nil {
		steps = append([][]string{
			{"init", "-q", "-b", "main", origin},
			{"-C", origin, "-c", "user.name=acme", "-c", "user.email=dev@acme.test", "commit", "-q", "--allow-empty", "-m", "widgets"},
		}, steps...)
	}
	for _, args := range steps {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED LOUDLY: git: %v %s", err, out)
		}
	}
	return dir
}

func git(dir string, args ...string) ([]byte, error) {
	return exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
}

// export returns the contents of a group as JSON Lines.
func (w *world) export(t *testing.T, group string) string {
	t.Helper()
	resp, err := http.Get(w.admin + "/api/v1/memory/export?group=" + group)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("export: %s %s (%v)", resp.Status, b, err)
	}
	return string(b)
}

// lastBlock returns the first block of the newest request that holds one, unchanged, or "".
func lastBlock(t *testing.T, model *proxytest.Provider) string {
	t.Helper()
	requests := model.Requests()
	for i := len(requests) - 1; i >= 0; i-- {
		if _, rest, ok := strings.Cut(string(requests[i].Body), "<graphiti_memory>"); ok {
			if !json.Valid(requests[i].Body) {
				t.Errorf("the proxy sent what is not JSON: %.300s", requests[i].Body)
			}
			block, _, _ := strings.Cut(rest, "</graphiti_memory>")
			return block
		}
	}
	return ""
}

// TestCodexOverWebSocket checks that memory works over Codex's preferred transport: a fact
// of one run reaches the next, across a call of its shell.
func TestCodexOverWebSocket(t *testing.T) {
	t.Parallel()
	w := serve(t, "GRAPHITI_PROXY_WEBSOCKET=intercept")
	w.model.SetAnswer(coderModel)
	dir := t.TempDir()
	run := func(prompt string) string {
		home := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(home, ".codex"), 0o700))
		config := fmt.Sprintf("model = \"gpt-5.1-codex\"\nmodel_provider = \"p\"\n[model_providers.p]\nname = \"p\"\nbase_url = \"%s/v1\"\nwire_api = \"responses\"\nenv_key = \"K\"\nsupports_websockets = true\n", w.url)
		write(t, config, home, ".codex", "config.toml")
		return cli(t, dir, append(os.Environ(), "HOME="+home, "K=sk-test"), ".bin/codex", "exec", "--skip-git-repo-check", prompt)
	}
	run("My cat is called Miso. Remember it.")
	w.until(t, "the first turn", func(q queue) bool { return q.Pending == 0 && q.Delivered == 1 })
	if out := run("What is my cat called? Count first. [[tool " + theCoders[0].tool + "]]"); !strings.Contains(out, "It is called Miso.") {
		t.Errorf("Codex printed %q", out)
	}
	w.until(t, "the second turn", func(q queue) bool { return q.Delivered == 2 })
	frames := 0
	for _, r := range w.model.Requests() {
		if r.Method == "WS" {
			frames++
		}
		if r.Refused != "" {
			t.Errorf("%s %s was refused: %s", r.Method, r.Path, r.Refused)
		}
	}
	if frames < 3 {
		t.Errorf("%d requests came over WebSocket", frames)
	}
}

// TestCodexSubagentThread checks that a model's task for a subagent is not stored.
// If a person continues the subagent's thread, the person's turn is stored, without the
// earlier task.
func TestCodexSubagentThread(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"WebSocket", "POST"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := serve(t, "GRAPHITI_PROXY_WEBSOCKET=intercept", "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw")
			var spawned atomic.Bool
			w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
				if said := c.Messages[len(c.Messages)-1]; strings.Contains(said.Text, "Delegate") && !spawned.Swap(true) {
					return proxytest.Reply{Tool: "multi_agent_v1/spawn_agent", Arguments: `{"message":"Count the sheep on the hill."}`}
				}
				return proxytest.Reply{Text: "Understood."}
			})
			dir := t.TempDir()
			repo, home := clone(t, filepath.Join(dir, "repo")), filepath.Join(dir, "home")
			write(t, fmt.Sprintf("model = \"gpt-5.1-codex\"\nmodel_provider = \"p\"\n[features]\nmulti_agent = true\n[model_providers.p]\nname = \"p\"\nbase_url = \"%s/v1\"\nwire_api = \"responses\"\nenv_key = \"K\"\nsupports_websockets = %v\n",
				w.url, way == "WebSocket"), home, ".codex", "config.toml")
			say := func(args ...string) {
				t.Helper()
				cli(t, repo, append(os.Environ(), "HOME="+home, "K=sk-test"), ".bin/codex", append([]string{"exec", "--skip-git-repo-check"}, args...)...)
			}
			said := func(text string) func(episode) bool {
				return func(e episode) bool { return e.Role == "user" && strings.Contains(e.Text, text) }
			}
			say("Delegate this, please.")
			say("resume", threadOfSubagent(t, home), "The river is called Isar.")
			w.until(t, "the person's turn", func(q queue) bool {
				return q.Pending == 0 && slices.ContainsFunc(w.episodes(t, widgets), said("The river is called Isar."))
			})
			if all := w.episodes(t, widgets); slices.ContainsFunc(all, said("sheep")) {
				t.Errorf("what a model asked was kept: %+v", all)
			}
		})
	}
}

// threadOfSubagent returns the id of the thread that Codex's session files attribute to a
// subagent.
func threadOfSubagent(t *testing.T, home string) (id string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, ".codex", "sessions", "*", "*", "*", "*.jsonl"))
	must(t, err)
	for _, name := range files {
		var first struct {
			Payload struct{ ID, ThreadSource string }
		}
		line, _, _ := strings.Cut(read(t, name), "\n")
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(line, "thread_source", "threadSource")), &first))
		if first.Payload.ThreadSource == "subagent" {
			id = first.Payload.ID
		}
	}
	if id == "" {
		t.Fatalf("Codex has started no subagent: %v", files)
	}
	return id
}
