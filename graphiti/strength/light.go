package strength

import (
	_ "embed"
	"strings"
	"unicode"
)

// Light reports whether a word of a text, in lower case, is a form of a verb that
// says little by itself: what is done, gone or taken is in the words beside it. A
// question has it ("what has she done?"), and its answer another verb. It is none
// where the text writes it as a name is written: Go, GET.
func Light(word, text string) bool {
	if !light[fold(word)] {
		return false
	}
	first := true
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if !first && w != word && strings.EqualFold(w, word) {
			return false
		}
		first = false
	}
	return true
}

//go:embed light.txt
var lightList string

// light are the words of the table.
var light = func() map[string]bool {
	m := make(map[string]bool)
	for line := range strings.Lines(lightList) {
		if line[0] == '#' {
			continue
		}
		for w := range strings.FieldsSeq(line) {
			m[fold(w)] = true
		}
	}
	return m
}()
