package dialect

import "unsafe"

// Joined is a message's whole text.
func (c *Conversation) Joined(i int) string { return string(c.joined(&c.Messages[i])) }

// Holds reports whether a message's text is held apart from the body.
func (m *Message) Holds() bool { return m.clean != nil }

// Sizes are those of a message and of a text, and what is counted for them.
func Sizes() (message, span uintptr, counted [2]uintptr) {
	return unsafe.Sizeof(Message{}), unsafe.Sizeof(Span{}), [2]uintptr{sizeOfMessage, sizeOfSpan}
}

// AppendJSON appends text as the inside of a JSON string.
func AppendJSON(dst []byte, text string) []byte { return appendJSON(dst, text) }

// Chore is a rule by which a client's own requests are recognised.
type Chore struct {
	Client, User, Then string
	Kind               Kind
}

// Chores are the rules.
func Chores() (all []Chore) {
	for _, ch := range chores {
		all = append(all, Chore{ch.client, ch.user, ch.then, ch.kind})
	}
	return all
}

// KindBy is what a request is for where there is but one rule.
func (c *Conversation) KindBy(rule int) Kind {
	rest := chores
	defer func() { chores = rest }()
	chores = []chore{rest[rule]}
	return c.kind()
}
