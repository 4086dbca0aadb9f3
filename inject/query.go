package inject

import "unicode/utf8"

const (
	maxQuery = 2048 // characters, as Graphiti's own clients have it

	// shortQuestion is the length below which what was asked before is needed
	// to know what a question is about.
	shortQuestion = 80
)

// query is what to ask the memory for the newest turn.
func (c *Conversation) query() string {
	q := cut(c.Text(c.Last), maxQuery)
	if len(q) >= shortQuestion {
		return string(q)
	}
	for i := c.Last - 1; i >= 0; i-- {
		if c.Messages[i].Person {
			if before := cut(c.Text(i), maxQuery/4); len(before) > 0 {
				return string(q) + "\n" + string(before)
			}
		}
	}
	return string(q)
}

// cut shortens text to n bytes at most, between two characters.
func cut(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
