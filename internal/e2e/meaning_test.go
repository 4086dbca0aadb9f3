//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// TestLanguages checks that questions in languages of the second model only find their answers, and
// that routine requests get no block.
func TestLanguages(t *testing.T) {
	t.Parallel()
	w := serve(t)
	blockFor := func(text string) string {
		w.model.Forget()
		w.tell(t, text)
		return lastBlock(t, w.model)
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
