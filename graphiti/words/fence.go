package words

import (
	"iter"
	"strings"
)

// OutsideFences yields the lines of a text that stand in no fence, with their line ends.
// A fence ends with a line of its own sign that is at least as long as the one that
// began it, or with the text (CommonMark 0.31.2, section 4.5).
func OutsideFences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		open := ""
		for line := range strings.Lines(text) {
			signs, rest := fenceIn(line)
			switch {
			case open == "" && signs != "" && (signs[0] == '~' || !strings.Contains(rest, "`")):
				open = signs
			case open == "":
				if !yield(line) {
					return
				}
			case strings.HasPrefix(signs, open) && strings.TrimSpace(rest) == "":
				open = ""
			}
		}
	}
}

// fenceIn is the row of signs that a line begins with, where it may be a fence, and
// what stands behind it.
func fenceIn(line string) (signs, rest string) {
	text := strings.TrimLeft(line, " ")
	if len(line)-len(text) > 3 || text == "" || text[0] != '`' && text[0] != '~' {
		return "", ""
	}
	rest = strings.TrimLeft(text, text[:1])
	if signs = text[:len(text)-len(rest)]; len(signs) < 3 {
		return "", ""
	}
	return signs, rest
}
