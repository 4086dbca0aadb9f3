package embedded

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

func TestNotesAreKept(t *testing.T) {
	g := newGroup()
	g.add(1, []indexedMessage{
		{Place: 3, Speaker: "Ann", Text: "The cat sleeps", Note: messageNote{Length: 14, Day: 20000, Flags: 5}},
		{Place: 40, Speaker: "Bob", Text: "The dog barks", Note: messageNote{Length: 13, Day: -1}},
		{Place: 41, Text: ""},
	})
	n, ok := g.note(3)
	if !ok || n.Length != 14 || n.Day != 20000 || n.Flags != 5 || !g.spoke("Ann", &n) || g.spoke("Bob", &n) || g.spoke("Eve", &n) || g.spoke("", &n) {
		t.Errorf("got note %+v, %v; want 14 bytes of day 20000, flags 5, by Ann", n, ok)
	}
	if n, ok := g.note(41); !ok || g.spoke("", &n) {
		t.Errorf("got note %+v, %v; want one without a speaker", n, ok)
	}
	for _, p := range []int64{0, 2, 4, 39, 42, 1 << 31} {
		if n, ok := g.note(p); ok {
			t.Errorf("nothing stands at %d, and there is %+v", p, n)
		}
	}
	g.halve()
	if _, ok := g.note(3); ok {
		t.Error("the older half is there still")
	}
	if n, ok := g.note(40); !ok || n.Length != 13 {
		t.Errorf("got note %+v, %v; want one of 13 bytes", n, ok)
	}
}

// TestSketchesKnowOthers: never more words than are missing, and mostly not many
// fewer.
func TestSketchesKnowOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(most int) []string {
		var words []string
		for range r.IntN(most) {
			words = append(words, "word"+string(rune('a'+r.IntN(26)))+string(rune('a'+r.IntN(26))))
		}
		return words
	}
	said, known := 0, 0
	for range 5000 {
		text, asked := strings.Join(some(40), " "), some(30)
		g := newGroup()
		g.add(1, []indexedMessage{{Place: 1, Text: text}})
		n, _ := g.note(1)
		first, want := words.Of(text, sketched), 0
		for _, w := range first {
			if !slices.Contains(asked, w) {
				want++
			}
		}
		others, of := n.otherWords(sketchOf(asked))
		if others > want || of != len(first) {
			t.Fatalf("%q has %d words of %d that %q has not, want at most %d of %d", text, others, of, asked, want, len(first))
		}
		said, known = said+want, known+others
	}
	if known < said/2 {
		t.Errorf("of %d words %d were known", said, known)
	}
}
