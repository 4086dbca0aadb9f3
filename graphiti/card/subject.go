package card

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// sharedWords is the share of the shorter text's words that two texts about one subject
// have in common.
const sharedWords = 0.75

// SameSubject reports whether two texts are about one subject, so that the newer one
// replaces the older: they have the same words, or they differ in one value. In doubt they
// have two subjects, and both texts are shown.
func SameSubject(a, b string) bool { return comparedOf(a).same(comparedOf(b)) }

// compared is a text to compare with others, with the stems of its content words.
type compared struct {
	text  string
	terms map[string]bool
}

func comparedOf(text string) compared { return compared{text, termsOf(text)} }

// same is SameSubject.
func (s compared) same(o compared) bool {
	if len(s.terms) > len(o.terms) {
		s, o = o, s
	}
	a, b, short, long := s.text, o.text, s.terms, o.terms
	if len(short) == 0 || len(long) > 3*len(short) {
		return false
	}
	both := 0
	for w := range short {
		if long[w] {
			both++
		}
	}
	switch {
	case float64(both) >= sharedWords*float64(len(short)):
		return true
	case both == 0 || len(short)-both != 1 || len(long)-both != 1 || marksOf(a).forbids != marksOf(b).forbids:
		return false
	}
	x, y := lastValue(a, long), lastValue(b, short)
	// Two texts that share more than a verb differ in a qualifier: tabs in Go, tabs in C.
	return x == number && y == number || both == 1 && x != noValue && y != noValue
}

// value is the kind of the only word of one text that another text lacks.
type value uint8

const (
	noValue value = iota
	name          // has a capital letter, or ends the text after a function word such as "in"
	number
)

// lastValue returns the kind of the first word of a text that is not among others.
func lastValue(text string, others map[string]bool) value {
	said := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,.;:!"()`, r) })
	for n, w := range said {
		if terms := termsOf(w); len(terms) != 1 || slices.ContainsFunc(slices.Collect(maps.Keys(terms)), func(t string) bool { return others[t] }) {
			continue
		}
		first, _ := utf8.DecodeRuneInString(w)
		switch {
		case strings.ContainsFunc(w, unicode.IsDigit):
			return number
		case n > 0 && (unicode.IsUpper(first) || n == len(said)-1 && ContentWords(said[n-1]) == 0):
			return name
		}
		return noValue
	}
	return noValue
}

// stemsOf returns the stems of all words of a sentence: a part of it may have other function words.
func stemsOf(s string) map[string]bool {
	stems := make(map[string]bool)
	words.Each(s, func(w []byte, _ words.Significance) bool {
		stems[stem(string(w))] = true
		return true
	})
	return stems
}

// termsOf returns the stems of the content words of a sentence, without its marks.
func termsOf(s string) map[string]bool {
	terms := make(map[string]bool)
	words.Each(s, func(w []byte, k words.Significance) bool {
		if k == words.Content && !markTerms[string(w)] {
			terms[stem(string(w))] = true
		}
		return true
	})
	return terms
}

// stem returns the beginning of a word, which its other forms share.
func stem(w string) string {
	if r := []rune(strings.TrimRight(w, "ns")); len(r) > 0 {
		return string(r[:min(len(r), 6)])
	}
	return w
}
