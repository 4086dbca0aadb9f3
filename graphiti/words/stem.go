package words

import (
	"unicode"
	"unicode/utf8"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
	"golang.org/x/text/unicode/norm"
)

// stem cuts the ending off an English word by Porter's algorithm, in place, so that all its
// forms have the same stem. Words of other languages lose similar endings, too, always in the
// same way.
func stem(word []byte) []byte {
	if len(word) < 3 || !utf8.Valid(word) {
		return word
	}
	var buf [64]rune
	runes := buf[:0]
	for _, r := range string(word) {
		runes = append(runes, r)
	}
	word = word[:0]
	for _, r := range porterstemmer.StemWithoutLowerCasing(runes) {
		word = utf8.AppendRune(word, r)
	}
	return word
}

// normal returns a text in the form that is split into words: composed, and without
// variants of one character such as full-width letters.
func normal(text string) string {
	if isASCII(text) || norm.NFKC.IsNormalString(text) {
		return text
	}
	return norm.NFKC.String(text)
}

// nukta is the dot below of Hindi, which many people omit.
const nukta = 0x93C

// isOmitted reports whether a character may be missing in another spelling of a word: an
// accent, a vowel sign of Arabic or Hebrew, or an invisible character. In later scripts
// the vowel signs distinguish words.
func isOmitted(r rune) bool {
	return r < 0x900 && unicode.Is(unicode.Mn, r) || r == nukta || r == 'ـ' || unicode.Is(unicode.Cf, r)
}

// fold appends a word without accents and invisible characters.
func fold(b, word []byte) []byte {
	for i := 0; i < len(word); {
		if c := word[i]; c < utf8.RuneSelf {
			b = append(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(word[i:])
		switch {
		case r >= 0x300 && isOmitted(r), r == 0xAD:
		case r == 'ё':
			b = append(b, "е"...)
		case unicode.In(r, unicode.Latin, unicode.Greek, unicode.Arabic):
			if d := norm.NFD.Properties(word[i:]).Decomposition(); len(d) > 0 {
				_, base := utf8.DecodeRune(d)
				b = append(b, d[:base]...)
				break
			}
			fallthrough
		default:
			b = append(b, word[i:i+n]...)
		}
		i += n
	}
	return b
}
