//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenWebUI runs the services of compose/open-webui.yaml with their own variables, and ten
// people who chat at once. Each recalls their own words and no other person's, titles and tags are
// not stored, and the upstream receives no name.
func TestOpenWebUI(t *testing.T) {
	t.Parallel()
	lib, err := filepath.Abs(".cache/open-webui")
	must(t, err)
	if _, err := os.Stat(filepath.Join(lib, "bin", "open-webui")); err != nil {
		t.Skip("SKIPPED LOUDLY: Open WebUI is not installed; run internal/e2e/install.sh open-webui")
	}
	variables := map[string]string{"GATEWAY_KEY": masterKey, "WEBUI_SECRET_KEY": "a-secret-for-this-test"}
	c := compose(t, "../../deploy/compose/open-webui.yaml", variables)
	w := serve(t, append(c.env("proxy", nil), "GRAPHITI_PROXY_IDENTITY_MODE=multi")...)
	dir := t.TempDir()
	// Open WebUI loads no model from a hub, and makes no vectors.
	env := append(c.env("open-webui", map[string]string{"http://proxy:8787": w.url}), "PYTHONPATH="+lib, "DATA_DIR="+dir, "OFFLINE_MODE=true",
		"RAG_EMBEDDING_ENGINE=openai", "AUDIO_STT_ENGINE=openai", "BYPASS_MODEL_ACCESS_CONTROL=true")
	url := pythonServer(t, dir, "/health", env, filepath.Join(lib, "bin", "open-webui"), "serve")

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
		must(t, json.Unmarshal([]byte(line), &person))
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
			t.Error("the upstream received the name of a person")
		}
	}
}
