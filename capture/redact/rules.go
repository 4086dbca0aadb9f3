package redact

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed own.txt
var ownText string

// nearby is the largest distance, in bytes, between a secret and a keyword near it.
const nearby = 100

// rule describes one kind of secret, from own.txt.
type rule struct {
	id, value string // kind and value
	near      bool   // the keyword is near the secret, not in it
	keywords  []string
	regex     func() *regexp.Regexp
}

// bits are the least bits of a value for each character.
var bits = map[string]float64{"random": 2.5, "base64": 4}

// own are the rules of own.txt. The head of that file describes the format of its lines.
var own = func() (rules []*rule) {
	for line := range strings.Lines(ownText) {
		if f := fields(line); f[0] != "" && f[0][0] != '#' {
			keywords, near := strings.CutPrefix(f[2], "~")
			regex := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(f[3]) })
			rules = append(rules, &rule{f[0], f[1], near, strings.Split(keywords, ","), regex})
		}
	}
	return rules
}()

// fields returns the parts of a line that two or more blanks separate.
func fields(line string) []string { return blanks.Split(strings.TrimSpace(line), -1) }

var blanks = regexp.MustCompile(` {2,}`)

// has reports whether a text in lower case contains a keyword of the rule.
func (r *rule) has(lower string) bool {
	return slices.ContainsFunc(r.keywords, func(word string) bool { return strings.Contains(lower, word) })
}

// byRule finds the secrets that match one rule.
func (s *scan) byRule(list []found, r *rule) []found {
	for _, m := range r.regex().FindAllStringSubmatchIndex(s.text, -1) {
		f := found{m[0], m[1], r.id}
		if last := m[len(m)-2:]; last[0] >= 0 { // the group
			f.start, f.end = last[0], last[1]
		}
		if f.start < f.end && s.matches(r, m[0], m[1], f) {
			list = append(list, f)
		}
	}
	return list
}

// matches reports whether a match of a rule is a whole word with a secret that is random
// enough.
func (s *scan) matches(r *rule, from, to int, f found) bool {
	if isAlnum(s.text[from]) && !s.begins(from) || isAlnum(s.text[to-1]) && to < len(s.text) && isName(s.text[to]) {
		return false
	}
	if r.near && !r.has(s.lower[max(0, from-nearby):min(len(s.text), to+nearby)]) {
		return false
	}
	v := start(s.text[f.start:f.end])
	for _, word := range r.keywords { // a prefix is not random
		if !r.near && f.start == from && strings.HasPrefix(s.lower[from:], word) {
			v = start(s.text[min(from+len(word), f.end):f.end])
			break
		}
	}
	switch {
	case isPlaceholder(v) || r.value != "any" && describes(v):
		return false
	case r.value == "password":
		return telling(v) || strings.IndexByte(`"'`, s.text[f.start-1]) >= 0
	}
	return r.value == "any" || !wordy(v) && entropy(v) > bits[r.value]
}

// begins reports whether a word can begin at a place.
func (s *scan) begins(at int) bool {
	switch {
	case at == 0:
		return true
	case at > 1 && s.text[at-2] == '\\' && strings.IndexByte("nrt", s.text[at-1]) >= 0:
		return true
	}
	return !isName(s.text[at-1]) && s.text[at-1] != '.'
}
