package dialect

import (
	"bytes"
	"regexp"
)

// Transcript is a conversation that a message holds as its text.
type Transcript struct {
	Said   [][]byte // by the person, in its order
	Answer [][]byte // by the model, or what it did, in its order

	// Kind is what is asked for, as the words around it tell: KindTitle, KindSummary, or
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
		{KindSummary, regexp.MustCompile(`(?i)summar|compact|condens|handoff|hand-off|continuation|checkpoint`)},
		{KindTitle, regexp.MustCompile(`(?i)\btitle\b`)},
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
		if t.Kind == KindTurn && a.words.Match(around) {
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
