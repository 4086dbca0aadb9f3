//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLargerModel checks that with the model of docs/recall.md questions in languages that the model
// in the program does not know find their answers, and that routine requests get no block.
func TestLargerModel(t *testing.T) {
	t.Parallel()
	file, err := filepath.Abs(".cache/model/e5-small-q4.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Skip("the model is not installed")
	}
	w := serve(t, "GRAPHITI_PROXY_MEANING_MODEL="+file)
	blockFor := func(text string) string {
		_, body := w.say(t, goClient, ask(false, user(text)))
		_, rest, _ := strings.Cut(body, "<graphiti_memory>")
		block, _, _ := strings.Cut(rest, "</graphiti_memory>")
		return block
	}
	for n, c := range []struct{ told, asked, want string }{
		{"mqtt брокер слухає на порту 1884", "на якому порту слухає mqtt брокер", "1884"},
		{"Kissani nimi on Pulla.", "mikä on kissani nimi", "Pulla"},
		{"Con mèo của tôi tên là Bánh.", "con mèo của tôi tên là gì", "Bánh"},
	} {
		blockFor(c.told)
		w.until(t, "the turn", func(q queue) bool { return q.Delivered == 2*n+1 })
		if got := blockFor(c.asked); !strings.Contains(got, c.want) {
			t.Errorf("%q after %q: the block is %q, want %q in it", c.asked, c.told, got, c.want)
		}
		w.until(t, "the question", func(q queue) bool { return q.Delivered == 2*n+2 })
	}
	if got := blockFor("run the tests again"); got != "" {
		t.Errorf("a routine request got %q", got)
	}
}
