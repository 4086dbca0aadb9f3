package redact

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed own.txt
var ownText string

const (
	nearby         = 100 // bytes between a secret and a keyword near it, at most
	bitsOfPassword = -1  // marks a rule for passwords, which people make up
)

// rule describes one kind of secret, from own.txt.
type rule struct {
	ID       string
	Entropy  float64 // the least bits for each character
	near     bool    // the keyword is near the secret, not in it
	keywords []string
	regex    func() *regexp.Regexp
}

// ownRules reads own.txt. The head of that file describes the format of its lines.
func ownRules() (rules []*rule, err error) {
	number := 0
	for line := range strings.Lines(ownText) {
		number++
		f := fields(line)
		if f[0] == "" || f[0][0] == '#' {
			continue
		}
		if len(f) != 6 {
			return nil, fmt.Errorf("read own.txt, line %d: %d fields, want 6", number, len(f))
		}
		keywords, near := strings.CutPrefix(f[2], "~")
		r := &rule{ID: f[0], near: near, keywords: strings.Split(keywords, ","), Entropy: bitsOfPassword}
		if f[1] != "-" {
			if r.Entropy, err = strconv.ParseFloat(f[1], 64); err != nil {
				return nil, fmt.Errorf("read own.txt, line %d: %w", number, err)
			}
		}
		r.regex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(f[3]) })
		rules = append(rules, r)
	}
	return rules, nil
}

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
		secret := m[:2] // the first group with a text, else the whole match
		for i := 2; i+1 < len(m); i += 2 {
			if m[i] < m[i+1] {
				secret = m[i : i+2]
				break
			}
		}
		if f := (found{secret[0], secret[1], r.ID}); f.start < f.end && s.matches(r, m[0], m[1], f) {
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
	case isPlaceholder(v) || r.Entropy != 0 && describes(v):
		return false
	case r.Entropy == 0:
		return true
	case r.Entropy == bitsOfPassword:
		return telling(v) || strings.IndexByte(`"'`, s.text[f.start-1]) >= 0
	}
	return !wordy(v) && entropy(v) > r.Entropy
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
