package main

import (
	"path/filepath"
	"strings"
	"testing"
)

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
	writeFile(t, filepath.Join(one, "file"), "")
	for _, dir := range []string{filepath.Join(one, "nowhere"), "./nowhere", "../nowhere/there", filepath.Join(one, "file")} {
		if out, err := w.cli("memory", "promote", "--kind", "decision", "--workspace", dir, "x"); err == nil || !strings.Contains(err.Error(), "--workspace: ") {
			t.Errorf("%s: got %s %v, want an error, \"--workspace: \" in it", dir, out, err)
		}
	}
}
