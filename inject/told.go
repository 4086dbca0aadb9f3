package inject

import (
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	toldMax  = 256 << 10 // bytes of the client's own text to compare
	toldLine = 400       // bytes of one line of it; a longer one is about many things

	// A line is about a statement if it has at least this share of its content words, and this
	// many.
	toldShare = 0.75
	toldWords = 3
)

// told returns a function that reports whether the client's own text has the subject of a
// statement in one line. This text is the system prompt and the additions to messages, such as
// CLAUDE.md. The line repeats the statement, or its author has changed it since.
func told(c *dialect.Conversation) func(line string) bool {
	var lines []string
	room := toldMax
	add := func(text []byte) {
		text = text[:min(len(text), room)]
		room -= len(text)
		for l := range strings.Lines(strings.ToLower(string(text))) {
			if len(l) <= toldLine {
				lines = append(lines, l)
			}
		}
	}
	add(c.Instructions())
	for i := range c.Messages {
		if c.Messages[i].Role != dialect.RoleUser {
			continue
		}
		typed := true // the first text is the person's
		for part := range c.Texts(i) {
			if !typed {
				add(part)
			}
			typed = false
		}
	}
	return func(line string) bool {
		of, longest := words.ContentOf(statement(line)), ""
		for w := range of {
			if len(w) > len(longest) {
				longest = w
			}
		}
		for _, l := range lines {
			if len(of) < toldWords || !strings.Contains(l, longest) {
				continue
			}
			shared := 0
			for w := range words.ContentOf(l) {
				if of[w] {
					shared++
				}
			}
			if shared >= toldWords && float64(shared) >= toldShare*float64(len(of)) {
				return true
			}
		}
		return false
	}
}
