package words

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// stem cuts the ending off an English word by Porter's algorithm (An algorithm for suffix
// stripping, 1980), so that all its forms have the same stem. Words of other languages lose
// similar endings, too, always in the same way.
func stem(word []byte) []byte {
	if len(word) < 3 {
		return word
	}
	w := stemmer{b: word}
	w.plurals()
	w.pastTenses()
	if n := len(w.b) - 1; w.b[n] == 'y' && w.vowelBefore(n) {
		w.b[n] = 'i'
	}
	w.replaceFirst(&doubleSuffixes, 0)
	w.replaceFirst(&fullSuffixes, 0)
	w.replaceFirst(&lastSuffixes, 1)
	w.finalE()
	return w.b
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

// stemmer is a word whose end is cut off, step by step.
type stemmer struct{ b []byte }

// suffix is an ending and its replacement.
type suffix struct{ old, new string }

// suffixes are endings by their last letter.
type suffixes [utf8.RuneSelf][]suffix

func byLast(list []suffix) (s suffixes) {
	for _, e := range list {
		last := e.old[len(e.old)-1]
		s[last] = append(s[last], e)
	}
	return s
}

// Of each list the first matching ending is replaced, so longer endings come first.
var (
	doubleSuffixes = byLast([]suffix{{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"}, {"abli", "able"}, {"alli", "al"},
		{"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"}, {"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"},
		{"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"}})
	fullSuffixes = byLast([]suffix{{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""}})
	lastSuffixes = byLast([]suffix{{"al", ""}, {"ance", ""}, {"ence", ""}, {"er", ""}, {"ic", ""}, {"able", ""}, {"ible", ""}, {"ant", ""}, {"ement", ""}, {"ment", ""},
		{"ent", ""}, {"sion", "s"}, {"tion", "t"}, {"ou", ""}, {"ism", ""}, {"ate", ""}, {"iti", ""}, {"ous", ""}, {"ive", ""}, {"ize", ""}})
)

func (w *stemmer) ends(s string) bool {
	n := len(w.b) - len(s)
	return n >= 0 && w.b[len(w.b)-1] == s[len(s)-1] && string(w.b[n:]) == s
}

func (w *stemmer) cut(n int) { w.b = w.b[:len(w.b)-n] }

func (w *stemmer) consonant(i int) bool {
	switch w.b[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !w.consonant(i-1)
	}
	return true
}

// measure counts how often, in the first n letters, consonants follow vowels.
func (w *stemmer) measure(n int) (m int) {
	vowel := false
	for i := range n {
		c := w.consonant(i)
		if c && vowel {
			m++
		}
		vowel = !c
	}
	return m
}

// vowelBefore reports whether one of the first n letters is a vowel.
func (w *stemmer) vowelBefore(n int) bool {
	for i := range n {
		if !w.consonant(i) {
			return true
		}
	}
	return false
}

// doubled reports whether the word ends with a consonant written twice.
func (w *stemmer) doubled() bool {
	n := len(w.b)
	return n > 1 && w.b[n-1] == w.b[n-2] && w.consonant(n-1)
}

// short reports whether the first n letters end as "hop" does, and not "snow".
func (w *stemmer) short(n int) bool {
	if n < 3 || !w.consonant(n-1) || w.consonant(n-2) || !w.consonant(n-3) {
		return false
	}
	c := w.b[n-1]
	return c != 'w' && c != 'x' && c != 'y'
}

func (w *stemmer) plurals() {
	switch {
	case w.ends("sses"), w.ends("ies"):
		w.cut(2)
	case w.ends("s") && !w.ends("ss"):
		w.cut(1)
	}
}

func (w *stemmer) pastTenses() {
	n := 0
	switch {
	case w.ends("eed"):
		if w.measure(len(w.b)-3) > 0 {
			w.cut(1)
		}
		return
	case w.ends("ed"):
		n = 2
	case w.ends("ing"):
		n = 3
	}
	if n == 0 || !w.vowelBefore(len(w.b)-n) {
		return
	}
	w.cut(n)
	last := byte(0)
	if len(w.b) > 0 {
		last = w.b[len(w.b)-1]
	}
	switch {
	case w.ends("at"), w.ends("bl"), w.ends("iz"):
		w.b = append(w.b, 'e') // in place of the ending
	case w.doubled() && last != 'l' && last != 's' && last != 'z':
		w.cut(1)
	case w.measure(len(w.b)) == 1 && w.short(len(w.b)):
		w.b = append(w.b, 'e')
	}
}

// replaceFirst replaces the first matching ending, if the measure of the word before it is
// greater than m.
func (w *stemmer) replaceFirst(all *suffixes, m int) {
	last := w.b[len(w.b)-1]
	if last >= utf8.RuneSelf {
		return
	}
	for i := range all[last] {
		s := &all[last][i]
		if !w.ends(s.old) {
			continue
		}
		if w.measure(len(w.b)-len(s.old)+kept(s)) > m {
			w.b = append(w.b[:len(w.b)-len(s.old)], s.new...)
		}
		return
	}
}

// kept returns the number of letters of the ending that belong to the measured part: "ion"
// is cut only after an s or a t.
func kept(s *suffix) int {
	if s.old == "sion" || s.old == "tion" {
		return 1
	}
	return 0
}

func (w *stemmer) finalE() {
	n := len(w.b) - 1
	if w.b[n] == 'e' {
		if m := w.measure(n); m > 1 || m == 1 && !w.short(n) {
			w.b = w.b[:n]
		}
	}
	if w.ends("ll") && w.measure(len(w.b)-1) > 1 {
		w.cut(1)
	}
}
