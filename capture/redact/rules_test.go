package redact

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// TestRulesCompile checks that every rule compiles and finds no secret in a harmless text.
func TestRulesCompile(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.rules) < 200 {
		t.Errorf("%d rules", len(r.rules))
	}
	for _, one := range slices.Concat(r.own, r.rules) {
		s := newScan("hello world")
		if list := s.byRule(nil, one, r.allow, s.windows(one)); len(list) != 0 {
			t.Errorf("%s finds %v", one.ID, list)
		}
	}
}

// TestWindows checks that a rule finds the same secrets in the windows around its keywords
// as in the whole text. The secrets are generated from the rules.
func TestWindows(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	filler := strings.Repeat("Nothing of this is a number, and all of it could be said. ", 8)
	tried := 0
	for _, one := range slices.Concat(r.own, r.rules) {
		if one.ID == "nytimes-access-token" {
			continue // a name in its Regex ends with a comma, by mistake
		}
		re := regexp.MustCompile(one.Regex)
		shape, err := syntax.Parse(one.Regex, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 6 {
			var b strings.Builder
			made(&b, shape, rng)
			text := filler + "\n" + b.String() + "\n" + filler
			if !slices.ContainsFunc(one.Keywords, func(k string) bool { return strings.Contains(lowered(text), k) }) {
				continue
			}
			s := newScan(text)
			var whole []found
			for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
				if f, ok := s.matched(one, r.allow, 0, m); ok {
					whole = append(whole, f)
				}
			}
			if len(whole) == 0 {
				continue
			}
			tried++
			if list := s.byRule(nil, one, r.allow, s.windows(one)); !slices.Equal(list, whole) {
				t.Errorf("%s: in windows %v, in all %v: %q", one.ID, list, whole, b.String())
				break
			}
		}
	}
	if tried < 1000 {
		t.Errorf("%d texts had secrets", tried)
	}
	t.Logf("%d texts", tried)
}

// made appends a random match of re to b.
func made(b *strings.Builder, re *syntax.Regexp, rng *rand.Rand) {
	times := func(least, most int) {
		if most < 0 {
			most = least + 20
		}
		for range least + rng.IntN(most-least+1) {
			made(b, re.Sub[0], rng)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		var all []rune
		for i := 0; i < len(re.Rune); i += 2 {
			for c := re.Rune[i]; c <= min(re.Rune[i+1], '~'); c++ {
				if c >= ' ' {
					all = append(all, c)
				}
			}
		}
		if len(all) > 0 { // else line breaks, which are unwanted
			b.WriteRune(all[rng.IntN(len(all))])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			made(b, sub, rng)
		}
	case syntax.OpAlternate:
		made(b, re.Sub[rng.IntN(len(re.Sub))], rng)
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	}
}
