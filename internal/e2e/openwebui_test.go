//go:build e2e

package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// openWebUI starts Open WebUI with variables, in a directory of its own.
func openWebUI(t *testing.T, lib string, env ...string) (url string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(freePort(t))
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("python3", filepath.Join(lib, "bin", "open-webui"), "serve", "--host", "127.0.0.1", "--port", port)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	// No model of embeddings is loaded from a hub, nor a vector made.
	cmd.Env = append(append(os.Environ(), "PYTHONPATH="+lib, "HOME="+dir, "DATA_DIR="+dir, "OFFLINE_MODE=true", "RAG_EMBEDDING_ENGINE=openai",
		"AUDIO_STT_ENGINE=openai", "BYPASS_MODEL_ACCESS_CONTROL=true"), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	url = "http://127.0.0.1:" + port
	for range 1500 { // five minutes
		if resp, err := http.Get(url + "/health"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	out, _ := os.ReadFile(filepath.Join(dir, "log"))
	t.Fatalf("Open WebUI did not start:\n%s", out[max(0, len(out)-3000):])
	return ""
}

// TestOpenWebUI runs the services of compose/open-webui.yaml with their own variables, and ten
// people who chat at once. Each recalls what they said, and no other person's; titles and tags are
// not stored, and LiteLLM is not told who asks.
func TestOpenWebUI(t *testing.T) {
	t.Parallel()
	lib, err := filepath.Abs(".cache/open-webui")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(lib, "bin", "open-webui")); err != nil {
		t.Skip("SKIPPED LOUDLY: Open WebUI is not installed; run internal/e2e/install.sh open-webui")
	}
	variables := map[string]string{"GATEWAY_KEY": masterKey, "WEBUI_SECRET_KEY": "a-secret-for-this-test"}
	c := compose(t, "../../deploy/compose/open-webui.yaml", variables)
	w := serve(t, append(c.env("proxy", nil), "GRAPHITI_PROXY_IDENTITY_MODE=multi")...)
	url := openWebUI(t, lib, c.env("open-webui", map[string]string{"http://proxy:8787": w.url})...)

	names := []string{"Miso", "Pixel", "Bruno", "Luna", "Otto", "Nala", "Rocky", "Tilda", "Felix", "Zorro"}
	cmd := exec.Command("python3", append([]string{"open-webui/people.py", url, "stand-in"}, names...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+lib)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(names) {
		t.Fatalf("got the answers %q, want one for each of %q", lines, names)
	}
	for _, line := range lines {
		var person struct{ Name, Answer string }
		if err := json.Unmarshal([]byte(line), &person); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(person.Answer, name) != (name == person.Name) {
				t.Errorf("the person with the cat %s is answered %q", person.Name, person.Answer)
			}
		}
	}
	w.env = append(w.env, "GRAPHITI_PROXY_ADMIN_LISTEN="+strings.TrimPrefix(w.admin, "http://"))
	w.eventually(t, "ten people with two chats each, and no task", func() bool {
		var people struct{ People []struct{ Messages int } }
		err := json.Unmarshal([]byte(w.command(t, "memory", "people", "--json")), &people)
		for _, p := range people.People {
			if p.Messages != 4 {
				return false
			}
		}
		return err == nil && len(people.People) == len(names)
	})
	for _, r := range w.model.Requests() {
		if r.Headers.Get("X-Graphiti-User") != "" || r.Headers.Get("X-Openwebui-User-Email") != "" {
			t.Error("the upstream is told who asks")
		}
	}
}
