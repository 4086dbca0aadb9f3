package words

import (
	"iter"
	"strings"
)

// OutsideFences yields the lines of a text outside of code fences, with their line ends.
// A fence ends with a line of the same sign that is at least as long as the one that
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

// fenceIn returns the row of signs with which a line begins, if that may be a fence, and
// the rest of the line.
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
