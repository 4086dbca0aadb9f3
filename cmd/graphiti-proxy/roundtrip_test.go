package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportIsImported: what one memory exports another one imports, whoever
// owns it, so that a second export is the first, byte for byte; and the proxy
// that has it recalls it.
func TestExportIsImported(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say("My cat is called Miso.", "X-Graphiti-Session", "s1")
	w.say("We use Postgres (not MySQL): it has jsonb.", "X-Graphiti-Session", "s2", "X-Graphiti-Workspace", "github_repo:github.com/acme/widgets")
	w.delivered(2)
	if out, err := w.cli("memory", "promote", "--kind", "preference", "tabs, not spaces"); err != nil || out != "stored as preference for you\n" {
		t.Errorf("got %q, %v, want no error, \"stored as preference for you\\n\"", out, err)
	}
	if out, err := w.cli("memory", "promote", "--kind", "decision", "--workspace", "https://github.com/acme/widgets", "Redis"); err != nil || out != "stored as decision for project acme/widgets\n" {
		t.Errorf("got %q, %v, want no error, \"stored as decision for project acme/widgets\\n\"", out, err)
	}
	w.delivered(4)
	w.shortTerm(w.group(), "Miso")
	first, err := w.cli("memory", "export")
	if err != nil || strings.Count(first, "\n") < 7 {
		t.Fatalf("got %v\n%s, want no error, at least 7 lines", err, first)
	}
	w.stop()

	dir := t.TempDir()
	file := filepath.Join(dir, "memory.jsonl")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(first, "\n")
	for again, want := range []string{" messages imported, 0 already present\n", "0 messages imported, "} {
		if out, err := command(t, dir, "memory", "import", file); err != nil || !strings.Contains(out, want) {
			t.Errorf("time %d: %q, %v, of %d lines", again, out, err, lines)
		}
		if second, err := command(t, dir, "memory", "export", "--user", "me"); err != nil || second != first {
			t.Errorf("time %d: %v\n%s\nis not\n%s", again, err, second, first)
		}
	}
	if out, err := command(t, dir, "memory", "export", "--session", "s1"); err != nil || strings.Count(out, "Miso") != 2 || strings.Contains(out, "Postgres") {
		t.Errorf("%v: got %s, want no error, Miso twice, no Postgres", err, out)
	}
	next := start(t, filepath.Join(dir, "graphiti-proxy"), nil)
	if answer, _, _ := next.say("What is my cat called?"); !strings.Contains(answer, "Miso") {
		t.Errorf("it is not recalled: %s", answer)
	}
	next.stop()
	if out, err := command(t, dir, "memory", "forget", "--yes", "--session", "s1"); err != nil {
		t.Errorf("got %s %v, want no error", out, err)
	}
	if out, err := command(t, dir, "memory", "export", "--session", "s1"); err != nil || out != "" {
		t.Errorf("got %s %v, want no error, \"\"", out, err)
	}
}

// TestForgettingNothing fails, and says so.
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

// TestWorkspaceByDirectory: a directory means the project that a client in it
// has; what is none is refused.
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
