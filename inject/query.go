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
	maxQuery = 2048 // characters, as Graphiti's own clients have it

	// shortQuestion is the length below which what was asked before is needed
	// to know what a question is about.
	shortQuestion = 80

	// plainText is the length up to which a text is asked for as it is: nothing
	// was pasted into it.
	plainText = 300
)

// window is how much is asked of what the person said before, in bytes: less
// the longer ago it was said.
var window = [...]int{maxQuery / 4, maxQuery / 12}

// question is a query as it is asked: the memory, and who makes embeddings, are
// no place for a credential that was pasted into it. ok is false where finding
// that out would take too long.
func (m *Memory) question(query string, by time.Time) (_ string, ok bool) {
	query, ok = m.opts().Redact(query, by)
	return string(cut([]byte(query), maxQuery)), ok
}

// query is what to ask the memory for the newest turn, in one paragraph; in the
// next one stands what was asked before, where that is needed. A memory that does not
// weigh the two would look for what was spoken of before: it is asked only the
// question, where that says what it is about.
func query(c *dialect.Conversation, weighs bool) string {
	q := paragraph(cutWord(reduced(c.Text(c.Last)), maxQuery))
	if len(q) >= shortQuestion || !weighs && !leans(q) {
		return string(q)
	}
	out := append([]byte(nil), q...)
	sep, n := graphiti.Earlier, 0
	for i := c.Last - 1; i >= 0 && n < len(window); i-- {
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

// paragraph is a text without empty lines.
func paragraph(text []byte) []byte { return emptyLines.ReplaceAll(text, []byte("\n")) }

// asks reports whether a text says what it is about: "continue" and "thanks"
// do not, and what was spoken of before is in the conversation.
//
// A question about the person has no such word: "who am I?".
func asks(text []byte) bool {
	text = cutWord(text, maxQuery)
	return words.Tells(string(text)) || words.AsksOfSelf(text)
}

// leans reports whether what was said before is needed to know what a question is
// about: it has fewer than two words of content. "how old is she?" has one, "and his?"
// none. With one it stands by itself where it is about the person: "where do I live?".
//
// A pronoun is a function word as any other. Beside two words of content it is not
// looked at: "what does she like to eat?" finds what anybody likes to eat.
func leans(question []byte) bool {
	n := words.Subjects(string(question))
	return n == 0 || n == 1 && !words.AsksOfSelf(question)
}

// asksBriefly reports whether a text asks with function words only: "and his?". What was
// asked before says what it means. A single word, "why?", does not count: it keeps a
// conversation going.
func asksBriefly(text []byte) bool {
	text = cutWord(text, shortQuestion)
	n, content := 0, false
	words.Each(string(text), func(_ []byte, k words.Kind) bool {
		n++
		content = content || k != words.Function
		return !content
	})
	return n > 1 && !content && words.Asks(string(text))
}

const (
	fewLines   = 5   // of a log that are left as they are
	keptErrors = 3   // lines of a log that say what went wrong
	lineLength = 160 // of a line that stands for what was pasted

	// lookedAt is how much of each end of a text is looked at, in bytes. A
	// person pastes whole files; what they say of them stands before or behind.
	lookedAt = 32 << 10
)

var logLine = regexp.MustCompile(`^\s*(\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\d{10,}\b|at [\w.$<>]+\(|File "|goroutine \d|#\d+ |\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b|\{"(time|level|ts|msg)")`)

// errorWords stand in the lines of a log that say what went wrong.
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

// reduced is a text with what was pasted into it reduced to what tells it: of
// code the first line, of a log what went wrong. It ends where nothing more
// can be asked for, and of the middle of a long text it sees only the fences.
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
	first, errors := false, 0 // of what the fence holds
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
			if errors < keptErrors && tellsError(cut(trimmed, maxQuery)) {
				keep(cutWord(trimmed, lineLength))
				errors++
			}
		case logLine.Match(cut(line, maxQuery)):
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

// telling are the lines of a log that say what went wrong, else its first one.
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

// maxWord is the length, in bytes, of what is taken for one word.
const maxWord = 200

// cutWord shortens text to n bytes at most, before a word that would be cut: of
// a credential a part is not known for one.
func cutWord(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	text = cut(text, n)
	for i := len(text); i > max(0, len(text)-maxWord); i-- {
		if !inWord(text[i-1]) {
			return text[:i]
		}
	}
	return text
}

// fromWord is the end of text, n bytes at most, likewise.
func fromWord(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	for i := range text[:min(len(text), maxWord)] {
		if !inWord(text[i]) {
			return bytes.ToValidUTF8(text[i:], nil)
		}
	}
	return bytes.ToValidUTF8(text, nil)
}

func inWord(c byte) bool { return c > ' ' && c < utf8.RuneSelf }

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
