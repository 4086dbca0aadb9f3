package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConnectCommands(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	file := filepath.Join(home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	const own = "{\n  \"model\": \"opus\"\n}\n"
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args        []string
		says, fails string
	}{
		{[]string{"connect", "--print", "claude-code"}, "env.ANTHROPIC_BASE_URL: http://127.0.0.1:8787 (before: not set)", ""},
		{[]string{"connect", "--print", "copilot"}, "export COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:8787/v1", ""},
		{[]string{"connect", "claude-code"}, "", "no setting was changed, because clients hang"},
		{[]string{"connect", "claude"}, "", `client "claude" is unknown; write one of claude-code, codex`},
		{[]string{"disconnect", "claude-code"}, "", "claude-code is not connected"},
		{[]string{"disconnect", "copilot"}, "", "unset COPILOT_PROVIDER_BASE_URL"},
		{[]string{"disconnect"}, "", "needs the name of a client"},
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
