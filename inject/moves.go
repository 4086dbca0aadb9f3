package inject

import "slices"

// move is a message that says that the conversation goes on elsewhere.
type move struct {
	message int
	to      Place
}

// went notes what a message says of the place. What is said before the first
// answer is where the conversation began, though it may stand behind the
// person's words; of Codex, which says it before them, the first counts. What
// comes later moves the conversation from there on.
// So what is known of a message depends on nothing but how the conversation
// went up to its answer, and stays when the client goes elsewhere.
func (c *Conversation) went(message int, from, to Place, answered, codex bool) {
	switch {
	case from == to:
	case !answered && (!codex || from == (Place{})):
		c.began = to
	default:
		c.moves = append(c.moves, move{message, to})
	}
}

// Began is where the conversation began, after Place.
func (c *Conversation) Began() Place { return c.began }

// Answers are the messages of the model that answer a person, the newest first.
// What stands before the first message of a person answers nobody: clients
// begin all their conversations with the same greeting.
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
