package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func TestConnectCommands(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	file := filepath.Join(home, ".claude", "settings.json")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	const own = "{\n  \"model\": \"opus\"\n}\n"
	writeFile(t, file, own)
	for _, c := range []struct {
		args        []string
		says, fails string
	}{
		{[]string{"connect", "--print", "claude-code"}, "env.ANTHROPIC_BASE_URL: http://127.0.0.1:8787 (before: not set)", ""},
		{[]string{"connect", "--print", "copilot"}, "export COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:8787/v1", ""},
		{[]string{"connect", "claude-code"}, "", "no setting was changed, because clients hang"},
		{[]string{"connect", "claude"}, "", `client "claude" is unknown; write one of aider, claude-code, cline`},
		{[]string{"disconnect", "claude-code"}, "", "claude-code is not connected"},
		{[]string{"disconnect", "copilot"}, "", "unset COPILOT_PROVIDER_BASE_URL"},
		{[]string{"disconnect", "--all", "codex"}, "", "leave out the names"},
		{[]string{"doctor", "claude-code"}, "- claude-code is not connected: graphiti-proxy connect claude-code", "see the lines marked"},
		{[]string{"memory", "import", "--yes"}, "", "--yes is for --agents"},
		{[]string{"memory", "import", "--agents", "x"}, "", "leave out the file"},
		{[]string{"memory", "import", "--agents", "--user", "josh"}, "", "leave out --user"},
		{[]string{"memory", "forget", "--import", "x", "--user", "josh"}, "", "leave out others"},
	} {
		out, _, err := commandIn(t, home, home, c.args...)
		failed := ""
		if err != nil {
			failed = err.Error()
		}
		if !strings.Contains(out, c.says) || !strings.Contains(failed, c.fails) || (c.fails == "") != (err == nil) {
			t.Errorf("%q: got %q and %v, want %q and the error %q", c.args, out, err, c.says, c.fails)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != own {
		t.Errorf("got %q, %v; want an unchanged file", got, err)
	}
}

// TestDoctor_NoDirectory checks that doctor reports a client whose last request named no directory.
func TestDoctor_NoDirectory(t *testing.T) {
	t.Parallel()
	w, home := start(t, t.TempDir(), nil), t.TempDir()
	for _, dir := range []string{"", t.TempDir()} {
		messages := []m{{"role": "system", "content": "You are a coding assistant running inside pi, a harness.\n<cwd>\n" + dir + "\n</cwd>"}, user(fact)}
		w.exchange("/v1/chat/completions", worker(messages...), "User-Agent", "pi/1.6.0 (linux)")
		out, _, err := commandIn(t, home, home, "doctor", "pi", "--set", "admin.listen="+w.app.admin.Addr().String())
		lacks := strings.Contains(out, "✗ pi: connected, but without memory: this client names no directory")
		if lacks != (dir == "") || lacks && err == nil {
			t.Errorf("a request in %q: got %v and\n%s", dir, err, out)
		}
	}
}

// TestStatusLine checks the line for a client's status line.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 10, 0, 12, 0, time.UTC)
	requests := []graphiti.LoggedRequest{
		{API: "messages", Time: "2026-11-28T09:00:00.000Z", Facts: 9, Fate: "stored"},
		{API: "messages", Time: "2026-11-28T10:00:00.000Z", Facts: 2, Fate: "stored"},
		{API: "messages", Time: "2026-11-28T10:00:05.000Z"}, {Path: "/v1/models", Time: "2026-11-28T10:00:06.000Z"},
	}
	for want, got := range map[string]string{
		"2 recalled, stored 12s ago":                                statusLine(requests, 0, now),
		"no message yet, 1 waiting (graphiti-proxy memory pending)": statusLine(nil, 1, now),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDisconnect_All(t *testing.T) {
	t.Parallel()
	home, store := t.TempDir(), filepath.Join("graphiti-proxy", "connect")
	run := func(args ...string) (says string, err error) {
		out, errOut, err := commandIn(t, home, home, append([]string{"disconnect"}, args...)...)
		return out + errOut, err
	}
	for _, args := range [][]string{nil, {"--all"}} {
		if says, err := run(args...); err != nil || !strings.Contains(says, "no client is connected") {
			t.Errorf("%q without a connected client: got %q, %v; want no error", args, says, err)
		}
	}
	files := make(map[string]string)
	for client, name := range map[string]string{"claude-code": ".claude/settings.json", "pi": ".pi/agent/models.json", "codex": ".codex/config.toml"} {
		file := filepath.Join(home, filepath.FromSlash(name))
		record, err := json.Marshal(map[string]any{"file": file, "existed": true, "before": []byte("{}"), "after": fmt.Sprintf("%x", sha256.Sum256([]byte("written")))})
		must(t, err)
		if client == "codex" {
			record = []byte("damaged")
		}
		files[file] = "written"
		files[filepath.Join(home, store, client+".json")] = string(record)
	}
	for file, text := range files {
		must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "or --all; connected: claude-code, codex, pi") {
		t.Errorf("without a name: got %v, want the connected clients and --all", err)
	}
	says, err := run("--all")
	if err == nil || !strings.Contains(err.Error(), "codex.json") || strings.Contains(err.Error(), "claude") {
		t.Errorf("--all: got %v, want an error about the damaged record only", err)
	}
	for _, client := range []string{"claude-code: ", "pi: "} {
		if !strings.Contains(says, client) {
			t.Errorf("--all: got %q, want it to say %q", says, client)
		}
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "connected: codex") || strings.Contains(err.Error(), "claude-code") {
		t.Errorf("after --all: got %v, want only the client with the damaged record", err)
	}
}
