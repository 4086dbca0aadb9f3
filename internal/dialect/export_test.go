package dialect

import "unsafe"

// Joined returns a message's whole text.
func (c *Conversation) Joined(i int) string { return string(c.joined(&c.Messages[i])) }

// Holds reports whether a message has a copy of its text outside of the body.
func (m *Message) Holds() bool { return m.clean != nil }

// Sizes returns the sizes of a message and of a text, and the counted size of each.
func Sizes() (message, span uintptr, counted [2]uintptr) {
	return unsafe.Sizeof(Message{}), unsafe.Sizeof(Span{}), [2]uintptr{sizeOfMessage, sizeOfSpan}
}

// AppendJSON appends text as the inside of a JSON string.
func AppendJSON(dst []byte, text string) []byte { return appendJSON(dst, text) }

// Internals for the tests of rules.
var (
	IDBehind        = idBehind
	MayBeTranscript = mayBeTranscript
	TranscriptIn    = transcriptIn
)
