package redact

import (
	"regexp"
	"slices"
	"sync"
)

// rule describes one kind of secret, from own.txt.
type rule struct {
	ID      string
	Regex   string
	Entropy float64 // the least bits for each character
	Afar    int     // largest distance of the secret from a keyword, in bytes; 0: next to it

	keys []keyword

	once sync.Once
	re   *regexp.Regexp
}

// keyword is a word without which a rule cannot match a text.
type keyword struct {
	word  string // in lower case
	leads bool   // a word begins with it
}

const (
	// before and behind are the number of bytes searched on either side of a keyword; a
	// match at their end extends the search.
	before = 128
	behind = 256

	// maxWindow bounds an extended search, in bytes.
	maxWindow = 64 << 10

	// tokenLen is the least length of a token that contains a keyword and is a secret.
	tokenLen = 16
)

// span is a part of a text.
type span struct{ from, to int }

// windows returns the parts of the text in which the rule may match.
func (s *scan) windows(r *rule) (list []span) {
	for i := range r.keys {
		k := &r.keys[i]
		for at := range s.places(k.word) {
			end := at + len(k.word)
			if n := len(list); n > 0 && list[n-1].from <= at-before && list[n-1].to >= end+behind {
				continue
			}
			w, ok := s.around(r, k, at, end)
			if !ok {
				continue
			}
			list = append(list, span{s.wordStart(max(w.from, 0)), min(w.to, len(s.text))})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return a.from - b.from })
	merged := list[:0]
	for _, w := range list {
		if n := len(merged); n > 0 && w.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, w.to)
			continue
		}
		merged = append(merged, w)
	}
	return merged
}

// tokenStart returns the start of the token at a place.
func (s *scan) tokenStart(at int) int {
	at = max(at, 0)
	for n := 0; n < maxValue && at > 0 && isGraph(s.text[at-1]); n++ {
		at--
	}
	return at
}

// wordStart returns the start of the word at a place, at most before bytes away.
func (s *scan) wordStart(at int) int {
	for n := 0; n < before && at > 0 && isName(s.text[at-1]); n++ {
		at--
	}
	return at
}

func isGraph(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '`' }
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isName(c byte) bool  { return isAlnum(c) || c == '_' || c == '-' }
func isValue(c byte) bool { return isName(c) || c == '.' || c == '+' || c == '/' || c == '=' }
func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool {
	return isLower(c) || isUpper(c)
}

// byRules finds the secrets that match some rules; ok is false if the deadline passed.
func (s *scan) byRules(rules []*rule, late func() bool) (list []found, ok bool) {
	for _, r := range rules {
		where := s.windows(r)
		if len(where) > 0 && late() {
			return nil, false
		}
		list = s.byRule(list, r, where)
	}
	return list, true
}

// joint is the most bytes between two lines of a match.
const joint = 16

// byRule finds the secrets that match one rule in some parts of the text.
func (s *scan) byRule(list []found, r *rule, where []span) []found {
	past := 0 // the end of the searched text
	for _, w := range where {
		if w.to <= past {
			continue
		}
		r.once.Do(func() { r.re = regexp.MustCompile(r.Regex) })
		for {
			matches := r.re.FindAllStringSubmatchIndex(s.text[w.from:w.to], -1)
			if n := len(matches); n > 0 && w.from+matches[n-1][1]+joint >= w.to && w.to < len(s.text) && w.to-w.from < maxWindow {
				w.to = min(w.from+2*(w.to-w.from), len(s.text)) // the match may be longer
				continue
			}
			for _, m := range matches {
				if secret, ok := s.matched(r, w.from, m); ok {
					list = append(list, secret)
				}
			}
			break
		}
		past = w.to
	}
	return list
}

// matched returns the secret in a match: the first group with a text, else the whole match. at is
// the start of the searched part of the text.
func (s *scan) matched(r *rule, at int, m []int) (f found, ok bool) {
	from, to := m[0], m[1]
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 && m[i] < m[i+1] {
			from, to = m[i], m[i+1]
			break
		}
	}
	if from == to || !s.mine(r, span{at + m[0], at + m[1]}, span{at + from, at + to}) {
		return f, false
	}
	return found{at + from, s.rest(at+from, at+to), r.ID}, true
}

// maxLine bounds the bytes of a line that are read before a place.
const maxLine = 1 << 10
