package embedded

import (
	"regexp"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded/index"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/strength"
)

// maxParts bounds the parts of a question that are measured by themselves.
const maxParts = 6

// measure says how strongly hits answer a question, or one part of it. terms are
// the words that the hits were found by; of all others those count that the group
// does not have.
func measure(hits []*hit, terms, all []term, q *asked, size int, near map[int64]float64) {
	words := make([]strength.Word, 0, len(all))
	for i := range terms {
		words = append(words, strength.Word{Text: terms[i].word, Messages: terms[i].messages, Speaker: terms[i].name})
	}
	for i := range all {
		if all[i].messages == 0 {
			words = append(words, strength.Word{Text: all[i].word, Speaker: slices.Contains(q.names, all[i].word)})
		}
	}
	questions := []strength.Question{strength.NewQuestion(words, size)}
	for _, part := range partsOf(q.text) {
		questions = append(questions, strength.NewQuestion(within(part, words), size))
	}
	for _, h := range hits {
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
		h.strength = near[h.place]
		for n := range questions {
			h.strength = max(h.strength, questions[n].Of(has))
		}
	}
}

// partsOf returns what can be answered by itself where a text is more than one
// sentence: its first line, behind which may stand what was asked before, and the
// sentences of that line. People ask and then say what else is to be done.
func partsOf(text string) (parts []string) {
	line, _, more := strings.Cut(text, "\n")
	if more {
		parts = append(parts, line)
	}
	at := 0
	for _, end := range sentenceEnd.FindAllStringIndex(line, maxParts) {
		if end[1]-at < len(line) {
			parts = append(parts, line[at:end[1]])
		}
		at = end[1]
	}
	if at > 0 && at < len(line) {
		parts = append(parts, line[at:])
	}
	return parts
}

// sentenceEnd is the end of a sentence: in a number, a file's name or an address
// no white space follows.
var sentenceEnd = regexp.MustCompile(`[.?!]+(?:\s|$)|[。？！]`)

// within returns the words with those left empty that a text does not have.
func within(text string, words []strength.Word) []strength.Word {
	has := make(map[string]bool)
	for _, w := range index.Words(text, maxAsked) {
		has[w] = true
	}
	some := slices.Clone(words)
	for i := range some {
		if !has[some[i].Text] {
			some[i].Text = ""
		}
	}
	return some
}
