package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

var (
	referenceTotal = regexp.MustCompile(`(?m)^\| (\d)\. [^|]*\| (\d+) \|$`)
	referenceRow   = regexp.MustCompile(`(?m)^- ((?:\d\.\d+(?:, )?)+) (.+)$`)
	inBackticks    = regexp.MustCompile("`([^`]+)`")

	// elsewhere are names that other programs, or pages in the same cell, define.
	elsewhere = regexp.MustCompile(`^(?:(?:GET|POST|DELETE) /\S+|/get-memory|uuid|get_status|localhost|key:|X-Graphiti-\S+(?: off)?|GRAPHITI_URL|graphiti_<scope>_<hash>|<graphiti_memory>|error|title)$`)
)

// TestReferences: docs/references.md has each feature of the five documents once, and the
// files, settings, metrics and commands that it names exist.
func TestReferences(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page, metrics := read("docs/references.md"), read("docs/metrics.md")
	settings := make(map[string]bool)
	for _, k := range new(config.Config).Settings() {
		settings[k.Key] = true
	}
	rows := make(map[string]bool)
	for _, m := range referenceRow.FindAllStringSubmatch(page, -1) {
		for number := range strings.SplitSeq(m[1], ", ") {
			if rows[number] {
				t.Errorf("%s occurs twice", number)
			}
			rows[number] = true
		}
		if _, place, ok := strings.Cut(m[2], ": "); !ok || place == "" {
			t.Errorf("%s: got %q, want a place or a reason", m[1], m[2])
		}
		for _, name := range inBackticks.FindAllStringSubmatch(m[2], -1) {
			switch name := name[1]; {
			case settings[name]:
			case strings.HasPrefix(name, "graphiti_proxy_") && strings.Contains(metrics, "| `"+name+"` |"):
			case strings.HasPrefix(name, "graphiti-proxy "):
				if c, _, err := newRootCommand().Find(strings.Fields(name)[1:]); err != nil || !c.HasParent() {
					t.Errorf("%s: %s is no command: %v", m[1], name, err)
				}
			case elsewhere.MatchString(name):
			default:
				if _, err := os.Stat(filepath.Join(root, name)); err != nil || !strings.Contains(name, "/") {
					t.Errorf("%s: %s is neither a setting, nor a metric, a command or a file", m[1], name)
				}
			}
		}
	}
	total := 0
	for _, m := range referenceTotal.FindAllStringSubmatch(page, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if number := m[1] + "." + strconv.Itoa(i+1); !rows[number] {
				t.Errorf("%s is missing", number)
			}
		}
		total += n
	}
	if total != len(rows) || total != 264 {
		t.Errorf("got %d rows, and %d in the overview, want 264", len(rows), total)
	}
}
