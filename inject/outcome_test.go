package inject

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReasonsAreDocumented: the table of reasons has those that there are, and no
// others.
func TestReasonsAreDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "memory.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "| reason | meaning and remedy |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []Reason
	for line := range strings.Lines(table) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, name := range regexp.MustCompile("`[^`]+`").FindAllString(names, -1) {
			documented = append(documented, Reason(strings.Trim(name, "`")))
		}
	}
	for _, r := range Reasons {
		if r != ReasonNone && !slices.Contains(documented, r) {
			t.Errorf("docs/memory.md does not have %s", r)
		}
	}
	for _, r := range documented {
		if !slices.Contains(Reasons, r) {
			t.Errorf("docs/memory.md has %s, which is no reason", r)
		}
	}
}
