package redact

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestOwnRules checks each line of own.txt: its rule, and all rules together, redact
// exactly the marked part of its first example and leave its second example unchanged.
func TestOwnRules(t *testing.T) {
	next := 0
	for line := range strings.Lines(ownText) {
		f := fields(line)
		if f[0] == "" || f[0][0] == '#' {
			continue
		}
		rule := own[next]
		next++
		before, rest, _ := strings.Cut(whole(f[4]), "«")
		secret, after, _ := strings.Cut(rest, "»")
		before, secret, after = filled(before), filled(secret), filled(after)
		s := newScan(before + secret + after)
		if got, n := s.without(s.byRule(nil, rule)); n != 1 || got != before+"[redacted:"+rule.id+"]"+after {
			t.Errorf("%s by itself: %q became %q", rule.id, s.text, got)
		}
		got, n := Redact(s.text)
		kind, begins := strings.CutPrefix(got, before)
		kind, ends := strings.CutSuffix(kind, after)
		if n != 1 || !begins || !ends || !redacted.MatchString(kind) {
			t.Errorf("%s: %q became %q", rule.id, s.text, got)
		}
		stays := filled(f[5])
		if got, _ := Redact(stays); got != stays {
			t.Errorf("%s: %q became %q", rule.id, stays, got)
		}
	}
	t.Logf("%d rules", next)
}

// whole returns an example with marks. Without marks of its own, all of it is marked.
func whole(example string) string {
	if strings.Contains(example, "«") {
		return example
	}
	return "«" + example + "»"
}

var blank = regexp.MustCompile(`\{(\d+)([a-zA-Z]?)\}`)

// filled returns a text of own.txt or of the corpus with generated characters in its blanks. The file has
// blanks so that secret scanners do not report it.
func filled(text string) string {
	text = unescaped.Replace(text)
	return blank.ReplaceAllStringFunc(text, func(s string) string {
		m := blank.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		switch m[2] {
		case "h":
			return hexed(n)
		case "d":
			return strings.Repeat("7294618035", 1+n/10)[:n]
		case "l":
			return small(n)
		case "b":
			return strings.Repeat("k3xq7zm2vb4twl6rny5chjdfg", 1+n/25)[:n]
		case "B":
			return strings.ToUpper(strings.Repeat("k3xq7zm2vb4twl6rny5chjdfg", 1+n/25)[:n])
		case "a":
			return onlyLetters(n)
		case "u":
			return strings.ToUpper(mixed(n))
		case "k":
			return strings.Repeat(mixed(64)+"\n", n)
		}
		return mixed(n)
	})
}
