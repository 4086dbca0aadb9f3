package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExportIsImported checks that an export can be imported into another data directory,
// that each import prints its counts, and that an export of the copy is the same, byte for
// byte.
func TestExportIsImported(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{"--kind", "preference", "tabs, not spaces"}, "stored as preference for you\n"},
		{[]string{"--kind", "decision", "--workspace", "https://github.com/acme/widgets", "Redis"}, "stored as decision for the project acme/widgets\n"},
	} {
		if out, err := command(t, home, append([]string{"memory", "promote"}, tc.args...)...); err != nil || out != tc.says {
			t.Errorf("got %q, %v, want no error, %q", out, err, tc.says)
		}
	}
	first, err := command(t, home, "memory", "export")
	if err != nil || strings.Count(first, "\n") != 4 {
		t.Fatalf("got %v\n%s, want no error, four lines", err, first)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "memory.jsonl")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(filepath.Join(home, "graphiti-proxy", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "graphiti-proxy"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "graphiti-proxy", "secret"), secret, 0o600); err != nil { // else the rules wait
		t.Fatal(err)
	}
	for again, want := range []string{"2 messages imported, 0 already present\n2 lines of rules and preferences imported\n", "0 messages imported, "} {
		if out, err := command(t, dir, "memory", "import", file); err != nil || !strings.Contains(out, want) {
			t.Errorf("time %d: got %q, %v, want no error, %q in it", again, out, err, want)
		}
		if second, err := command(t, dir, "memory", "export", "--user", "me"); err != nil || unsigned(second) != unsigned(first) {
			t.Errorf("time %d: %v\n%s\nis not\n%s", again, err, second, first)
		}
	}
}

// unsigned returns an export without the signatures of its installation, and the marks of its imports.
func unsigned(export string) string {
	return regexp.MustCompile(`,"signed":"[0-9a-f]{64}"|,\\"import\\":\\"[0-9a-f]{12}\\"`).ReplaceAllString(export, "")
}

// TestForgettingNothing checks that a forget fails if its selector has no memory, and that
// the error names the selector.
func TestForgettingNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := command(t, dir, "memory", "forget", "--yes"); err == nil || err.Error() != "no memory yet for you; nothing to delete" {
		t.Error(err)
	}
	if _, err := command(t, dir, "memory", "promote", "--kind", "decision", "Postgres"); err != nil {
		t.Fatal(err)
	}
	for whose, args := range map[string][]string{
		"josh": {"--user", "josh"}, "the session typo": {"--session", "typo"}, "the group typo": {"--group", "typo"},
		"the project acme/widgets": {"--workspace", "https://github.com/acme/widgets"},
	} {
		if out, err := command(t, dir, append([]string{"memory", "forget", "--yes"}, args...)...); err == nil || err.Error() != "no memory yet for "+whose+"; nothing to delete" {
			t.Errorf("%v: got %q %v, want the error that there is no memory yet for %s", args, out, err, whose)
		}
	}
	if _, err := command(t, dir, "memory", "forget", "--yes"); err != nil {
		t.Error(err)
	}
	if out, err := command(t, dir, "memory", "export"); err != nil || out != "" {
		t.Errorf("got %s %v, want no error, \"\"", out, err)
	}
	for line, want := range map[string]bool{"y\n": true, "Yes\n": true, "YES": true, "": false, "no\n": false, "yesterday\n": false} {
		if isYes(line) != want {
			t.Errorf("isYes(%q) is %v, want %v", line, !want, want)
		}
	}
}

// TestWorkspaceByDirectory checks that a directory selects the project of a client that
// works in it, and that any other path is refused.
func TestWorkspaceByDirectory(t *testing.T) {
	t.Parallel()
	w, one, _ := projects(t, nil)
	w.see(qwen(one, user("We use Postgres.")))
	w.delivered(2)
	for _, dir := range []string{one, one + "/", one + "/cmd/.."} {
		if out, err := w.cli("memory", "show", "--workspace", dir); err != nil || !strings.Contains(out, "Postgres") {
			t.Errorf("%s: got %s %v, want no error, \"Postgres\" in it", dir, out, err)
		}
	}
	if err := os.WriteFile(filepath.Join(one, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(one, "nowhere"), "./nowhere", "../nowhere/there", filepath.Join(one, "file")} {
		if out, err := w.cli("memory", "promote", "--kind", "decision", "--workspace", dir, "x"); err == nil || !strings.Contains(err.Error(), "--workspace: ") {
			t.Errorf("%s: got %s %v, want an error, \"--workspace: \" in it", dir, out, err)
		}
	}
}
