package redact

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed own.txt
var ownText string

const (
	// nearby is the largest distance, in bytes, between a secret and a keyword near it.
	nearby = 100

	// bitsOfPassword marks a rule for passwords, which people make up.
	bitsOfPassword = -1
)

// ownRules reads own.txt. The head of that file describes the format of its lines.
func ownRules() (rules []*rule, err error) {
	number := 0
	for line := range strings.Lines(ownText) {
		number++
		f := fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		if len(f) != 6 {
			return nil, fmt.Errorf("read own.txt, line %d: %d fields, want 6", number, len(f))
		}
		r := &rule{ID: f[0], Regex: f[3]}
		if r.Entropy = bitsOfPassword; f[1] != "-" {
			if r.Entropy, err = strconv.ParseFloat(f[1], 64); err != nil {
				return nil, fmt.Errorf("read own.txt, line %d: %w", number, err)
			}
		}
		keywords := strings.TrimLeft(f[2], "~")
		r.Afar = nearby * [...]int{0, 1, 64}[len(f[2])-len(keywords)]
		for word := range strings.SplitSeq(keywords, ",") {
			r.keys = append(r.keys, keyword{word: word, leads: strings.HasPrefix(strings.ToLower(r.Regex), regexp.QuoteMeta(word))})
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// fields returns the parts of a line that two or more blanks separate.
func fields(line string) (list []string) {
	for f := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
		if f = strings.TrimSpace(f); f != "" {
			list = append(list, f)
		}
	}
	return list
}

// around returns the part of the text in which one of our rules may match, given a
// keyword at a place.
func (s *scan) around(r *rule, k *keyword, at, end int) (w span, ok bool) {
	switch {
	case k.leads:
		return span{at, s.tokenRest(end + behind)}, s.begins(at)
	case r.Afar > 0:
		return span{s.tokenStart(at - r.Afar), s.tokenRest(end + r.Afar)}, true
	}
	return span{s.tokenStart(at - before), s.tokenRest(end + behind)}, true
}

// mine reports whether a match of one of our rules is a whole word with a secret that is
// random enough.
func (s *scan) mine(r *rule, match, secret span) bool {
	if isAlnum(s.text[match.from]) && !s.begins(match.from) {
		return false
	}
	if isAlnum(s.text[match.to-1]) && match.to < len(s.text) && isName(s.text[match.to]) {
		return false
	}
	for i := range r.keys { // the prefix is not random
		if word := r.keys[i].word; r.keys[i].leads && secret.from == match.from && strings.HasPrefix(s.lower[match.from:match.to], word) {
			secret.from += len(word)
			break
		}
	}
	v := start(s.text[secret.from:secret.to])
	if isPlaceholder(v) || describes(v) {
		return false
	}
	switch r.Entropy {
	case 0:
		return true
	case bitsOfPassword:
		return telling(v) || strings.IndexByte(`"'`, s.text[secret.from-1]) >= 0
	}
	return !wordy(v) && entropy(v) > r.Entropy
}
