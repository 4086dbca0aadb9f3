package dialect

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// behindSummary is what stands behind a summary that a client has put in place of
// what was said before. The client may say more itself there: only what stands
// behind a mark of the table counts.
func behindSummary(text []byte, in textContext) (rest []byte, ok bool) {
	if !in.Early() {
		return nil, false
	}
	_, behind, ok := summaryElement(text, true)
	if !ok {
		return nil, false
	}
	at := -1
	for _, tag := range harnessTags {
		end := []byte("</" + tag + ">")
		if i := bytes.LastIndex(behind, end); i >= 0 {
			at = max(at, i+len(end))
		}
	}
	if at < 0 {
		return nil, true
	}
	return behind[at:], true
}

// summaryElement finds a summary in an element, from its first beginning to its
// last end, and what stands behind it. lines says that its marks are lines of their
// own: a person may write of a summary within one. Its time is linear in the text's
// size.
func summaryElement(text []byte, lines bool) (inner, behind []byte, ok bool) {
	ends := summaryEnds(text)
	for at := 0; len(ends) > 0; {
		i := bytes.IndexByte(text[at:], '<')
		if i < 0 {
			break
		}
		i, at = at+i, at+i+1
		tag := tagAt(text[i:])
		if tag == nil {
			continue
		}
		from := i + 1 + len(tag) + 1 // behind the tag's end
		rest := text[min(from, len(text)):]
		if text[from-1] != '>' || lines && (i > 0 && text[i-1] != '\n' || len(rest) > 0 && rest[0] != '\n' && rest[0] != '\r') {
			continue
		}
		if end, ends := ends[string(tag)]; ends && end >= from {
			return text[from:end], text[end+len(tag)+3:], true
		}
	}
	return nil, nil, false
}

// summaryEnds are the names of the elements that hold a summary, and where the last
// end of each stands.
func summaryEnds(text []byte) map[string]int {
	if !bytes.Contains(text, []byte("summary")) && !bytes.Contains(text, []byte("snapshot")) {
		return nil
	}
	ends := make(map[string]int)
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte("</"))
		if i < 0 {
			return ends
		}
		i, at = at+i, at+i+1
		tag := nameAt(text[i+2:])
		if bytes.HasPrefix(text[i+2+len(tag):], []byte(">")) && (bytes.Contains(tag, []byte("summary")) || bytes.Contains(tag, []byte("snapshot"))) {
			ends[string(tag)] = i
		}
	}
}

// MayHoldSummary reports whether IsSummary may find one in a text, as it stands in a
// JSON string.
func MayHoldSummary(raw []byte) bool {
	raw = trim(raw)
	return bytes.Contains(raw, []byte("summary")) || bytes.Contains(raw, []byte("snapshot")) ||
		len(raw) > 0 && slices.ContainsFunc(harnessTexts[raw[0]], func(m textMark) bool { return m.summary && startsRaw(raw, m.start) })
}

// IsSummary reports whether a client has put a text in place of what was said
// before.
func IsSummary(text []byte) bool {
	if _, _, ok := summaryElement(text, true); ok {
		return true
	}
	text = trim(text)
	return len(text) > 0 && slices.ContainsFunc(harnessTexts[text[0]], func(m textMark) bool {
		return m.summary && begins(text, m.start) && (!m.whole || len(text) == len(m.start))
	})
}

// SummaryIn is the summary in a text: of a model, which may think aloud before
// it, or of a client, which may say around it what it is.
func SummaryIn(text string) string {
	if inner, _, ok := summaryElement([]byte(text), false); ok {
		return SummaryIn(string(inner)) // some put one into another
	}
	return strings.TrimSpace(text)
}

// ReadsLikeSummary reports whether an answer may be the summary that was asked
// for: it is in an element that says so, or has parts.
func ReadsLikeSummary(answer string) bool {
	if _, _, ok := summaryElement([]byte(answer), false); ok {
		return true
	}
	parts := 0
	for line := range strings.Lines(answer) {
		if partOf.MatchString(line) {
			parts++
		}
	}
	return parts >= 2
}

// partOf begins a heading or a point.
var partOf = regexp.MustCompile(`^\s*(#{1,6} |[-*•] |\d+[.)] |\*\*|[\p{L} ]{2,40}:\s*$)`)

const (
	// Instructions is the length, in bytes, from which a text that asks for a
	// summary is a client's: a person asks for one in a sentence.
	Instructions = 300

	// Instructed is how much of the start of such a text is looked at, in bytes.
	Instructed = 1200
)

// sumsUp finds a phrase in which a conversation is summed up.
var sumsUp = regexp.MustCompile(`(?i)(summar|compact|condens|hand-?off|checkpoint)[\p{L}-]*\s+([\p{L},-]+\s+){0,6}(conversation|session|context|history)\b|` +
	`\bcontext[.,:]?\s+([\p{L},-]+\s+){0,4}(summar|compact|condens|hand-?off|checkpoint)`)

// SumsUp reports whether a text asks for a summary of a conversation. start is how
// it begins, Instructed bytes where there are so many.
func SumsUp(start []byte) bool {
	// Most texts have none of these letters, and matching takes long.
	return slices.ContainsFunc(sumsUpWords, func(w []byte) bool { return bytes.Contains(start, w) }) && sumsUp.Match(start)
}

// sumsUpWords are in the words of sumsUp, however those begin.
var sumsUpWords = inBytes([]string{"mmar", "MMAR", "mpact", "MPACT", "ondens", "doff", "d-off", "kpoint"})
