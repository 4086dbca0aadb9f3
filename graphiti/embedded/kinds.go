package embedded

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// kinds is a set of kinds of values in a text. A value and its correction have the same
// kind.
type kinds uint8

const (
	ofNumber kinds = 1 << iota
	ofName
	ofDate
	ofTime    // of day
	ofVersion // a name with a number, or a number with dots
	ofAddress // of a host, a person or a file

	// telling has the kinds that few texts share by chance.
	telling = ofDate | ofTime | ofVersion | ofAddress
)

// onlyChanges reports whether a statement has little content other than values, a time, and
// words of change.
func onlyChanges(text string) bool {
	if !words.Changes(text) {
		return false
	}
	_, others := kindsOf(text)
	others = slices.DeleteFunc(others, func(w string) bool { return !strings.ContainsFunc(w, isWide) && words.Changes(w) })
	return words.Subjects(strings.Join(others, " ")) == 0
}

// kindsOf returns the kinds of values in a text, and its other words.
func kindsOf(text string) (all kinds, others []string) {
	before, first, nouns := kinds(0), true, words.CapitalizesNouns(text)
	narrow := text
	if strings.ContainsFunc(text, isWide) {
		var wide strings.Builder
		narrow = strings.Map(func(r rune) rune {
			if !isWide(r) {
				return r
			}
			wide.WriteRune(r)
			return ' '
		}, text)
		others = append(others, wide.String())
	}
	for w := range strings.FieldsSeq(narrow) {
		ends := strings.ContainsAny(w[len(w)-1:], ".!?:")
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
		k := kindOf(w)
		if k == ofName && (first && before == 0 || nouns) {
			k = 0
		}
		if k&ofNumber != 0 && before&ofName != 0 {
			k |= ofVersion
		}
		if k == 0 {
			others = append(others, w)
		}
		all, before, first = all|k, k, ends
	}
	if all&ofNumber != 0 && strings.ContainsAny(text, "月日") {
		all |= ofDate
	}
	if all&ofNumber != 0 && strings.ContainsAny(text, "時时点點") {
		all |= ofTime
	}
	return all, others
}

// isWide reports whether a character belongs to a script without spaces.
func isWide(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// The endings of numbers in times of day, and in dates.
var (
	endsTime = set("am pm h uhr 시")
	endsDate = set("st nd rd th 월 일")
)

// kindOf returns the kinds of one word.
func kindOf(w string) kinds {
	first, _ := utf8.DecodeRuneInString(w)
	digits, number := unicode.IsNumber(first), strings.ContainsFunc(w, unicode.IsNumber)
	unit := strings.ToLower(strings.TrimLeftFunc(w, unicode.IsNumber))
	dots := strings.Count(w, ".")
	switch {
	case strings.ContainsAny(w, `/@\`), dots > 0 && !digits, dots == 3:
		return ofAddress
	case !number && tellsTime(w), digits && (endsDate[unit] || strings.Count(w, "-") == 2):
		return ofDate
	case digits && (strings.Contains(w, ":") || endsTime[unit]):
		return ofTime
	case digits && dots > 0:
		return ofNumber | ofVersion
	case digits:
		return ofNumber
	case unicode.IsUpper(first) && w != "I", number:
		return ofName
	}
	return 0
}
