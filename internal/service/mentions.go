package service

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Who and what messages mention is found without a list of words. In scripts with small
// and capital letters it is what is mostly written with a capital within sentences, and
// what is spelt like an identifier. In scripts without, it is what recurs and is rare.
const (
	mentionBytes = 2000 // of a message that are looked at
	mentionMost  = 24   // of one message
	longestName  = 48   // bytes: what is longer is a key, a hash or an address
	longestTerm  = 8    // characters of a term in a script without spaces
)

// mentions collects what messages mention, in two looks at each.
type mentions struct {
	messages int
	small    map[string]int32  // how often a word is written small
	capital  map[string]int32  // and with a capital, within sentences
	pairs    map[[2]rune]int32 // of characters in scripts without spaces
	first    map[string]string // how a name was written first, by its small letters
}

func newMentions() *mentions {
	return &mentions{small: make(map[string]int32), capital: make(map[string]int32), pairs: make(map[[2]rune]int32), first: make(map[string]string)}
}

// look looks at a message for the first time, and returns its words.
func (m *mentions) look(text string) (all []token) {
	m.messages++
	seen := make(map[[2]rune]bool)
	eachToken(text, func(t token) {
		all = append(all, t)
		switch t.kind {
		case small:
			m.small[t.text]++
		case capital:
			if !t.begins {
				m.capital[strings.ToLower(t.text)]++
			}
		case caseless:
			eachPair(t.text, func(pair [2]rune) {
				if !seen[pair] {
					seen[pair] = true
					m.pairs[pair]++
				}
			})
		case identifier:
		}
	})
	return all
}

// rare reports whether a pair of characters recurs, and in few messages.
func (m *mentions) rare(pair [2]rune) bool {
	n := int(m.pairs[pair])
	return n >= 2 && n <= max(4, m.messages*15/100)
}

// isName reports whether a word with a capital is one because it is a name, and not
// because a sentence or a heading begins with it.
func (m *mentions) isName(small string) bool { return m.capital[small] > m.small[small] }

// lookAgain returns what the words of a message mention, in their order: each name once, as
// it is counted.
func (m *mentions) lookAgain(all []token) (names []string) {
	var run []string // of names that stand side by side
	seen := make(map[string]bool)
	note := func(name string) {
		key := strings.ToLower(name)
		if len(name) > longestName || seen[key] || len(names) == mentionMost {
			return
		}
		seen[key] = true
		if m.first[key] == "" {
			m.first[key] = name
		}
		names = append(names, key)
	}
	end := func() {
		if len(run) > 0 {
			note(strings.Join(run, " "))
		}
		run = run[:0]
	}
	for _, t := range all {
		if t.kind != capital || !t.joins || len(run) == 4 {
			end()
		}
		switch t.kind {
		case identifier:
			note(t.text)
		case capital:
			if m.isName(strings.ToLower(t.text)) {
				run = append(run, t.text)
			} else {
				end()
			}
		case caseless:
			m.terms(t.text, note)
		case small:
		}
	}
	end()
	return names
}

// terms calls f for the longest rows of rare pairs in text of a script without case.
func (m *mentions) terms(text string, f func(string)) {
	chars := []rune(text)
	if !unicode.In(chars[0], unicode.Han, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
		rare := len(chars) >= 3
		eachPair(text, func(pair [2]rune) { rare = rare && m.rare(pair) })
		if rare { // a word between spaces, or a run of Katakana
			f(text)
		}
		return
	}
	for i := 0; i+1 < len(chars); {
		j := i
		for j+1 < len(chars) && j-i < longestTerm-1 && m.rare([2]rune{chars[j], chars[j+1]}) {
			j++
		}
		if j > i {
			f(string(chars[i : j+1]))
		}
		i = max(j, i+1)
	}
}

func eachPair(text string, f func([2]rune)) {
	before := rune(0)
	for _, r := range text {
		if before != 0 {
			f([2]rune{before, r})
		}
		before = r
	}
}

// token is a word of a text.
type token struct {
	text   string
	kind   tokenKind
	begins bool // a sentence, or a line
	joins  bool // one blank stands between it and the word before
}

type tokenKind uint8

const (
	small tokenKind = iota
	capital
	identifier
	caseless // in a script without capital letters
)

// eachToken calls f for the words of a text outside of code.
func eachToken(text string, f func(token)) {
	text = text[:min(len(text), mentionBytes)]
	if strings.Contains(text, "```") {
		for part := range words.OutsideFences(text) {
			tokensOf(part, f)
		}
		return
	}
	tokensOf(text, f)
}

func tokensOf(text string, f func(token)) {
	begins, last := true, -1 // where the word before ended
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			switch r {
			case '.', '!', '?', '…', ':', ';', '\n', '。', '！', '？', '：', '-', '*', '#', '|', '"', '“', '„', '(', '>':
				begins = true
			}
			i += size
			continue
		}
		n := wordAt(text[i:])
		t := token{text: text[i : i+n], begins: begins, joins: last >= 0 && i == last+1 && text[last] == ' '}
		if classify(&t, r) {
			f(t)
		}
		begins, i, last = false, i+n, i+n
	}
}

// wordAt is how long the word is that a text begins with: in scripts without case, the
// characters of one script.
func wordAt(text string) int {
	end := 0
	for end < len(text) && (text[end]|0x20 >= 'a' && text[end]|0x20 <= 'z' || text[end] >= '0' && text[end] <= '9') {
		end++ // most words have nothing else
	}
	if end > 0 && (end == len(text) || text[end] < utf8.RuneSelf && !strings.ContainsRune("_./@-", rune(text[end]))) {
		return end
	}
	first, _ := utf8.DecodeRuneInString(text)
	of := scriptTable(first)
	end = 0
	for i, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if scriptTable(r) != of && !unicode.IsMark(r) {
				return end
			}
		case of == nil && i == end && strings.ContainsRune("_./@-", r): // a joint, if the word goes on
			continue
		default:
			return end
		}
		end = i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			end = i + 1
		}
	}
	return end
}

// scriptTable is the table of a character's script, for the scripts without spaces that
// stand beside each other in one text; nil for all others.
func scriptTable(r rune) *unicode.RangeTable {
	if r < 0x0E00 {
		return nil
	}
	for _, t := range []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar} {
		if unicode.Is(t, r) || t == unicode.Katakana && r == 'ー' {
			return t
		}
	}
	return nil
}

// classify finds out what a word is; ok is false for one that says nothing here, such as a
// number, or grammar in Hiragana.
func classify(t *token, first rune) (ok bool) {
	switch {
	case scriptTable(first) == unicode.Hiragana:
		return false
	case unicode.IsLetter(first) && !unicode.IsUpper(first) && !unicode.IsLower(first) && !unicode.IsTitle(first):
		t.kind = caseless
		return utf8.RuneCountInString(t.text) > 1
	}
	letters, digits, joints, humps, parts := 0, 0, 0, 0, 0
	before := rune(' ')
	for _, r := range t.text {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
			if unicode.IsUpper(r) && unicode.IsLower(before) {
				humps++
			}
		case r == '-':
			parts++
		default:
			joints++
		}
		before = r
	}
	switch n := letters + digits; {
	case letters == 0, letters+digits < 2, n >= 8 && 3*digits > n: // a number, a hash
		return false
	case letters >= 3 && (humps > 0 || joints > 0 || digits > 0 && parts == 0):
		t.kind = identifier
	case joints > 0:
		return false
	case unicode.IsUpper(first):
		t.kind = capital
	}
	return true
}
