package dialect

import (
	"bytes"
)

// Place finds out where the client says that it works: only where that client
// itself writes it (package place), never in a person's words, a
// tool's output or a file that the client quotes. program is the client, as package
// client names it. known is nil where prompts are short. Began and Chain go by what
// it has found.
func (c *Conversation) Place(program string, known Prompts) Place {
	moves := program == Codex
	s := c.stated(&c.prompt, known)
	if c.opening != nil {
		s.State(*c.opening)
	}
	p := s.Place(moves)
	c.began, c.moves = p, c.moves[:0]
	asked, answered := false, false
	for i := range c.Messages {
		m := &c.Messages[i]
		if !c.after(c.rawSize(m) + sizeOfMessage) {
			break // who asks sees that reading was stopped
		}
		answered = answered || asked && m.Role == RoleAssistant
		asked = asked || m.Person
		switch {
		case m.System:
			s.Merge(c.stated(m, known))
		case m.Role == RoleUser && c.marked(m):
			c.items(&s, i, program)
		default:
			continue
		}
		before := p
		p = s.Place(moves)
		c.went(i, before, p, answered, moves)
	}
	return p
}

// prompted is what a system prompt states. It depends on nothing else.
func (c *Conversation) prompted(m *Message) (s Statements) {
	if c.marked(m) {
		s.ReadPrompt(c.joined(m), c.after)
	}
	return s
}

// marked reports whether a place can stand in a message, before it is decoded.
func (c *Conversation) marked(m *Message) bool {
	if m.unmarked {
		return false
	}
	for _, s := range c.spans[m.from:m.to] {
		if Marked(c.body[s.Start:s.End], s.Unicode) {
			return true
		}
	}
	m.unmarked = true
	return false
}

// items adds the directories that a client states in user message i, where it
// writes one itself.
func (c *Conversation) items(s *Statements, i int, program string) {
	m := &c.Messages[i]
	at := Position{Opening: c.opens(i), Only: !m.Person}
	n := m.to - m.from
	for part := range n {
		// The client's own part comes last, after the person's and the files'.
		at.Last = part == n-1 && (n > 1 || m.Results)
		it, ok := ReadItem(c.part(m, part), at)
		switch {
		case !ok:
		case it.Of(program) || it.Tag != "" && c.names(it.Tag):
			s.State(it.Directory)
		case n > 1 && it.Directory != "":
			s.Doubt(it.Directory)
		}
	}
}

// part is the text of a part of a message, trimmed.
func (c *Conversation) part(m *Message, n int) []byte {
	s := c.spans[m.from+n]
	return trim(appendText(nil, c.body[s.Start:s.End]))
}

// opens reports whether message i is the first of a user.
func (c *Conversation) opens(i int) bool {
	for j := range i {
		if !c.Messages[j].System {
			return false
		}
	}
	return true
}

// names reports whether the client's prompts, which are read once, speak of a tag
// that it writes: another may send a file as a part.
func (c *Conversation) names(tag string) bool {
	if c.details == nil {
		has := c.holds(&c.prompt, tag)
		for i := 0; i < len(c.Messages) && !has; i++ {
			has = c.Messages[i].System && c.holds(&c.Messages[i], tag)
		}
		c.details = &has
	}
	return *c.details
}

func (c *Conversation) holds(m *Message, word string) bool {
	for n := range m.to - m.from {
		if bytes.Contains(c.part(m, n), []byte(word)) {
			return true
		}
	}
	return false
}

// Program is the client that the request is from: by its User-Agent, or, where
// that is a library's, by how its prompt begins.
func (c *Conversation) Program(agent []byte) Program {
	return ProgramOf(agent, func() [][]byte { return c.prompts(nil) })
}

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
func (c *Conversation) went(message int, from, to Place, answered, moves bool) {
	switch {
	case from == to:
	case !answered && (!moves || from == (Place{})):
		c.began = to
	default:
		c.moves = append(c.moves, move{message, to})
	}
}

// Began is where the conversation began, after Place.
func (c *Conversation) Began() Place { return c.began }
