package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/clipperhouse/uax29/v2/words"
)

// maxWord is the length of the longest word that is indexed, in bytes: longer ones are
// keys, hashes or encoded data.
const maxWord = 64

// Significance is the role of a word in a text.
type Significance uint8

// The kinds of words.
const (
	Function Significance = iota // a function word of the text's language, without meaning of its own
	Light                        // a pair of Hiragana: mostly grammar
	Content
)

// Each calls f for the words of a text in order, until it returns false: in lower case,
// without accents, and without English endings. A name such as getUserById comes whole and
// in its parts. Text in scripts without spaces comes in pairs of characters. The next word
// overwrites w.
func Each(text string, f func(w []byte, k Significance) bool) {
	text = normal(text)
	each(text, languageOf(text), f)
}

func each(text string, lang language, f func(w []byte, k Significance) bool) {
	t := tokenizer{lang: lang, f: f, shouts: strings.ToUpper(text) == text}
	t.word = t.room[:0]
	all := words.FromString(text)
	for !t.done && all.Next() {
		t.segment(all.Value())
	}
	t.endRun()
}

// Of returns up to max different words of a text: first the content words, then light words
// in the remaining room.
func Of(text string, max int) (out []string) {
	var light []string
	var first [32]uint64 // hashes; with more, they leave the stack
	seen := first[:0]
	Each(text, func(w []byte, k Significance) bool {
		if k == Function {
			return true
		}
		if h := xxhash.Sum64(w); !slices.Contains(seen, h) {
			seen = append(seen, h)
			if k == Light {
				light = append(light, string(w))
			} else {
				out = append(out, string(w))
			}
		}
		return len(out) < max
	})
	return append(out, light[:min(len(light), max-len(out))]...)
}

// Term returns a word in the form of Each.
func Term(word string) (term string) {
	each(normal(word), 0, func(w []byte, _ Significance) bool {
		term = string(w)
		return false
	})
	return term
}

// IsLight reports whether a word begins with Hiragana.
func IsLight(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return scriptOf(r) == hiragana
}

// tokenizer splits a text into words.
type tokenizer struct {
	lang   language
	shouts bool // the text has no small letters
	f      func(w []byte, k Significance) bool
	done   bool
	begun  bool // a word was passed: a capital letter is a name

	script script // of the run
	run    []rune // characters of a script without spaces, not yet passed to f
	units  []int  // indexes in run at which characters begin: a mark belongs to its base character

	room [2 * maxWord]byte
	word []byte
	stem []byte
}

// script is a script without spaces between words, or with particles at the ends of words.
type script uint8

const (
	spaced script = iota
	han
	hiragana
	katakana
	hangul
	southEast // Thai, Lao, Khmer, Myanmar
)

func scriptOf(r rune) script {
	switch {
	case r < 0x0E00:
		return spaced
	case unicode.Is(unicode.Han, r):
		return han
	case unicode.Is(unicode.Hiragana, r):
		return hiragana
	case unicode.Is(unicode.Katakana, r), r == 'ー':
		return katakana
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return southEast
	}
	return spaced
}

// segment processes a word by Unicode's rules, or the text between two words.
func (t *tokenizer) segment(s string) {
	r, size := utf8.DecodeRuneInString(s)
	if size == len(s) && r < utf8.RuneSelf && !isASCIIWord(byte(r)) {
		t.endRun()
		return
	}
	if scriptOf(r) == spaced {
		t.endRun()
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_' {
			t.list(s)
		}
		return
	}
	for _, r := range s {
		switch of := scriptOf(r); {
		case unicode.IsMark(r) && len(t.run) > 0:
		case !unicode.IsLetter(r) && !unicode.IsNumber(r), of == spaced:
			t.endRun()
			continue
		default:
			if of != t.script {
				t.endRun()
			}
			t.script = of
			t.units = append(t.units, len(t.run))
		}
		t.run = append(t.run, r)
	}
	if t.script == hangul { // Korean has spaces
		t.endRun()
	}
}

// endRun passes the characters of a run to f in pairs, and Chinese characters also alone: a
// question with a word of one character may have none of its pairs.
func (t *tokenizer) endRun() {
	n := len(t.units)
	if n == 0 {
		t.run = t.run[:0]
		return
	}
	t.units = append(t.units, len(t.run))
	kind := Content
	if t.script == hiragana {
		kind = Light
	}
	for i := range n {
		if t.script == han || n == 1 {
			t.pair(t.run[t.units[i]:t.units[i+1]], kind)
		}
		if i+1 < n {
			t.pair(t.run[t.units[i]:t.units[i+2]], kind)
		}
	}
	t.run, t.units, t.script = t.run[:0], t.units[:0], spaced
}

func (t *tokenizer) pair(chars []rune, k Significance) {
	if t.done {
		return
	}
	t.word = t.word[:0]
	for _, r := range chars {
		t.word = utf8.AppendRune(t.word, r)
	}
	if k == Content && t.lang.has(t.word) {
		k = Function
	}
	t.done = !t.f(t.word, k)
}

func isASCIIWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// list passes the words of a segment to f. By Unicode's rules, a row of a table such as
// R01,0.15;820 is one word.
func (t *tokenizer) list(s string) {
	for row := range strings.SplitSeq(s, ";") {
		if !strings.Contains(row, ",") || isNumber(row) {
			t.spaced(row)
			continue
		}
		for cell := range strings.SplitSeq(row, ",") {
			t.spaced(cell)
		}
	}
}

// isNumber reports whether a text is one number: each group of digits but the first and the
// last has three.
func isNumber(s string) bool {
	groups := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '.' })
	for i, g := range groups {
		if strings.Trim(g, "0123456789") != "" || i > 0 && i < len(groups)-1 && len(g) != 3 {
			return false
		}
	}
	return true
}

// spaced passes a word of a script with spaces, and its parts, to f.
func (t *tokenizer) spaced(s string) {
	if len(s) > maxWord {
		return
	}
	if number, ok := plainNumber(s); ok {
		t.tell(number, false, false)
		return
	}
	parts := partsOf(s)
	if parts == nil {
		t.tell(s, false, false)
		return
	}
	whole := true
	for _, p := range parts {
		if strings.ContainsAny(p, "'’") {
			whole = false
		}
	}
	if whole && !strings.ContainsAny(s, "'’") {
		t.tell(strings.Map(func(r rune) rune {
			if isJoint(r) {
				return -1
			}
			return r
		}, s), true, false)
	}
	for _, p := range parts {
		t.tell(p, false, true)
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isJoint(r rune) bool {
	return r == '_' || r == '.' || r == ':' || r == '\'' || r == '’' || r == '·' || r == 0x2019
}

// plainNumber returns a number without the marks between its thousands: 12,500 and 12.500
// become 12500. In others, such as decimals, versions and addresses, it replaces commas by
// dots.
func plainNumber(s string) (string, bool) {
	groups, digits, marks := true, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case c == ',' || c == '.' || c == '\'':
			groups = groups && (marks == 0 && digits >= 1 && digits <= 3 || digits == 3)
			marks, digits = marks+1, 0
		default:
			return s, false
		}
	}
	if marks == 0 || !groups || digits != 3 {
		return strings.ReplaceAll(s, ",", "."), true
	}
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s), true
}

// partsOf splits a name at joints, and before a capital after a small letter. It returns
// nil if there is only one part.
func partsOf(s string) (parts []string) {
	from, before := 0, rune(0)
	for i, r := range s {
		switch {
		case isJoint(r):
			if i > from {
				parts = append(parts, s[from:i])
			}
			from = i + utf8.RuneLen(r)
		case unicode.IsUpper(r) && unicode.IsLower(before):
			if i > from {
				parts = append(parts, s[from:i])
			}
			from = i
		}
		before = r
	}
	if from == 0 {
		return nil
	}
	if from < len(s) {
		parts = append(parts, s[from:])
	}
	return parts
}

// tell passes one word to f; whole reports whether its parts follow, isPart whether it is one. A letter
// of its own names a thing, as in "shelf C", and one of a name such as "it's" does not.
func (t *tokenizer) tell(s string, whole, isPart bool) {
	if t.done || s == "" {
		return
	}
	t.word = t.word[:0]
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			t.word = append(t.word[:0], strings.ToLower(s)...)
			break
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		t.word = append(t.word, c)
	}
	t.stem = fold(t.stem[:0], t.word)
	k, isLetter := Content, len(t.stem) == 1 && (t.stem[0] < '0' || t.stem[0] > '9')
	switch name := t.begun && !t.shouts && !isPart && 'A' <= s[0] && s[0] <= 'Z'; {
	case whole:
	case isLetter && (isPart || s == "I" || !name && strings.Contains("aiAEOUY", s)), t.lang.has(t.stem) && (!isLetter || !name) && (t.shouts || !isAcronym(s)):
		k = Function
	}
	t.stem, t.begun = stem(t.stem), true
	t.done = !t.f(t.stem, k)
}

// isAcronym reports whether a word is written in capitals, as US and IT are.
func isAcronym(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return len(s) > 1
}
