package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestExportMarkdown checks that the confirmed rules of a project are written between two markers of
// AGENTS.md, that nothing else in the file changes, and that the lines are taken out again.
func TestExportMarkdown(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), project(t)
	file := filepath.Join(dir, "AGENTS.md")
	const own = "# Agents\n\nAlways run make lint before a commit.\nNever push to the release branch."
	write := func(text string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o640))
	}
	run := func(want string, args ...string) string {
		t.Helper()
		out, errOut, err := commandIn(t, home, dir, args...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: got %s %s, %v; want %q", args, out, errOut, err, want)
		}
		return out
	}
	read := func() string {
		t.Helper()
		b, err := os.ReadFile(file)
		must(t, err)
		return string(b)
	}
	write(own)
	run("2 lines of notes", "memory", "import", "--agents", "--yes")
	run("has no lines of the memory", "memory", "export", "--markdown", "--workspace", dir)
	if got := read(); got != own {
		t.Errorf("without a confirmed rule the file became %q", got)
	}
	lines := gjson.Get(run("make lint", "memory", "pending", "--workspace", dir, "--json"), `lines.#(text%"*lint*").id`).Str
	run("", "memory", "pending", "--workspace", dir, "--accept", lines)
	run("has the 1 line of the project's memory\n", "memory", "export", "--markdown", "--workspace", dir)
	const section = "<!-- graphiti-proxy: begin -->\n## Rules\n\n- Always run make lint before a commit.\n\n<!-- graphiti-proxy: end -->\n"
	if got := read(); got != own+"\n\n"+section {
		t.Errorf("got %q, want our section at the end", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got mode %v, %v; want 0640", info.Mode(), err)
	}
	run("has the 1 line of the project's memory\n", "memory", "export", "--markdown", "--workspace", dir)
	run("AGENTS.md  2 ", "memory", "import", "--agents") // ours are no notes
	write(section + "After it.\n")
	run("has no lines of the memory\n", "memory", "export", "--markdown", "--remove", "--workspace", dir)
	if got := read(); got != "After it.\n" {
		t.Errorf("got %q, want only the text after our section", got)
	}
	run(section, "memory", "export", "--markdown=-", "--workspace", dir)

	write("<!-- graphiti-proxy: begin -->\nA line.\n")
	if out, _, err := commandIn(t, home, dir, "memory", "export", "--markdown", "--workspace", dir); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without an end marker: got %s, %v; want an error", out, err)
	}
	must(t, os.Rename(file, filepath.Join(dir, "other.md")))
	must(t, os.Symlink("other.md", file))
	if out, _, err := commandIn(t, home, dir, "memory", "export", "--markdown", "--workspace", dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a link: got %s, %v; want an error", out, err)
	}
	if out, _, err := commandIn(t, home, t.TempDir(), "memory", "export", "--markdown", "--user", "me"); err == nil {
		t.Errorf("without a project: got %s, want an error", out)
	}
}
