package words

import (
	"unicode"
	"unicode/utf8"
)

// Joins reports whether the character at i in a text is a joiner or non-joiner within a word of a
// script from Arabic to Sinhala: the spelling of some words needs it.
func Joins(text string, i int) bool {
	r, size := utf8.DecodeRuneInString(text[i:])
	last, _ := utf8.DecodeLastRuneInString(text[:i])
	next, _ := utf8.DecodeRuneInString(text[i+size:])
	spelled := func(r rune) bool { return 0x620 <= r && r < 0xe00 && unicode.In(r, unicode.L, unicode.M) }
	return (r == '\u200c' || r == '\u200d') && spelled(last) && spelled(next)
}
