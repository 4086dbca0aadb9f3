package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportOfLongLines: calls are bounded by their bytes, too, and what cannot
// be sent at all is named.
func TestImportOfLongLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "long.jsonl")
	var b strings.Builder
	for i := range 180 { // more than a call may have
		fmt.Fprintf(&b, "{\"role\":\"user\",\"content\":\"%d %s\"}\n", i, strings.Repeat("x", 96<<10))
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, dir, "memory", "import", name); err != nil || out != "180 messages imported, 0 already present\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := os.WriteFile(name, []byte("{\"role\":\"user\",\"content\":\""+strings.Repeat("x", 5<<20)+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, dir, "memory", "import", name); err == nil || !strings.Contains(err.Error(), "line 1 is larger") {
		t.Error(err)
	}
}

// TestImportOfAnExportAfterBlankLines: what an editor puts before it does not
// make lines of it.
func TestImportOfAnExportAfterBlankLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "conversations.json")
	text := "\ufeff\n\n [{\"uuid\":\"u\",\"chat_messages\":[{\"uuid\":\"m\",\"sender\":\"human\",\"text\":\"I breed alpacas.\"}]},{\"uuid\":\"v\",\"chat_messages\":[]}]"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, dir, "memory", "import", name); err != nil || out != "1 message imported, 0 already present\n" {
		t.Errorf("%q, %v", out, err)
	}
}
