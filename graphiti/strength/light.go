package strength

import (
	_ "embed"
	"strings"
)

// Light reports whether a word, in lower case, is a form of a verb that says
// little by itself: what is done, gone or taken is in the words beside it. A
// question has it ("what has she done?"), and its answer another verb.
func Light(word string) bool { return light[fold(word)] }

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
