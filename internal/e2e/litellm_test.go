//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

const masterKey = "sk-master-of-this-test-9f2c41d07b"

// liteLLM starts LiteLLM's proxy with a configuration and variables.
func liteLLM(t *testing.T, config string, env ...string) (url string) {
	t.Helper()
	lib, err := filepath.Abs(".cache/litellm")
	must(t, err)
	if _, err := os.Stat(filepath.Join(lib, "bin", "litellm")); err != nil {
		t.Skip("SKIPPED LOUDLY: litellm is not installed; run internal/e2e/install.sh where PyPI is reached")
	}
	dir := t.TempDir()
	write(t, config, dir, "config.yaml")
	return pythonServer(t, dir, "/health/liveliness", append([]string{"PYTHONPATH=" + lib, "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_MODE=PRODUCTION", "LITELLM_MASTER_KEY=" + masterKey}, env...),
		filepath.Join(lib, "bin", "litellm"), "--config", "config.yaml")
}

// pythonServer starts a server that is written in Python, in a directory, and waits until it answers a path.
func pythonServer(t *testing.T, dir, path string, env []string, command ...string) (url string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(freePort(t))
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	defer log.Close()
	cmd := exec.Command("python3", append(command, "--host", "127.0.0.1", "--port", port)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	cmd.Env = append(append(os.Environ(), "HOME="+dir), env...)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	url = "http://127.0.0.1:" + port
	for range 900 { // three minutes
		if resp, err := http.Get(url + path); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	out, _ := os.ReadFile(filepath.Join(dir, "log"))
	t.Fatalf("%s did not start:\n%s", filepath.Base(command[0]), out[max(0, len(out)-3000):])
	return ""
}

// send posts a chat and returns its answer, or the error.
func send(t *testing.T, url, key string, body map[string]any, headers ...string) string {
	t.Helper()
	b, _ := json.Marshal(body)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(b))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	out := helptest.Body(t, resp, err)
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprint(resp.StatusCode, " ", string(out))
	}
	var text strings.Builder
	for _, line := range strings.Split(string(out), "\n") {
		var c struct {
			Choices []struct{ Message, Delta struct{ Content string } }
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c) == nil && len(c.Choices) > 0 {
			text.WriteString(c.Choices[0].Message.Content + c.Choices[0].Delta.Content)
		}
	}
	return text.String()
}

// TestLiteLLM runs the recipe from its own text. A team's gateway before the proxy vouches
// for its users, who each have a memory of their own; a gateway after it is an upstream.
func TestLiteLLM(t *testing.T) {
	t.Parallel()
	chat := func(text, user string, stream bool) map[string]any {
		b := map[string]any{"model": "gpt-5.1", "messages": []any{map[string]any{"role": "user", "content": text}}, "stream": stream}
		if user != "" {
			b["user"] = user
		}
		return b
	}
	recipe := codeBlocks(t, "../../deploy/recipes/litellm.md")
	// Each of the two starts takes many seconds, and serves both kinds of answers.
	t.Run("in front", func(t *testing.T) {
		t.Parallel()
		w := serve(t, settingsIn(t, recipe[1])...)
		url := liteLLM(t, recipeText(t, "litellm", 0, w.url))
		kept := 0
		for _, stream := range []bool{false, true} {
			people := map[bool][]string{false: {"alice", "bob", "carol"}, true: {"dave", "erin", "frank"}}[stream]
			for i, user := range people[:2] {
				fact := []string{"My cat is called Miso.", "My cat is called Tom."}[i]
				if got := send(t, url, masterKey, chat(fact, user, stream)); got != "Understood, I will keep that in mind." {
					t.Fatalf("stream=%v, told: %q", stream, got)
				}
				kept++
				w.until(t, "what "+user+" said", func(q queue) bool { return q.Delivered == kept })
			}
			if got := send(t, url, masterKey, chat("What is my cat called?", people[0], stream)); !strings.Contains(got, "My cat is called Miso.") {
				t.Errorf("stream=%v, %s: %q", stream, people[0], got)
			}
			for _, who := range []string{"X-OpenWebUI-User-Id", "X-Unknown"} {
				if got := send(t, url, masterKey, chat("What is my cat called, again?", "", stream), who, people[2]); got != "I do not know." {
					t.Errorf("stream=%v, %s %s: %q", stream, who, people[2], got)
				}
			}
			kept += 2
			w.until(t, "what "+people[2]+" said, and of nobody in particular nothing", func(q queue) bool { return q.Pending == 0 && q.Delivered == kept })
		}
	})
	t.Run("behind", func(t *testing.T) {
		t.Parallel()
		model, err := proxytest.Start()
		must(t, err)
		t.Cleanup(func() { model.Close() })
		url := liteLLM(t, read(t, "../../deploy/compose/litellm.yaml"), "OPENAI_API_KEY=sk-gateway", "OPENAI_BASE_URL="+model.URL()+"/v1")
		for _, stream := range []bool{false, true} {
			w := serve(t, "GRAPHITI_PROXY_UPSTREAM_OPENAI="+url)
			send(t, w.url, masterKey, chat("My cat is called Miso.", "", stream))
			w.until(t, "what was said", func(q queue) bool { return q.Delivered == 1 })
			if got := send(t, w.url, masterKey, chat("What is my cat called?", "", stream)); !strings.Contains(got, "My cat is called Miso.") {
				t.Errorf("stream=%v: %q", stream, got)
			}
			if got := send(t, w.url, "sk-wrong", chat("What is my cat called?", "", stream)); !strings.HasPrefix(got, "40") {
				t.Errorf("stream=%v, with a wrong key: %q", stream, got)
			}
		}
	})
}
