package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGroupsThatCannotBe: the id of a group that Graphiti would die of is
// refused wherever one is given, and what is kept in a group by its id says in
// which scope.
func TestGroupsThatCannotBe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := filepath.Join(dir, "lines.jsonl")
	if err := os.WriteFile(lines, []byte(`{"role":"user","content":"x","group":"a/b"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const bad = "bad group! ünï/x"
	for _, args := range [][]string{
		{"memory", "promote", "--kind", "decision", "--group", bad, "x"},
		{"memory", "show", "--group", bad},
		{"memory", "search", "--group", bad, "x"},
		{"memory", "forget", "--yes", "--group", bad},
		{"memory", "export", "--group", bad},
		{"memory", "import", "--group", bad, lines},
		{"memory", "import", lines},
	} {
		if _, err := command(t, dir, args...); err == nil || !strings.Contains(err.Error(), "is not the id of a group") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := command(t, dir, "memory", "promote", "--kind", "decision", "--group", "team-notes", "x"); err == nil || !strings.Contains(err.Error(), "beside the group") {
		t.Errorf("a group without a scope: %v", err)
	}
	for _, tc := range []struct{ group, scope string }{{"team-notes", "workspace"}, {"graphiti_session_00", ""}} {
		if _, err := command(t, dir, "memory", "promote", "--kind", "decision", "--group", tc.group, "--scope", tc.scope, "Postgres"); err != nil {
			t.Fatal(err)
		}
		want := tc.scope
		if want == "" {
			want = "session"
		}
		if out, err := command(t, dir, "memory", "export", "--group", tc.group); err != nil || !strings.Contains(out, `\nscope: `+want+`\n`) {
			t.Errorf("%s: %s %v", tc.group, out, err)
		}
	}
}

// TestPromoteIsWhole: a text that would be cut is refused, and the limit named.
func TestPromoteIsWhole(t *testing.T) {
	t.Parallel()
	if _, err := command(t, t.TempDir(), "memory", "promote", "--kind", "procedure", strings.Repeat("é", 8001)); err == nil || !strings.Contains(err.Error(), "8000") {
		t.Errorf("%v", err)
	}
}
