package embedded

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// TestWordsAreCompared checks on random texts that repeats agrees with a plain comparison,
// and that mayRepeat misses no repetition.
func TestWordsAreCompared(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	phrases := []string{"", "Zoë", "cat", "dog", "fish", "bird", "horse", "cow", "sheep", "goat"}
	text := func(most, of int) string {
		var b strings.Builder
		for range r.IntN(most) {
			b.WriteString(phrases[r.IntN(min(of, len(phrases)))])
			b.WriteString([]string{" ", ", ", ".\n", "! ", "-"}[r.IntN(5)])
		}
		return b.String()
	}
	repetitions := 0
	for range 20_000 {
		content := text(30, 24)
		asked := words.Of(text(60, 24), maxAsked)
		said, known := words.Of(content, sketched), 0
		for _, w := range said {
			if slices.Contains(asked, w) {
				known++
			}
		}
		want := len(said) > 2 && float64(len(said)-known) < newPart*float64(len(said))
		if got := repeats(content, asked); got != want {
			t.Fatalf("%q repeats %q: %v, want %v", content, asked, got, want)
		}
		if want {
			repetitions++
		}
		if n := noted(content); want && !mayRepeat(&n, sketchOf(asked)) {
			t.Fatalf("%q repeats %q, and would not be read", content, asked)
		}
	}
	if repetitions < 1000 {
		t.Errorf("%d repetitions were compared", repetitions)
	}
}

// noted returns the note of a message as the index stores it.
func noted(content string) (n messageNote) {
	groups := newIndexes(func(_ context.Context, _ string, _ int64, each func(indexedMessage)) (int64, error) {
		each(indexedAs(1, graphiti.RoleUser, "", content, said))
		return 1, nil
	}, 1<<20)
	defer groups.Close()
	if g, err := groups.Get(context.Background(), "g"); err == nil {
		n, _ = g.note(1)
	}
	return n
}
