package client

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Transcript is a conversation that a message holds as its text.
type Transcript struct {
	Said   [][]byte // by the person, in its order
	Answer [][]byte // by the model, or what it did, in its order

	// Kind is what is asked for, as the words around it tell: Title, Summary, or
	// Turn where a person may have pasted it.
	Kind Kind
}

const (
	maxTranscript = 1 << 20 // bytes of a text that are looked at
	maxEntries    = 4096
)

var (
	// speaker begins what somebody says in a transcript: [User]: or **User:** or
	// ### User: or User: or <user>.
	speaker = regexp.MustCompile(`(?mi)^[ \t]*(?:\[(user|human|assistant|agent|ai|model|tool|system)[^\]\n]{0,30}\]:?|(?:#{1,4}[ \t]+|\*\*)?(user|human|assistant|agent|ai|model|tool|system)(?:\*\*)?:(?:\*\*)?|<(user|human|assistant|ai)>)`)

	// shut ends what holds a transcript, or one of its entries.
	shut = regexp.MustCompile(`(?m)^[ \t]*</[a-zA-Z_-]+>`)

	// aims are what clients want of their own transcripts.
	aims = []struct {
		kind  Kind
		words *regexp.Regexp
	}{
		{Summary, regexp.MustCompile(`(?i)summar|compact|condens|handoff|hand-off|continuation|checkpoint`)},
		{Title, regexp.MustCompile(`(?i)\btitle\b`)},
	}
)

// MayBeTranscript reports whether a text, as it stands in a JSON string, may hold
// a transcript.
func MayBeTranscript(raw []byte) bool {
	for _, s := range []string{"ssistant", "SSISTANT", "gent]", "gent:", "odel]", "odel:", "AI:", "AI]"} {
		if bytes.Contains(raw, []byte(s)) {
			return true
		}
	}
	return false
}

// TranscriptIn reads the transcript that a text holds; system is how the
// parts of the request's prompt start.
func TranscriptIn(system [][]byte, text []byte) (t Transcript) {
	text = text[:min(len(text), maxTranscript)]
	marks := speaker.FindAllSubmatchIndex(text, maxEntries)
	if len(marks) < 2 {
		return t
	}
	around := append([]byte(nil), text[:marks[0][0]]...)
	for n, m := range marks {
		end := len(text)
		if n+1 < len(marks) {
			end = marks[n+1][0]
		}
		entry := text[m[1]:end]
		if i := shut.FindIndex(entry); i != nil {
			around = append(append(around, '\n'), entry[i[1]:]...)
			entry = entry[:i[0]]
		}
		entry = trim(entry)
		switch who := bytes.ToLower(submatch(text, m)); {
		case len(entry) == 0:
		case string(who) == "user" || string(who) == "human":
			t.Said = append(t.Said, entry)
		case string(who) != "tool" && string(who) != "system":
			t.Answer = append(t.Answer, entry)
		}
	}
	if len(t.Said) == 0 || len(t.Answer) == 0 {
		return Transcript{}
	}
	for _, s := range system {
		around = append(append(around, '\n'), s...)
	}
	for _, a := range aims {
		if t.Kind == Turn && a.words.Match(around) {
			t.Kind = a.kind
		}
	}
	return t
}

// submatch is the group of a match that is there.
func submatch(text []byte, m []int) []byte {
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			return text[m[i]:m[i+1]]
		}
	}
	return nil
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
