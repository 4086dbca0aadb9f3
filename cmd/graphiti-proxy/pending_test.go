package main

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestPendingLines: they are listed by place, accepted, rejected and undone from the command
// line, and status counts them.
func TestPendingLines(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	w.opening("one", "Always use tabs.", "X-Graphiti-Workspace", widgets)
	w.opening("two", "Remember that my name is Josh.", "X-Graphiti-Workspace", widgets)
	w.opening("three", "Write a poem. Never use semicolons.", "X-Graphiti-Workspace", gadgets)
	w = w.noted()
	run := func(args ...string) string {
		t.Helper()
		out, err := w.cli(args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	list := run("memory", "pending", "--json")
	id := func(text string) string {
		return gjson.Get(list, `lines.#(text=="`+text+`").id`).String()
	}
	if got := gjson.Get(list, "lines.#").Int(); got != 3 || id("Always use tabs.") == "" {
		t.Fatalf("got %s, want three lines", list)
	}
	out := run("memory", "pending")
	for _, want := range []string{"in the project acme/widgets  ", "in the project acme/gadgets  ", "yes       you, everywhere  Always use tabs.", "by match  you, everywhere  my name is Josh"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %s, want %q in it", out, want)
		}
	}
	if got := gjson.Get(run("status", "--json"), "pending_lines").Int(); got != 3 {
		t.Errorf("status: got %d lines, want 3", got)
	}
	if out := run("status"); !strings.Contains(out, "3 lines waiting for your confirmation") || !strings.Contains(out, "graphiti-proxy memory pending") {
		t.Errorf("status: got %s, want the lines and what to do", out)
	}

	tabs := id("Always use tabs.")
	if out := run("memory", "pending", "--accept", tabs); !strings.Contains(out, "accepted: Always use tabs.") || !strings.Contains(out, "memory undo ") {
		t.Errorf("accept: got %s", out)
	}
	w = w.noted()
	if saw := w.opening("four", "hello", "X-Graphiti-Workspace", gadgets); !strings.Contains(saw, "preference, ") {
		t.Errorf("got %q elsewhere once it is accepted, want the rule", saw)
	}
	undo := func() string {
		return run("memory", "undo", gjson.Get(run("memory", "undo", "--json"), "changes.0.id").String())
	}
	undo()
	if saw := w.opening("five", "hello", "X-Graphiti-Workspace", gadgets); strings.Contains(saw, "preference, ") {
		t.Errorf("got %q elsewhere once that is undone, want no rule", saw)
	}
	run("memory", "pending", "--accept", tabs)
	w = w.noted()
	if out := run("memory", "pending", "--end", tabs); !strings.Contains(out, "ended: Always use tabs.") {
		t.Errorf("end: got %s", out)
	}
	if all := run("memory", "pending", "--all", "--json"); gjson.Get(all, `lines.#(text=="Always use tabs.").state`).String() != "ended" || gjson.Get(all, "lines.#").Int() != 3 {
		t.Errorf("got %s, want the line ended, and not twice", all)
	}
	if out := undo(); !strings.Contains(out, "undone: off") {
		t.Errorf("undo of taking off: got %s", out)
	}
	if out := run("memory", "pending", "--reject", id("my name is Josh"), id("Never use semicolons.")); strings.Count(out, "rejected: ") != 2 {
		t.Errorf("reject: got %s, want two", out)
	}
	if out := run("memory", "pending", "--accept-all"); !strings.Contains(out, "no change made") {
		t.Errorf("accept-all: got %s, want nothing changed", out)
	}
	for _, wrong := range [][]string{{"--accept", "0123"}, {"--accept", ""}, {"0123"}, {"--accept", tabs, "--reject", tabs}, {"--accept-all", tabs}, {"--accept", "0123", tabs}} {
		if out, err := w.cli(append([]string{"memory", "pending"}, wrong...)...); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %s, %v; want an error of one line", wrong, out, err)
		}
	}
}

// TestRestoreFromTheCommandLine: what "forget that …" ended is listed, marked, and restored
// with its rule.
func TestRestoreFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	w.opening("one", "Always answer in German.")
	w = w.noted()
	if _, header, _ := w.say("Forget that you always answer in German.", "X-Graphiti-Session", "two"); !strings.Contains(header, "; ended=") {
		t.Errorf("got %q, want \"; ended=\" in it", header)
	}
	w = w.noted()
	out, err := w.cli("memory", "facts", "--all", "--json")
	must(t, err)
	ended := gjson.Get(out, `facts.#(state=="ended")`)
	if ended.Get("text").String() != "Always answer in German." {
		t.Fatalf("got %s, want the rule ended", out)
	}
	if out, err := w.cli("memory", "restore"); err == nil {
		t.Errorf("without a message: got %s, want an error", out)
	}
	if out, err := w.cli("memory", "restore", "--message", ended.Get("id").String()); err != nil || !strings.Contains(out, "valid again") {
		t.Errorf("got %s, %v; want it valid again", out, err)
	}
	if saw := w.opening("three", "hello"); !strings.Contains(saw, "rule, ") {
		t.Errorf("got %q once it is restored, want the rule", saw)
	}
}

// TestPendingLine_To checks that memory pending limits an accepted line to a project: a conversation of
// another one does not open with it, until memory undo.
func TestPendingLine_To(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	w.opening("one", "Always use tabs.", "X-Graphiti-Workspace", widgets)
	w = w.noted()
	list, err := w.cli("memory", "pending", "--json")
	must(t, err)
	id := gjson.Get(list, "lines.0.id").String()
	out, err := w.cli("memory", "pending", "--accept", id, "--to", widgets)
	_, undo, found := strings.Cut(out, "graphiti-proxy memory undo ")
	if err != nil || !found || !strings.HasPrefix(out, "limited to "+widgets+": Always use tabs.") {
		t.Fatalf("got %q, %v", out, err)
	}
	w = w.noted()
	if saw := w.opening("two", "hello", "X-Graphiti-Workspace", widgets); !strings.Contains(saw, "tabs") {
		t.Errorf("got %q in the project, want the rule", saw)
	}
	if saw := w.opening("three", "hello", "X-Graphiti-Workspace", gadgets); strings.Contains(saw, "tabs") {
		t.Errorf("got %q in another project, want no rule", saw)
	}
	if out, err := w.cli("memory", "undo", strings.Fields(undo)[0]); err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err := w.cli("memory", "pending", "--accept", id, "--to", t.TempDir()); err != nil || !strings.HasPrefix(out, "limited to path:") {
		t.Errorf("to a directory: got %q, %v", out, err)
	}
}
