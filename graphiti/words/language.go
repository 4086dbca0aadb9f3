package words

import (
	_ "embed"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// language is the number of a line of the table, starting at 1; 0 if unknown.
type language uint8

//go:embed stop.txt
var stopLists string

//go:embed more.txt
var moreLists string

// typedNames are the languages in stop.txt, which has curated lists. Those of more.txt have words
// of other languages, too: one of its words shows no language.
var typedNames = func() (names []string) {
	for line := range strings.Lines(stopLists) {
		if name, _, _ := strings.Cut(line, " "); line[0] != '#' {
			names = append(names, name)
		}
	}
	return names
}()

// The parts of a line of the table.
const (
	function = iota
	ofSelf
	asking
	changing
	ordering
	parts
)

// table maps each word of a part to a set of languages, one bit for each. Words of the
// first person and words that ask are function words, too.
var table = func() (m [parts]map[string]uint64) {
	for part := range m {
		m[part] = make(map[string]uint64)
	}
	n := 0
	for line := range strings.Lines(stopLists + moreLists) {
		if line[0] == '#' {
			continue
		}
		n++
		for part, list := range strings.Split(line, "|") {
			for i, w := range strings.Fields(string(fold(nil, []byte(list)))) {
				if part == function && i == 0 { // the language
					continue
				}
				if part <= asking {
					m[function][w] |= 1 << n
				}
				m[part][w] |= 1 << n
			}
		}
	}
	return m
}()

// unspaced has the words of the table in languages without spaces, which are found within
// other text. Orders in Korean are the ends of words.
var unspaced = func() (m [parts][]string) {
	for part := range m {
		for w := range table[part] {
			r, _ := utf8.DecodeRuneInString(strings.TrimPrefix(w, noOrder))
			if s := scriptOf(r); s != spaced && (s != hangul || part >= changing) {
				m[part] = append(m[part], w)
			}
		}
	}
	return m
}()

// noOrder marks a word that excludes a request.
const noOrder = "-"

// has reports whether a word, without accents, is a function word of the language.
func (l language) has(word []byte) bool {
	return l != 0 && table[function][string(word)]>>l&1 != 0
}

// lookedAt is the number of bytes of a text that determine its language.
const lookedAt = 1024

// languageOf returns the language with the most function words in a text; of equal
// languages, the first in the table. It returns 0 if the text has no function word.
func languageOf(text string) language {
	var counts [64]uint8
	var best language
	var room [64]byte
	eachPlain(text, room[:], func(w []byte) {
		if len(w) == 1 { // it may name a thing, as in "shelf C"
			return
		}
		for of := table[function][string(w)]; of != 0; of &= of - 1 {
			l := bits.TrailingZeros64(of)
			if counts[l] < 255 {
				counts[l]++
			}
		}
	})
	for l := range counts {
		if counts[l] > counts[best] && (l <= len(typedNames) || counts[l] > 1) {
			best = language(l)
		}
	}
	return best
}

//go:embed common.txt
var commonLists string

// common maps the words of common.txt, in the form of Each, to sets of languages: no numbers, and no
// letters, which name things. Searches do without it, because many of its words tell answers apart.
var common = sync.OnceValue(func() map[string]uint64 {
	m := make(map[string]uint64)
	for line := range strings.Lines(commonLists) {
		name, list, _ := strings.Cut(line, " ")
		n := slices.IndexFunc(typedNames, func(s string) bool { return s == name }) + 1
		for _, w := range strings.Fields(list) {
			if r, size := utf8.DecodeRuneInString(w); unicode.IsLetter(r) && size < len(w) && scriptOf(r) == spaced {
				m[Term(w)] |= 1 << n
			}
		}
	}
	return m
})

// IsCommon reports whether a word, in the form of Each, is a function word or another common word of
// the language of a text.
func IsCommon(word, text string) bool {
	l := languageOf(text)
	return l.has([]byte(word)) || common()[word]>>l&1 != 0
}

// asksLate are the languages in which the word that asks precedes the verb, which is the last word.
var asksLate = []language{languageOf("है हैं का की के"), languageOf("ve bir icin degil gibi")}

// eachPlain calls f for the words of a text's beginning, in lower case, without accents,
// and split at apostrophes.
func eachPlain(text string, room []byte, f func(w []byte)) {
	all := words.FromString(normal(text[:min(len(text), lookedAt)]))
	for all.Next() {
		s := all.Value()
		if r, _ := utf8.DecodeRuneInString(s); len(s) > maxWord || r < utf8.RuneSelf && !isASCIIWord(byte(r)) {
			continue
		}
		room = fold(room[:0], []byte(strings.ToLower(s)))
		from := 0
		for i := 0; i <= len(room); i++ {
			if i == len(room) || room[i] == '\'' {
				f(room[from:i])
				from = i + 1
			}
		}
	}
}

// Personal reports whether a text has a word of the first person in its language: its
// author speaks about themselves, or asks about themselves.
func Personal(text string) bool { return hasPart(text, ofSelf, 1<<30) }

// maxAsked is the number of bytes of a question that AsksOfSelf reads.
const maxAsked = 2048

// AsksOfSelf reports whether a question is about its author. Facts about the person then
// matter in addition to facts about the project.
func AsksOfSelf(text []byte) bool {
	asked := string(text[:min(len(text), maxAsked)])
	return Personal(asked) && Asks(asked)
}

// Asks reports whether a text asks something: it has a question mark, or begins with a word
// that asks. In a script without spaces, such as Thai, and in languages with the verb at the
// end, the word may be anywhere.
func Asks(text string) bool {
	text = normal(text[:min(len(text), lookedAt)])
	first := 2
	if slices.Contains(asksLate, languageOf(text)) {
		first = longestOrder
	}
	return HasQuestion(text) || hasPart(text, asking, first)
}

// certain is the number of words up to which a single function word determines the language
// of a text: "mein" is German, and Hindi.
const certain = 3

// hasPart reports whether one of the first most words of a text is in a part of the
// table, in the text's language.
func hasPart(text string, part, most int) (has bool) {
	lang := languageOf(text)
	var room [64]byte
	n, ofLang, foreign := 0, 0, true
	eachPlain(text, room[:], func(w []byte) {
		n++
		if lang.has(w) {
			ofLang++
			foreign = foreign && w[0] < utf8.RuneSelf // many languages have its letters
		}
	})
	if ofLang == 1 && foreign && (n > certain || part > asking) {
		if part <= asking {
			return false
		}
		lang = 0
	}
	n = 0
	eachPlain(text, room[:], func(w []byte) {
		if n++; n <= most {
			of := table[part][string(w)]
			has = has || of != 0 && (lang == 0 || of>>lang&1 != 0)
		}
	})
	for _, w := range unspaced[part] {
		has = has || strings.Contains(text, w)
	}
	return has
}
