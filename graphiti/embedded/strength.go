package embedded

import (
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded/index"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/strength"
)

// measure says how strongly hits answer a question: the whole of it, or its
// first line, behind which may stand what was asked before. terms are the words
// that the hits were found by; of all others those count that the group does not
// have.
func measure(hits []hit, terms, all []term, q *asked, size int, near map[int64]float64) {
	words := make([]strength.Word, 0, len(all))
	for i := range terms {
		words = append(words, strength.Word{Text: terms[i].word, Messages: terms[i].messages, Speaker: terms[i].name})
	}
	for i := range all {
		if all[i].messages == 0 {
			words = append(words, strength.Word{Text: all[i].word, Speaker: slices.Contains(q.names, all[i].word)})
		}
	}
	whole := strength.NewQuestion(words, size)
	first := whole
	if line, _, more := strings.Cut(q.text, "\n"); more {
		inFirst := make(map[string]bool)
		for _, w := range index.Words(line, maxAsked) {
			inFirst[w] = true
		}
		for i := range words {
			if !inFirst[words[i].Text] {
				words[i].Text = ""
			}
		}
		first = strength.NewQuestion(words, size)
	}
	for i := range hits {
		h := &hits[i]
		has := func(n int) float64 {
			switch {
			case words[n].Speaker:
				return 1
			case n >= len(terms):
				return 0
			case h.ranked == nil:
				return 0
			}
			return float64(h.ranked.has[n])
		}
		// What is near in meaning may have none of the words.
		h.strength = max(whole.Of(has), first.Of(has), near[h.place])
	}
}
