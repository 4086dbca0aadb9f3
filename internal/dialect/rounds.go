package dialect

import (
	"slices"
)

// AnswerTo returns the model's last words after message i and before the person's next
// message; nil if there are none, or if a model had asked. Answers to a client's own
// messages do not count: some clients write those themselves. ended is false if the person
// spoke again before the model had answered in words.
func (c *Conversation) AnswerTo(i int) (text []byte, ended bool) {
	if c.spawned {
		return nil, true
	}
	for j := i + 1; j < len(c.Messages) && !c.Messages[j].Person && (!ended || !c.asks(j)); j++ {
		if c.isSummary(j) {
			return nil, true // message i is much older
		}
		if c.Messages[j].Role == RoleAssistant {
			if said := c.Text(j); len(said) > 0 {
				text, ended = said, ended || c.ends(j)
			}
		}
	}
	return text, ended
}

// Prepared reports whether the client has put an exchange of its own before the person's
// first words, such as an example, or a summary with an answer. Then the client may have
// written more of the history.
func (c *Conversation) Prepared() bool {
	asked := false
	for i := range c.Messages {
		switch m := &c.Messages[i]; {
		case m.Person:
			return false
		case m.Role == RoleAssistant && asked:
			return true
		}
		asked = asked || c.asks(i) && c.clients(i)
	}
	return false
}

// Answers yields the model's answers to a person, newest first. A model's message before
// the person's first one is a client's greeting, and does not count.
func (c *Conversation) Answers(yield func(i int) bool) {
	first := slices.IndexFunc(c.Messages, func(m Message) bool { return m.Person })
	if first < 0 {
		return
	}
	for i := len(c.Messages) - 1; i > first; i-- {
		if c.Messages[i].Role == RoleAssistant && !yield(i) {
			return
		}
	}
}
