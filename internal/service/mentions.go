package service

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// The names that messages mention are found without a word list. In scripts with case, a
// name is a word that is usually capitalized within sentences, or an identifier. In other
// scripts, it is a term that recurs in few messages.
const (
	mentionBytes = 2000 // read of a message
	mentionMost  = 24   // names of one message
	longestName  = 48   // bytes; longer words are keys, hashes or addresses
	longestTerm  = 8    // characters, in a script without spaces
)

// mentions collects the names that messages mention, in two passes.
type mentions struct {
	messages int
	small    map[string]int32  // number of lower-case uses, by word
	capital  map[string]int32  // number of capitalized uses within sentences, by lower-case word
	pairs    map[[2]rune]int32 // number of messages, by pair of characters in scripts without case
	first    map[string]string // first spelling of a name, by its lower-case form
}

func newMentions() *mentions {
	return &mentions{small: make(map[string]int32), capital: make(map[string]int32), pairs: make(map[[2]rune]int32), first: make(map[string]string)}
}

// look is the first pass: it counts the words of a message, and returns them.
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

// rare reports whether a pair of characters occurs in at least two, but few messages.
func (m *mentions) rare(pair [2]rune) bool {
	n := int(m.pairs[pair])
	return n >= 2 && n <= max(4, m.messages*15/100)
}

// isName reports whether a word is a name, and not only capitalized at the beginning of
// sentences and headings.
func (m *mentions) isName(small string) bool { return m.capital[small] > m.small[small] }

// lookAgain is the second pass: it returns the names among the words of a message, in
// order, each once and in its lower-case form.
func (m *mentions) lookAgain(all []token) (names []string) {
	var run []string // adjacent names, which form one
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

// terms calls f for the longest sequences of rare pairs in a text of a script without case.
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
	begins bool // it begins a sentence or a line
	joins  bool // a single space separates it from the previous word
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
	begins, last := true, -1 // end of the previous word
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

// wordAt returns the length in bytes of the word at the beginning of a text. In scripts
// without spaces, a word has the characters of one script.
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
		case of == nil && i == end && strings.ContainsRune("_./@-", r): // part of the word if a letter follows
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

// scriptTable returns the table of a character's script, or nil. It knows the scripts that
// one text mixes without spaces.
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

// classify sets the kind of a word. ok is false for words that are never names, such as
// numbers, and particles in Hiragana.
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
