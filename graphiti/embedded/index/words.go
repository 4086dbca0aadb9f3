package index

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

const maxWord = 64 // bytes of one

// Words returns the first max words of a text, each once, without those that
// say nothing. They hold letters and digits only.
func Words(text string, max int) (words []string) {
	EachWord(text, max, func(w []byte) bool {
		words = append(words, string(w))
		return true
	})
	return words
}

// EachWord calls f for what Words returns, until it returns false. A word is
// overwritten by the next one.
func EachWord(text string, max int, f func(w []byte) bool) {
	var buf [maxWord]byte
	var first [32]uint64 // hashes of words; with more, the memory is not the stack's
	seen := first[:0]
	scan(buf[:0], text, func(w []byte) bool {
		if h := xxhash.Sum64(w); !slices.Contains(seen, h) {
			seen = append(seen, h)
			return f(w) && len(seen) < max
		}
		return len(seen) < max
	})
}

// scan calls each for the words of a text that say something, until it returns
// false. They are written to b, where the next one overwrites them.
func scan(b []byte, text string, each func(w []byte) bool) {
	b = b[:0]
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			if c = asciiWord[c]; c != 0 {
				b = append(b, c)
				continue
			}
		} else {
			r, n := utf8.DecodeRuneInString(text[i:])
			i += n
			if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) {
				b = utf8.AppendRune(b, unicode.ToLower(r))
				continue
			}
		}
		if says(b) && !each(b) {
			return
		}
		b = b[:0]
	}
	if says(b) {
		each(b)
	}
}

// says reports whether a word tells anything.
func says(w []byte) bool {
	switch {
	case len(w) == 0, len(w) > maxWord:
		return false
	case len(w) == 1 && w[0] < utf8.RuneSelf:
		return '0' <= w[0] && w[0] <= '9'
	}
	return !stopWords[string(w)]
}

// asciiWord has the small letters and digits of words; 0 is between words.
var asciiWord = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		if r := rune(c); unicode.IsLetter(r) || unicode.IsNumber(r) {
			t[c] = byte(unicode.ToLower(r))
		}
	}
	return t
}()

// stopWords say nothing about what is meant: English, German, French, Spanish.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(`
		a about after again all also am an and any are as at be because been before being but by can could did do does
		doing don down for from had has have he her here hers him his how i if in into is it its just know let like me
		more most my no not now of off on once only or other our out over own please said same say she should so some
		such tell than that the their them then there these they this those through to too under until up us very was
		we were what when where which while who whom why will with would you your s t ll re ve
		der die das den dem des ein eine einen einem einer und oder aber ist sind war wie was wer wo wann warum ich du
		er sie es wir ihr mein meine dein deine nicht mit von zu im auf für
		le la les un une des et ou est sont je tu il elle nous vous mon ma mes ton ta quel quelle que qui où comment
		pas avec pour dans sur du de
		el los las una y o es son yo tú él mi mis tu tus qué cuál quién dónde cómo no con por para en del al`) {
		m[w] = true
	}
	return m
}()
