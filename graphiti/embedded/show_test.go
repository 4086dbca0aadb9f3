package embedded

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTextsThatStayAsTheyAre checks that spaced accepts only texts that a normalization of
// spaces would not change.
func TestTextsThatStayAsTheyAre(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts, same := []string{"a", "word", " ", "\n", "\t", "é", "\u00a0", "\x00"}, 0
	for range 5000 {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(parts[min(r.IntN(len(parts)), r.IntN(len(parts)))])
		}
		s := b.String()
		if !spaced(s) {
			continue
		}
		same++
		if s != strings.Join(strings.Fields(s), " ") {
			t.Errorf("%q is not shown as it is", s)
		}
	}
	if same < 500 {
		t.Errorf("%d texts stayed", same)
	}
}
