package inject

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReasonsAreDocumented: the table in docs/memory.md has each reason with its
// explanation, and no others.
func TestReasonsAreDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "memory.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "| reason | meaning and remedy |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	table = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(strings.ReplaceAll(table, "`", ""), "$1")
	documented := make(map[Reason]string)
	for line := range strings.Lines(table) {
		word, text, _ := strings.Cut(strings.Trim(line, "| \n"), " | ")
		documented[Reason(word)] = strings.ToLower(text)
	}
	for _, e := range Explanations {
		if text := documented[e.Reason]; e.Reason != ReasonNone && (!strings.Contains(text, strings.ToLower(e.Says)) || !strings.Contains(text, strings.ToLower(e.Remedy))) {
			t.Errorf("docs/memory.md explains %s as %q, want %q and %q", e.Reason, text, e.Says, e.Remedy)
		}
		if e.Says == "" {
			t.Errorf("the reason %q has no explanation", e.Reason)
		}
		delete(documented, e.Reason)
	}
	for r := range documented {
		t.Errorf("docs/memory.md has %s, which is no reason", r)
	}
}
