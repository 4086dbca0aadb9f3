//go:build e2e

package e2e

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const recordingFile = "../../docs/images/recording.svg"

// TestRecording checks the README's recording: Claude Code stores a fact, and Codex recalls it. The
// model is a stand-in. UPDATE=1 writes the file.
func TestRecording(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.model.SetAnswer(coderModel)
	dir := t.TempDir()
	repo := clone(t, filepath.Join(dir, "repo"))
	var shown []string
	told := 0
	for _, step := range []struct {
		coder         coder
		command, said string
	}{
		{theCoders[2], "claude -p", "The staging database is called Miso. Remember it."},
		{theCoders[0], "codex exec", "What is the staging database called?"},
	} {
		out := step.coder.run(t, w.url, filepath.Join(dir, step.coder.name), repo, step.said, how{})
		told++
		w.until(t, "the turn of "+step.coder.name, func(q queue) bool { return q.Delivered == told })
		lines := strings.Split(strings.TrimSpace(out), "\n")
		shown = append(shown, "$ "+step.command+" '"+step.said+"'", lines[len(lines)-1])
	}
	if want := "It is called Miso."; shown[3] != want {
		t.Errorf("Codex says %q, want %q", shown[3], want)
	}
	svg := recording(shown)
	if os.Getenv("UPDATE") != "" {
		must(t, os.WriteFile(recordingFile, []byte(svg), 0o644))
	}
	if b, err := os.ReadFile(recordingFile); err != nil || string(b) != svg {
		t.Errorf("%s shows something else (%v); UPDATE=1 writes it:\n%s", recordingFile, err, strings.Join(shown, "\n"))
	}
}

// recording returns a terminal in which commands and their answers appear one after the other, as an
// SVG that repeats. Commands begin with "$ ".
func recording(lines []string) string {
	const (
		left, top, high = 16, 34, 26 // pixels
		perSecond       = 30         // characters that people read
		pause           = 1.2        // seconds before and after an answer
	)
	starts, end := make([]float64, len(lines)), pause
	for i, line := range lines {
		if starts[i] = end; strings.HasPrefix(line, "$ ") {
			end += float64(len(line)) / perSecond
		}
		end += pause
	}
	end += 3 * pause
	var style, text strings.Builder
	for i, line := range lines {
		class := "answer"
		if strings.HasPrefix(line, "$ ") {
			class = "command"
		}
		fmt.Fprintf(&style, "@keyframes l%d{0%%,%.1f%%{opacity:0}%.1f%%,100%%{opacity:1}}.l%d{animation:l%[1]d %.1[5]fs infinite}\n", i, 100*starts[i]/end, 100*starts[i]/end+.1, i, end)
		fmt.Fprintf(&text, `<text class="%s l%d" x="%d" y="%d">%s</text>`+"\n", class, i, left, top+high*i+high/2*(i/2), html.EscapeString(line))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 %d" role="img" aria-label="Claude Code stores a fact, and Codex recalls it">
<style>
rect{fill:#14181f}text{font:15px ui-monospace,Menlo,Consolas,monospace}.command{fill:#e6e9ee}.answer{fill:#8fd19e}
%s@media (prefers-reduced-motion:reduce){text{animation:none!important}}
</style>
<rect width="100%%" height="100%%" rx="8"/>
%s</svg>
`, top+high*len(lines)+high/2, style.String(), text.String())
}
