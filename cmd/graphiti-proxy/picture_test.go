package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
)

// changing lists the parts of the demo's output that vary between runs, and their
// replacements.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`ms=\d+`), "ms=1"},
	{regexp.MustCompile(`user, \d{4}-\d\d-\d\d:`), "user, 2026-01-01:"},
}

// picture draws the output of a command as SVG. Its lines appear one after the other, or
// all at once for readers who prefer reduced motion.
func picture(command, said string) []byte {
	const width, step, left = 800, 17, 18
	var b bytes.Buffer
	lines := append([]string{"$ " + command}, strings.Split(strings.TrimRight(said, "\n"), "\n")...)
	height := step*len(lines) + 56
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="What %s prints">
<style>
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d7dae0;white-space:pre;animation:appear 1ms both}
.prompt{fill:#9fe29f}.head{fill:#ffd479;font-weight:bold}.memory{fill:#8fd3ff}
@keyframes appear{from{opacity:0}}
@media (prefers-reduced-motion){text{animation:none}}
</style>
<rect width="%d" height="%d" rx="8" fill="#1d2027"/>
<circle cx="20" cy="18" r="5" fill="#f2655c"/><circle cx="38" cy="18" r="5" fill="#f5bf4f"/><circle cx="56" cy="18" r="5" fill="#61c554"/>
`, width, height, command, width, height)
	memory, after := false, 0.2
	for i, line := range lines {
		memory = memory || strings.Contains(line, "<graphiti_memory>")
		class := ""
		switch {
		case i == 0:
			class = ` class="prompt"`
		case memory || strings.Contains(line, "X-Graphiti-Memory"):
			class = ` class="memory"`
		case line != "" && line[0] != ' ':
			class = ` class="head"`
			after += 0.8
		}
		memory = memory && !strings.Contains(line, "</graphiti_memory>")
		if after += 0.15; line == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d"%s style="animation-delay:%.2fs" xml:space="preserve">`, left, 52+step*i, class, after)
		_ = xml.EscapeText(&b, []byte(line)) // a buffer never fails
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// TestPictureOfTheDemoIsCurrent checks that docs/demo.svg shows the current output of the
// demo. UPDATE=1 go test ./cmd/graphiti-proxy -run Picture draws it again.
func TestPictureOfTheDemoIsCurrent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := cli.RunDemo(&out, "graphiti-proxy", startDemo); err != nil {
		t.Fatal(err)
	}
	said := out.String()
	for _, c := range changing {
		if !c.what.MatchString(said) {
			t.Errorf("%s is not in\n%s", c.what, said)
		}
		said = c.what.ReplaceAllString(said, c.by)
	}
	const path = "../../docs/demo.svg"
	want := picture("graphiti-proxy demo", said)
	if err := xml.Unmarshal(want, new(any)); err != nil {
		t.Errorf("the picture is not XML: %v", err)
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // readable by all users
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s shows something else than the demo says; draw it again with UPDATE=1", path)
	}
}
