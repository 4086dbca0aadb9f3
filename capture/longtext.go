package capture

import (
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// likeLines is how many lines of one shape a shortened text keeps in a row.
const likeLines = 2

// withoutLikeLines drops lines of a long text that have the shape of the lines before them,
// such as those of a log. The line that a person pasted the log for has another shape.
func withoutLikeLines(text string) string {
	var b strings.Builder
	last, alike := "", 0
	for line := range strings.Lines(text) {
		shape := shapeOf(line)
		if shape == "" || shape != last {
			last, alike = shape, 0
		}
		if alike++; alike <= likeLines || shape == "" {
			b.WriteString(line)
		} else if alike == likeLines+1 {
			b.WriteString(graphiti.LinesOmitted)
		}
	}
	return b.String()
}

// shapeOf returns a line with one 0 for each number, of decimal or hexadecimal digits; "" for
// a blank line.
func shapeOf(line string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if strings.ContainsFunc(word, unicode.IsDigit) {
			word = "0"
		}
		b.WriteString(word)
		b.WriteByte(' ')
	}
	return b.String()
}
