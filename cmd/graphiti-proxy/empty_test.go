package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmptySelectorsAreRefused: a variable that is not set must not have the
// owner's whole memory deleted.
func TestEmptySelectorsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "said.jsonl")
	if err := os.WriteFile(name, []byte("{\"role\":\"user\",\"content\":\"I breed alpacas.\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, dir, "memory", "import", name); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--user", "--agent", "--workspace", "--session", "--group", "--credential", "--card"} {
		for _, value := range []string{"", " "} {
			if _, err := command(t, dir, "memory", "forget", flag, value, "--yes"); err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s %q: %v", flag, value, err)
			}
		}
	}
	if out, err := command(t, dir, "memory", "show"); err != nil || !strings.Contains(out, "alpacas") {
		t.Errorf("%q, %v", out, err)
	}
}
