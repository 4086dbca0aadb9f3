package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistypedCommands are answered with the one that was probably meant, and
// flags with what is wrong with their value.
func TestMistypedCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"sreve":                     `unknown command "sreve"; did you mean serve?`,
		"memory shwo":               `unknown command "memory shwo"; did you mean show?`,
		"queue lst":                 `unknown command "queue lst"; did you mean list?`,
		"memory zzzzzzzz":           `unknown command "memory zzzzzzzz"; see graphiti-proxy memory --help`,
		"status now":                `graphiti-proxy status takes no argument "now"; see graphiti-proxy status --help`,
		"memory show --last abc":    `--last "abc" is not a number; see graphiti-proxy memory show --help`,
		"memory show --last 0":      `--last must be 1 to 10000`,
		"memory promote x":          `--kind is required; write one of decision, lesson_learned, preference, procedure, task_update, terminology, repo_state`,
		"memory import nofile.json": `cannot open nofile.json: no such file`,
		"memory import /":           `cannot open /: it is a directory; name a file`,
		"test --upstream x":         `--upstream "x" is not known; write one of openai, anthropic, gemini`,
		"serve --listen 8787":       `flag: listen: "8787" is not an address to listen on; write host:port, e.g. 127.0.0.1:8787`,
	} {
		if _, err := command(t, t.TempDir(), strings.Fields(line)...); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	dir := t.TempDir()
	if _, err := command(t, dir, "memory", "promote", "--kind", "decision", "Postgres"); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, dir, "queue", "retry", "99"); err == nil || out != "" || !strings.HasPrefix(err.Error(), "no refused turn has the number 99") {
		t.Errorf("%q %v", out, err)
	}
}

// TestCompletion offers settings with their values, kinds and states.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"config check --set recall.t":             "recall.timeout=\n",
		"config check --set memory.backend=":      "memory.backend=graphiti-mcp\n",
		"serve --set log.requests=":               "log.requests=false\n",
		"memory promote --kind ":                  "lesson_learned\n",
		"queue list --state ":                     "under-way\n",
		"test --upstream ":                        "anthropic\n",
		"memory promote --kind decision --scope ": "workspace\n",
		"memory ": "promote\t",
		"config check --set identity.mode=multi --set tls.": "tls.cert=\n",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if out, err := command(t, t.TempDir(), args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
}

// TestInit writes a file that is valid as it is, and keeps one that is there.
func TestInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "graphiti-proxy.yaml")
	if out, err := command(t, dir, "init"); err != nil || !strings.HasPrefix(out, "wrote "+file) {
		t.Errorf("%s %v", out, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if out, err := command(t, dir, "config", "check"); err != nil || !strings.Contains(out, file) {
		t.Errorf("%s %v", out, err)
	}
	if _, err := command(t, dir, "init"); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Error(err)
	}
	if out, err := command(t, dir, "init", "-"); err != nil || !strings.Contains(out, "upstream:") {
		t.Errorf("%s %v", out, err)
	}
	if out, err := command(t, dir, "version"); err != nil || !strings.HasPrefix(out, "graphiti-proxy ") {
		t.Errorf("%s %v", out, err)
	}
}

// TestConfigCheckForPrograms is JSON with mistakes, too, and notes what is used
// otherwise than it was written.
func TestConfigCheckForPrograms(t *testing.T) {
	t.Parallel()
	var found struct {
		Valid           bool
		Mistakes, Notes []string
		Online          []struct{ What, Error string }
	}
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	for _, tc := range []struct {
		name            string
		args            []string
		mistakes, notes int
	}{
		{"mistakes", []string{"--set", "log.level=loud", "--set", "recall.timeout=fast"}, 2, 0},
		{"a note", []string{"--set", "upstream.openai=" + up.URL + "/v1"}, 0, 1},
		{"online", []string{"--online", "--set", "upstream.openai=" + up.URL, "--set", "upstream.anthropic=http://127.0.0.1:1", "--set", "upstream.gemini=" + up.URL,
			"--set", "memory.endpoint=http://127.0.0.1:1"}, 2, 0},
	} {
		out, err := command(t, t.TempDir(), append([]string{"config", "check", "--json"}, tc.args...)...)
		found.Mistakes, found.Notes, found.Online = nil, nil, nil
		if failed := json.Unmarshal([]byte(out), &found); failed != nil || found.Valid == (tc.mistakes > 0) || (err == nil) != found.Valid ||
			len(found.Mistakes) != tc.mistakes || len(found.Notes) != tc.notes {
			t.Errorf("%s: %v %v\n%s", tc.name, failed, err, out)
		}
		if tc.name == "online" && (len(found.Online) != 4 || !strings.Contains(out, "start Graphiti, or correct memory.endpoint")) {
			t.Errorf("%s", out)
		}
	}
}

// TestUnreachableGraphiti: a command says what to do, and the test of the
// connection stops where nothing else can work.
func TestUnreachableGraphiti(t *testing.T) {
	t.Parallel()
	at := []string{"--set", "memory.endpoint=http://127.0.0.1:1", "--set", "memory.consent=true"}
	for _, args := range [][]string{{"memory", "show"}, {"memory", "search", "x"}} {
		if _, err := command(t, t.TempDir(), append(args, at...)...); err == nil || !strings.Contains(err.Error(), "to do: start Graphiti, or correct memory.endpoint") {
			t.Errorf("%v: %v", args, err)
		}
	}
	out, err := command(t, t.TempDir(), append([]string{"test-connection"}, at...)...)
	if err == nil || !strings.HasPrefix(err.Error(), "1 of 1 checks failed") || strings.Contains(out, "openapi") {
		t.Errorf("%s %v", out, err)
	}
}
