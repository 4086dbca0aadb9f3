package inject

import (
	"strings"
	"testing"
	"unicode"
)

// TestFactsHideNothing: what a person does not see in a fact a model does not
// read either. Text can be written in characters that fonts leave out.
func TestFactsHideNothing(t *testing.T) {
	hidden := func(base rune) string { // "no" in what stands for bytes
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
		{"invisible operators", "a\u2061\u2062\u2063\u2064b", "ab"},
		{"musical ones", "a\U0001d173\U0001d17ab", "ab"},
	} {
		if got := factLine(tc.text); got != tc.want {
			t.Errorf("%s: %+q, want %+q", tc.name, got, tc.want)
		}
	}
	// Of a whole alphabet of them nothing is left, in a block either.
	var b strings.Builder
	for r := rune(0xe0000); r < 0xe1000; r++ {
		b.WriteRune(r)
	}
	if block, _ := formatBlock([]string{factLine("Miso" + b.String() + " is a cat")}); !strings.Contains(block, "- Miso is a cat\n") {
		t.Errorf("%+q", block)
	}
}

// TestVisible: the characters that are looked at first are those that the rule
// lets through.
func TestVisible(t *testing.T) {
	for r := rune(0); r < unicode.MaxASCII+1; r++ {
		if got, want := visible(r), !unicode.In(r, unicode.Cc); got != want {
			t.Errorf("%q is visible: %v", r, got)
		}
	}
}
