package embedded

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// TestFind checks that an index finds the same places as a scan of all messages, at any
// distance between places, and that a compacted or halved index does, too.
func TestFind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g, said := newGroup(), make(map[string][]int64)
	place := int64(0)
	for i := range 3000 {
		if i%1000 == 999 {
			g.compact()
		}
		place += 1 + r.Int64N(1<<r.IntN(20))
		var text strings.Builder
		for range r.IntN(12) {
			w := fmt.Sprintf("w%dx", r.IntN(1+r.IntN(300)))
			fmt.Fprintf(&text, "%s %sS, ", w, w) // two forms of one word
			if l := said[w]; len(l) == 0 || l[len(l)-1] != place {
				said[w] = append(l, place)
			}
		}
		fmt.Fprintf(&text, "u%dx", i) // no message is a copy
		g.add(7, []indexedMessage{{Place: place, Text: text.String()}})
	}
	check := func(what string, oldest int64) {
		t.Helper()
		for w, all := range said {
			all = slices.DeleteFunc(slices.Clone(all), func(p int64) bool { return p < oldest })
			for _, most := range []int{0, 1, 10, len(all), 1 << 20} {
				places, n := g.find(words.Term(w), most)
				want := all[len(all)-min(most, len(all)):]
				if n != len(all) || !slices.Equal(places, want) {
					t.Fatalf("%s: %s is in %d, %v; want %d, %v", what, w, n, places, len(all), want)
				}
			}
		}
	}
	check("all", 0)
	begins, ends := slices.Sorted(maps.Keys(g.lists)), slices.Sorted(maps.Keys(backward(g.lists)))
	g.compact()
	check("the compacted", 0)
	if !slices.Equal(g.begins.Keys(), begins) || !slices.Equal(g.ends.Keys(), ends) {
		t.Errorf("the sorted words are %q and %q, want those of the lists", g.begins.Keys(), g.ends.Keys())
	}
	if n := counted(g); g.bytes != n {
		t.Errorf("compacted: %d bytes are known of, %d held", g.bytes, n)
	}
	g.halve()
	if g.oldest == 0 || g.oldest >= place {
		t.Fatalf("the oldest place is %d of %d", g.oldest, place)
	}
	check("the newer half", g.oldest)
	if n := counted(g); g.bytes != n {
		t.Errorf("%d bytes are known of, %d held", g.bytes, n)
	}
	if places, n := g.find("never", 5); n != 0 || places != nil {
		t.Errorf("%v, %d of a word that nobody said", places, n)
	}
}

// backward returns the lists with their words spelled backward.
func backward(lists map[string]*list) map[string]*list {
	out := make(map[string]*list, len(lists))
	for w, l := range lists {
		out[backwards(w)] = l
	}
	return out
}

func TestSpeakers(t *testing.T) {
	g := newGroup()
	g.add(1, []indexedMessage{{Place: 1, Speaker: "Ann Lee", Text: "hello"}, {Place: 2, Speaker: "Bob", Text: "hello"}, {Place: 3, Speaker: "Ann Lee", Text: "yes"}, {Place: 4, Speaker: "", Text: "so"}, {Place: 5, Speaker: "Ann Poe", Text: "no"}})
	for question, want := range map[string][2][]string{
		"What did Bob say?":       {{"Bob"}, {"bob"}},
		"What did Ann say":        {{"Ann Lee", "Ann Poe"}, {"ann"}},
		"Lee? ann!":               {{"Ann Lee", "Ann Poe"}, {"lee", "ann"}},
		"What did somebody call?": {nil, nil},
	} {
		named, known := g.speakersNamed(words.Of(question, 10))
		if diff := cmp.Diff(want, [2][]string{named, known}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", question, diff)
		}
	}
}

// zipf returns a function that makes texts with word frequencies like those of a language.
func zipf() func(words int) string {
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 4, 60000)
	return func(words int) string {
		var s strings.Builder
		for range words {
			fmt.Fprintf(&s, "word%d ", z.Uint64())
		}
		return s.String()
	}
}

func messages(n int) []indexedMessage {
	text, all := zipf(), make([]indexedMessage, n)
	for i := range all {
		all[i] = indexedMessage{Place: int64(i + 1), Speaker: "user", Text: text(20)}
	}
	return all
}

// counted returns the size of an index in bytes, as the sum of its parts.
func counted(g *groupIndex) int {
	n := groupBytes + g.noted()
	for s, l := range g.lists {
		n += wordBytes + 2*len(s) + cap(l.deltas)
	}
	for name := range g.speakers {
		n += speakerBytes + 2*len(name)
	}
	return n
}

// TestIndexSize checks that the weight of an index is its size in bytes, and that
// 100,000 messages take at most 24 MiB.
func TestIndexSize(t *testing.T) {
	g := newGroup()
	for part := range slices.Chunk(messages(100_000), readAtOnce) {
		g.add(1, part)
	}
	if n := counted(g); g.weight() != n || n > 24<<20 {
		t.Errorf("it holds %d bytes, and knows of %d, want both to be the same, and %d at most", n, g.weight(), 24<<20)
	}
}

// TestCopies checks that a message with other numbers does not make its words more common, and that
// its words in other statements do.
func TestCopies(t *testing.T) {
	g := newGroup()
	for i, text := range []string{"The queue has 20 workers.", "the queue has 30 workers", "The queue is slow.", "The queue has 40 workers!"} {
		g.add(7, []indexedMessage{{Place: int64(i + 1), Text: text, Note: messageNote{}}})
	}
	for word, want := range map[string]int{"queue": 2, "worker": 1, "slow": 1} {
		if places, n := g.find(word, 9); n != want || len(places) == 0 {
			t.Errorf("%s is in %d messages, want %d", word, n, want)
		}
	}
}
