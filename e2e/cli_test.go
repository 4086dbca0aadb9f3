//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// coders answers the Responses and the Messages API as coding clients expect
// them, streamed: with what it knows of the cat, or that it does not.
type coders struct {
	*httptest.Server
	mu     sync.Mutex // guards bodies
	bodies []string
}

func newCoders(t *testing.T) *coders {
	c := &coders{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *coders) serve(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || err != nil {
		http.NotFound(w, r)
		return
	}
	body := string(b)
	c.mu.Lock()
	c.bodies = append(c.bodies, body)
	c.mu.Unlock()
	said := "Understood."
	if _, memory, ok := strings.Cut(body, "<graphiti_memory>"); ok && strings.Contains(memory, "called Miso") {
		said = "Your cat is called Miso."
	}
	if strings.HasSuffix(r.URL.Path, "/count_tokens") {
		_, _ = io.WriteString(w, `{"input_tokens":5}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, format string, args ...any) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, fmt.Sprintf(format, args...))
	}
	if strings.Contains(r.URL.Path, "/responses") {
		item := fmt.Sprintf(`{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, said)
		event("response.created", `"response":{"id":"resp_1","status":"in_progress","output":[]}`)
		event("response.output_item.done", `"output_index":0,"item":%s`, item)
		event("response.completed", `"response":{"id":"resp_1","status":"completed","output":[%s],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}`, item)
		return
	}
	event("message_start", `"message":{"id":"msg","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
	event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)
	event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":%q}`, said)
	event("content_block_stop", `"index":0`)
	event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}`)
	event("message_stop", `"x":0`)
}

// coder runs a coding client in a repository.
type coder struct {
	name string
	run  func(t *testing.T, url, home, repo, prompt string, goOn bool) string
}

func cli(t *testing.T, repo string, env []string, name string, args ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(".cache", "cli", "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED LOUDLY: %s is not installed; run e2e/install.sh where npm's registry is reached", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = repo, env
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", name, err, out, errs.String())
	}
	return string(out)
}

var theCoders = []coder{
	{"Codex", func(t *testing.T, url, home, repo, prompt string, goOn bool) string {
		dir := filepath.Join(home, ".codex")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		config := fmt.Sprintf("model = \"gpt-5.1-codex\"\nmodel_provider = \"p\"\n[model_providers.p]\nname = \"p\"\nbase_url = \"%s/v1\"\nwire_api = \"responses\"\nenv_key = \"K\"\n", url)
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"exec", "--skip-git-repo-check"}
		if goOn {
			args = append(args, "resume", "--last")
		}
		return cli(t, repo, append(os.Environ(), "HOME="+home, "K=sk-test"), "codex", append(args, prompt)...)
	}},
	{"Claude Code", func(t *testing.T, url, home, repo, prompt string, goOn bool) string {
		args := []string{"-p", prompt}
		if goOn {
			args = append(args, "--continue")
		}
		return cli(t, repo, append(os.Environ(), "HOME="+home, "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=sk-ant-test",
			"DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"), "claude", args...)
	}},
}

// TestCodingClientsShareARepositorysMemory: what one is told in a clone, the
// other knows in another clone of it; and in a conversation that goes on the
// first message keeps its block, byte for byte.
func TestCodingClientsShareARepositorysMemory(t *testing.T) {
	model := newCoders(t)
	w := serve(t, "GRAPHITI_PROXY_UPSTREAM_OPENAI="+model.URL, "GRAPHITI_PROXY_UPSTREAM_ANTHROPIC="+model.URL)
	dir := t.TempDir()
	var clones []string
	for i := range theCoders {
		clone := filepath.Join(dir, fmt.Sprint("clone", i))
		for _, args := range [][]string{{"init", "-q", clone}, {"-C", clone, "remote", "add", "origin", "https://github.com/acme/widgets.git"}} {
			if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED LOUDLY: git: %v %s", err, out)
			}
		}
		clones = append(clones, clone)
	}
	told := 0
	for i, c := range theCoders {
		if out := c.run(t, w.url, filepath.Join(dir, fmt.Sprint("home", i)), clones[i], fmt.Sprintf("This is %s. My cat is called Miso. Remember it.", c.name), false); !strings.Contains(out, "Understood.") && i == 0 {
			t.Errorf("%s printed %q", c.name, out)
		}
		told++
		w.until(t, "the turn of "+c.name, func(q queue) bool { return q.Delivered >= told })
	}
	for i, c := range theCoders {
		home := filepath.Join(dir, fmt.Sprint("new home", i))
		out := c.run(t, w.url, home, clones[1-i], "What is my cat called?", false)
		if !strings.Contains(out, "Your cat is called Miso.") {
			t.Errorf("%s in another clone printed %q", c.name, out)
		}
		told++
		w.until(t, "the turn of "+c.name, func(q queue) bool { return q.Delivered >= told })
		first := lastBlock(t, model)
		c.run(t, w.url, home, clones[1-i], "And do I have a dog?", true)
		if again := lastBlock(t, model); first == "" || again != first {
			t.Errorf("%s: the first message's block became\n%s\nfrom\n%s", c.name, again, first)
		}
		told++
		w.until(t, "the next turn of "+c.name, func(q queue) bool { return q.Delivered >= told })
	}
	if q := w.queue(t); q.Delivered != told {
		t.Errorf("%d turns were kept of %d", q.Delivered, told)
	}
}

// lastBlock is the first block in the last request, as it stands there.
func lastBlock(t *testing.T, c *coders) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	body := c.bodies[len(c.bodies)-1]
	if !json.Valid([]byte(body)) {
		t.Errorf("the proxy sent what is not JSON: %.300s", body)
	}
	_, rest, _ := strings.Cut(body, "<graphiti_memory>")
	block, _, _ := strings.Cut(rest, "</graphiti_memory>")
	return block
}
