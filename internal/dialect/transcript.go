package dialect

import (
	"bytes"
	"regexp"
)

// Transcript is a conversation in the text of a message.
type Transcript struct {
	Said   [][]byte // the person's entries, in order
	Answer [][]byte // the model's words and actions, in order

	// Kind is the kind of request that the surrounding words express: KindTitle,
	// KindSummary, or KindTurn if a person may have pasted the transcript.
	Kind Kind
}

const (
	maxTranscript = 1 << 20 // bytes that are read of a text
	maxEntries    = 4096
)

var (
	// speaker matches the beginning of a transcript's entry: [User]: or **User:** or ###
	// User: or User: or <user>.
	speaker = regexp.MustCompile(`(?mi)^[ \t]*(?:\[(user|human|assistant|agent|ai|model|tool|system)[^\]\n]{0,30}\]:?|(?:#{1,4}[ \t]+|\*\*)?(user|human|assistant|agent|ai|model|tool|system)(?:\*\*)?:(?:\*\*)?|<(user|human|assistant|ai)>)`)

	// shut matches the end of an element around a transcript or an entry.
	shut = regexp.MustCompile(`(?m)^[ \t]*</[a-zA-Z_-]+>`)

	// aims are the purposes for which clients send a transcript.
	aims = []struct {
		kind  Kind
		words *regexp.Regexp
	}{
		{KindSummary, regexp.MustCompile(`(?i)summar|compact|condens|handoff|hand-off|continuation|checkpoint`)},
		{KindTitle, regexp.MustCompile(`(?i)\btitle\b`)},
	}
)

// mayBeTranscript reports whether a text, given as the inside of a JSON string, may hold a
// transcript.
func mayBeTranscript(raw []byte) bool {
	for _, s := range []string{"ssistant", "SSISTANT", "gent]", "gent:", "odel]", "odel:", "AI:", "AI]"} {
		if bytes.Contains(raw, []byte(s)) {
			return true
		}
	}
	return false
}

// transcriptIn reads the transcript in a text; the zero Transcript if there is none. system
// holds the beginnings of the parts of the request's prompt.
func transcriptIn(system [][]byte, text []byte) (t Transcript) {
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
		if t.Kind == KindTurn && a.words.Match(around) {
			t.Kind = a.kind
		}
	}
	return t
}

// submatch returns the first group that took part in a match.
func submatch(text []byte, m []int) []byte {
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			return text[m[i]:m[i+1]]
		}
	}
	return nil
}
