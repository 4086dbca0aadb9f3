package dialect

import (
	"bytes"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/client"
)

// mayHoldHarness reports whether a part of a message, as it stands in a JSON
// string, needs a closer look. escapes says that characters may be written as
// \u003c.
func mayHoldHarness(raw []byte, role Role, escapes bool) bool {
	bracket := bytes.IndexByte(raw, '<') >= 0 || escapes && bytes.Contains(raw, []byte(`\u00`))
	return bracket || role == RoleUser && client.MayHold(trimRaw(raw))
}

// answer is what the model said in a part of a message.
func answer(text []byte) []byte {
	return client.WithoutElement(client.WithoutElement(text, "think"), "graphiti_memory")
}

// within is a conversation as the rules for one of its messages see it.
type within struct {
	c       *Conversation
	message int
}

// After implements client.Conversation.
func (w within) After(n int) bool { return w.c.after(n) }

// Early implements client.Conversation.
func (w within) Early() bool { return w.message <= w.c.answer }

// Opens implements client.Conversation.
func (w within) Opens(prompt string) bool {
	holds := func(m *Message) bool {
		return slices.ContainsFunc(w.c.spans[m.from:m.to], func(s Span) bool { return bytes.Contains(w.c.body[s.Start:s.End], []byte(prompt)) })
	}
	found := holds(&w.c.prompt)
	for i := range w.message {
		m := &w.c.Messages[i]
		if m.Role == RoleAssistant {
			return false
		}
		found = found || m.System && holds(m)
	}
	return found
}
