package inject

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// TestFactsHideNothing checks that a model does not read text in a fact that a person
// cannot see: fonts leave out some characters, and text can be encoded in them.
func TestFactsHideNothing(t *testing.T) {
	hidden := func(base rune) string { // "no" in characters that encode bytes
		return string([]rune{base + 'n', base + 'o'})
	}
	for _, tc := range []struct{ name, text, want string }{
		{"what is written", "Größe: 5 € – 日本語, עברית, हिन्दी, e\u0301, 👍🏽", "Größe: 5 € – 日本語, עברית, हिन्दी, e\u0301, 👍🏽"},
		{"Hangul", "한국어 \u1112\u1161\u11ab", "한국어 \u1112\u1161\u11ab"},
		{"a heart in colours", "we ❤\ufe0f it", "we ❤ it"},
		{"bits behind symbols", "+\ufe0f+☎\ufe0f☎\ufe0f☎\ufe0e☎", "++☎☎☎☎"},
		{"variation selectors", "a\ufe00\ufe01\ufe02\ufe0eb", "ab"},
		{"more of them", "a" + hidden(0xe0100) + "\U000e01efb", "ab"},
		{"Mongolian ones", "a\u180b\u180c\u180d\u180fb", "ab"},
		{"a Mongolian separator", "a\u180eb", "ab"},
		{"Hangul fillers", "a\u115f\u1160\u3164\uffa0b", "ab"},
		{"Khmer vowels that are not seen", "a\u17b4\u17b5b", "ab"},
		{"a joiner of graphemes", "a\u034fb", "ab"},
		{"tags", "a" + hidden(0xe0000) + "\U000e0001\U000e007fb", "ab"},
		{"what is reserved to be left out", "a\u2065\ufff0\U000e0080\U000e0fffb", "ab"},
		{"no characters", "a\ufdd0\U0001fffeb", "ab"},
		{"joiners and marks of direction", "a\u200b\u200d\u2060\ufeff\u202eb", "ab"},
		{"a Persian word", "نان سبوس\u200cدار", "نان سبوس\u200cدار"},
		{"a Persian word with a vowel sign", "سبوسِ\u200cدار", "سبوسِ\u200cدار"},
		{"Hindi and Bengali words", "क्\u200dष क्\u200cष र\u09cd\u200dय", "क्\u200dष क्\u200cष र\u09cd\u200dय"},
		{"joiners beside Persian words", "\u200cسبوس\u200c\u200dدار\u200c \u200d۱\u200c۲،\u200cx\u200cسبوس\u200c", "سبوسدار ۱۲،xسبوس"},
		{"joiners in words of other scripts", "bil\u200cling и\u200dли e\u0301\u200c\u0301 猫\u200d狗", "billing или e\u0301\u0301 猫狗"},
		{"marks of direction in a Persian word", "سبوس\u200f\u061cدار", "سبوسدار"},
		{"invisible operators", "a\u2061\u2062\u2063\u2064b", "ab"},
		{"musical ones", "a\U0001d173\U0001d17ab", "ab"},
	} {
		if got := lineOf(tc.text); got != tc.want {
			t.Errorf("%s: %+q, want %+q", tc.name, got, tc.want)
		}
	}
	// No character of a whole block of hidden ones remains.
	var b strings.Builder
	for r := rune(0xe0000); r < 0xe1000; r++ {
		b.WriteRune(r)
	}
	if got := lineOf("Miso" + b.String() + " is a cat"); got != "Miso is a cat" {
		t.Errorf("got %+q, want \"Miso is a cat\"", got)
	}
}

// TestVisible checks that visible accepts all ASCII characters except control characters.
func TestVisible(t *testing.T) {
	for r := rune(0); r < unicode.MaxASCII+1; r++ {
		if got, want := visible(r), !unicode.In(r, unicode.Cc); got != want {
			t.Errorf("%q is visible: %v", r, got)
		}
	}
}

// TestLinesShareTheirHead checks that statements of one person on one day share a line,
// take the computed number of characters, and are recognized later.
func TestLinesShareTheirHead(t *testing.T) {
	said := []struct{ line, source string }{
		{"Ann, 2026-01-05: the cat is ill", "Ann, 2026-01-05"},
		{"Ben, 2026-01-05: mine too", "Ben, 2026-01-05"},
		{"Ann, 2026-01-05: it eats nothing: not even fish", "Ann, 2026-01-05"},
		{"Ann, 2026-01-05: a · b", "Ann, 2026-01-05"},
		{"Ann has a cat", ""},
		{"Ann, 2026-01-06: it is well", "Ann, 2026-01-06"},
		{"Ann has a dog", ""},
		{"‹b›, 2026-01-06: x", "<b>, 2026-01-06"},
		{"‹b›, 2026-01-06: y", "<b>, 2026-01-06"},
		{"another head: x", "Ann, 2026-01-05"},
	}
	var lines, heads []string
	there, size := make(map[string]bool), 0
	for _, s := range said {
		head := lineHead(s.line, s.source)
		lines, heads = append(lines, s.line), append(heads, head)
		size += lineSize(s.line, head, head != "" && there[head])
		there[head] = true
	}
	want := []string{
		"Ann, 2026-01-05: the cat is ill · it eats nothing: not even fish", "Ben, 2026-01-05: mine too", "Ann, 2026-01-05: a · b",
		"Ann has a cat", "Ann, 2026-01-06: it is well", "Ann has a dog", "‹b›, 2026-01-06: x · y", "another head: x",
	}
	got, rows := joinLines(lines, heads)
	for i, l := range lines {
		if line := got[rows[i]-1]; line != l && !strings.Contains(line, betweenLines+l[len(heads[i]):]) && !strings.HasPrefix(line, l+betweenLines) {
			t.Errorf("%q is said to stand in %q", l, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	block := "- " + strings.Join(got, "\n- ") + "\n"
	if n := len([]rune(block)); n != size {
		t.Errorf("they take %d characters, not %d", n, size)
	}
	for _, l := range lines {
		if !statementsIn([]string{block}).has(l) {
			t.Errorf("%q is not known again", l)
		}
	}
}

// TestJoinersDoNotCount checks that a statement is known with and without its joiners.
func TestJoinersDoNotCount(t *testing.T) {
	for _, tc := range []struct{ one, other string }{
		{"نان سبوس\u200cدار خوب است", "نان سبوسدار خوب است"},
		{"क्\u200dष यहाँ है", "क्ष यहाँ है"},
	} {
		for _, two := range [][2]string{{tc.one, tc.other}, {tc.other, tc.one}} {
			shown, line := lineOf(two[0]), lineOf(two[1])
			block, _ := formatBlock([]string{shown}, 0, true)
			if !statementsIn([]string{block}).has(line) {
				t.Errorf("%+q: the block does not have %+q", shown, line)
			}
			if !alike(statementWords(line), []map[string]bool{statementWords(shown)}) {
				t.Errorf("%+q has other words than %+q", shown, line)
			}
		}
	}
}
