package inject

import (
	"bytes"
	"regexp"
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

	// plainText is the length up to which a text is searched in full, without reduction.
	plainText = 300
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

const (
	fewLines   = 5   // lines of a log that remain unreduced
	keptErrors = 3   // error lines per log
	lineLength = 160 // length of a line of pasted text

	// lookedAt is the number of bytes read at each end of a text. People comment on pasted
	// files before or after them.
	lookedAt = 32 << 10
)

var logLine = regexp.MustCompile(`^\s*(\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\d{10,}\b|at [\w.$<>]+\(|File "|goroutine \d|#\d+ |\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b|\{"(time|level|ts|msg)")`)

// errorWords mark the error lines of a log.
var errorWords = [...]string{"error", "exception", "fail", "panic", "fatal", "cannot", "denied", "refused", "timeout"}

func tellsError(line []byte) bool {
	line = bytes.ToLower(line)
	for _, w := range errorWords {
		if bytes.Contains(line, []byte(w)) {
			return true
		}
	}
	return false
}

// reduced shortens pasted text: code to its first line and its errors, logs to their
// errors. It stops at the length of a query, and reads only the fences in the middle of a
// long text.
func reduced(text []byte) []byte {
	if len(text) <= plainText {
		return text
	}
	var out []byte
	var log [][]byte
	keep := func(line []byte) {
		if len(out) == 0 {
			line = bytes.TrimLeft(line, " \t\r\n")
		}
		if len(out)+len(line) > 0 {
			out = append(append(out, line...), '\n')
		}
	}
	flush := func() {
		if len(log) > fewLines {
			log = telling(log)
		}
		for _, l := range log {
			keep(l)
		}
		log = log[:0]
	}
	var fence []byte
	first, errors := false, 0 // state of the current fence
	at := 0
	for line := range bytes.Lines(text) {
		near := at < lookedAt || at+len(line) > len(text)-lookedAt
		at += len(line)
		trimmed := bytes.TrimSpace(line)
		switch {
		case fence != nil && bytes.HasPrefix(trimmed, fence):
			fence = nil
		case fence == nil && (bytes.HasPrefix(trimmed, []byte("```")) || bytes.HasPrefix(trimmed, []byte("~~~"))):
			flush()
			fence, first, errors = trimmed[:3], true, 0
		case !near:
			first = false
		case fence != nil && first && len(trimmed) > 0:
			keep(cutWord(trimmed, lineLength))
			first = false
		case fence != nil:
			if errors < keptErrors && tellsError(graphiti.Truncate(trimmed, maxQuery)) {
				keep(cutWord(trimmed, lineLength))
				errors++
			}
		case logLine.Match(graphiti.Truncate(line, maxQuery)):
			log = append(log, cutWord(trimmed, lineLength))
		default:
			flush()
			keep(cutWord(bytes.TrimRight(line, "\r\n"), maxQuery))
		}
		if len(out) > maxQuery {
			break
		}
	}
	flush()
	return bytes.TrimSpace(out)
}

// telling returns the error lines of a log, or else its first line.
func telling(log [][]byte) (out [][]byte) {
	for _, l := range log {
		if len(out) == keptErrors {
			break
		}
		if tellsError(l) {
			out = append(out, l)
		}
	}
	if out == nil {
		out = log[:1]
	}
	return out
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
