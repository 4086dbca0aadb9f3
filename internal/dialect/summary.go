package dialect

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// behindSummary returns the text after a summary with which a client has replaced earlier
// messages. The client may add more of its own text there, so only the text after the end
// of a known tag counts.
func behindSummary(text []byte, in within) (rest []byte, ok bool) {
	if !in.early() {
		return nil, false
	}
	_, behind, ok := summaryElement(text, true)
	if !ok {
		return nil, false
	}
	at := -1
	for tag := range harnessTags {
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

// summaryElement finds an element with a summary, from its first beginning to its last end,
// and returns its content and the text after it. If lines is true, the opening tag has to
// be a line of its own: within a line a person may mention one. Its time is linear in the
// text's size.
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
		from := i + 1 + len(tag) + 1 // after the tag's end
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

// summaryEnds returns the offset of the last end of each element with a name for summaries,
// by name.
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

// mayHoldSummary reports whether isSummary may find a summary in a text, given as the
// inside of a JSON string.
func mayHoldSummary(raw []byte) bool {
	raw = trim(raw)
	return bytes.Contains(raw, []byte("summary")) || bytes.Contains(raw, []byte("snapshot")) ||
		len(raw) > 0 && slices.ContainsFunc(harnessTexts[raw[0]], func(m textMark) bool {
			line, _, _ := strings.Cut(m.Start, "\n")
			return m.Summary && begins(raw, line)
		})
}

// isSummary reports whether a text is a summary with which a client has replaced earlier
// messages.
func isSummary(text []byte) bool {
	if _, _, ok := summaryElement(text, true); ok {
		return true
	}
	text = trim(text)
	return len(text) > 0 && slices.ContainsFunc(harnessTexts[text[0]], func(m textMark) bool {
		return m.Summary && begins(text, m.Start) && (!m.Whole || len(text) == len(m.Start))
	})
}

// SummaryIn returns the summary in a text, without a model's thoughts before it, or a
// client's text around it.
func SummaryIn(text string) string {
	if inner, _, ok := summaryElement([]byte(text), false); ok {
		return SummaryIn(string(inner)) // it may hold another summary
	}
	return strings.TrimSpace(text)
}

// ReadsLikeSummary reports whether an answer may be the requested summary: it has an
// element for summaries, or at least two headings or points.
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

// partOf matches the beginning of a heading or a point.
var partOf = regexp.MustCompile(`^\s*(#{1,6} |[-*•] |\d+[.)] |\*\*|[\p{L} ]{2,40}:\s*$)`)

const (
	// minInstructions is the minimum length, in bytes, of a client's text that asks for a
	// summary: a person asks in a sentence.
	minInstructions = 300

	// instructionsStart is the length of the start of such a text that the rules read, in
	// bytes.
	instructionsStart = 1200
)

// sumsUp matches a phrase that asks to sum up a conversation.
var sumsUp = regexp.MustCompile(`(?i)(summar|compact|condens|hand-?off|checkpoint)[\p{L}-]*\s+([\p{L},-]+\s+){0,6}(conversation|session|context|history)\b|` +
	`\bcontext[.,:]?\s+([\p{L},-]+\s+){0,4}(summar|compact|condens|hand-?off|checkpoint)`)

// asksToSumUp reports whether a text asks for a summary of a conversation. start holds its
// first instructionsStart bytes, or all of it.
func asksToSumUp(start []byte) bool {
	// Most texts have none of these letters, and matching takes long.
	return slices.ContainsFunc(sumsUpWords, func(w []byte) bool { return bytes.Contains(start, w) }) && sumsUp.Match(start)
}

// sumsUpWords are parts of words: each match of sumsUp holds one, whether or not it begins
// with a capital.
var sumsUpWords = inBytes([]string{"mmar", "MMAR", "mpact", "MPACT", "ondens", "doff", "d-off", "kpoint"})
