package inject

import (
	"bytes"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	maxQuery = 2048 // characters, the limit of Graphiti's own clients

	// shortQuestion is the length below which a question needs earlier ones for context.
	shortQuestion = 80
)

// window holds the number of bytes of each earlier message in a query, the latest first.
var window = [...]int{maxQuery / 4, maxQuery / 12}

// question redacts and truncates a query, because backends and embedding services must
// not receive pasted credentials. ok is false if redaction takes too long.
func (m *Planner) question(query string, by time.Time) (_ string, ok bool) {
	query, ok = m.opts().Redact(query, by)
	return string(graphiti.Truncate([]byte(query), maxQuery)), ok
}

// query returns the search query for the words of the newest turn: as one paragraph, and,
// if it is short, with messages before the first one of the turn.
func query(c *dialect.Conversation, said []byte, first int) string {
	q := paragraph(cutWord(reduced(said), maxQuery))
	if len(q) >= shortQuestion {
		return string(q)
	}
	out := append([]byte(nil), q...)
	sep, n := graphiti.Earlier, 0
	for i := first - 1; i >= 0 && n < len(window); i-- {
		if !c.Messages[i].Person {
			continue
		}
		if before := cutWord(reduced(c.Text(i)), window[n]); len(before) > 0 {
			out = append(append(out, sep...), before...)
			sep = "\n"
		}
		n++
	}
	return string(out)
}

var emptyLines = regexp.MustCompile(`\n\s*\n`)

// paragraph removes empty lines from a text.
func paragraph(text []byte) []byte { return emptyLines.ReplaceAll(text, []byte("\n")) }

// asks reports whether a text has a subject: "continue" and "thanks" have none.
//
// A question about the person has no content word: "who am I?".
func asks(text []byte) bool {
	text = cutWord(text, maxQuery)
	return words.Tells(string(text)) || words.AsksOfSelf(text)
}

// reduced returns both ends of a text that is too long for a query: people comment on pasted text
// before or after it. It cuts no word in two.
func reduced(text []byte) []byte {
	if len(text) <= maxQuery {
		return text
	}
	const end = maxQuery / 4
	tail := text[len(text)-end:]
	if i := bytes.IndexAny(tail, " \n"); i >= 0 {
		return slices.Concat(cutWord(text, maxQuery-end-1), []byte{'\n'}, bytes.TrimSpace(tail[i:]))
	}
	return text
}

// maxWord is the maximum length of a word, in bytes.
const maxWord = 200

// cutWord truncates text to at most n bytes before a word, because redaction does not
// recognize part of a credential.
func cutWord(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	text = graphiti.Truncate(text, n)
	for i := len(text); i > max(0, len(text)-maxWord); i-- {
		if !inWord(text[i-1]) {
			return text[:i]
		}
	}
	return text
}

func inWord(c byte) bool { return c > ' ' && c < utf8.RuneSelf }
