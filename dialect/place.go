package dialect

import "github.com/graphiti-proxy/graphiti-proxy/dialect/place"

// Place finds out where the client says that it works: only where that client
// itself writes it (package place), never in a person's words, a
// tool's output or a file that the client quotes. codex says that the client is
// Codex. Began and Chain go by what it has found.
func (c *Conversation) Place(codex bool) place.Place {
	s := prompts.stated(c, &c.prompt)
	if c.opening != nil {
		s.State(*c.opening)
	}
	p := s.Place(codex)
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
			s.Merge(prompts.stated(c, m))
		case m.Role == RoleUser && c.marked(m):
			c.item(&s, i, codex)
		default:
			continue
		}
		before := p
		p = s.Place(codex)
		c.went(i, before, p, answered, codex)
	}
	return p
}

// prompted is what a system prompt states. It depends on nothing else.
func (c *Conversation) prompted(m *Message) (s place.Statements) {
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
		if place.Marked(c.body[s.Start:s.End], s.Unicode) {
			return true
		}
	}
	m.unmarked = true
	return false
}

// item adds the directory that a client states in user message i, where it
// writes one itself.
func (c *Conversation) item(s *place.Statements, i int, codex bool) {
	m := &c.Messages[i]
	n := m.to - m.from
	switch {
	case n == 0:
	case codex:
		for part := range n {
			if dir, ok := place.Codex(c.part(m, part)); ok && !m.Person {
				s.State(dir)
			}
		}
	case c.isQwenSetup(i):
		s.State(place.Qwen(c.part(m, 0)))
	case n > 1 || m.Results:
		// The client's own part comes last, after the person's and the files'.
		dir, several := place.Details(c.part(m, n-1))
		switch {
		case dir == "":
		case !c.hasDetails():
			s.Doubt(dir)
		case several:
			s.State("")
		default:
			s.State(dir)
		}
	}
}

// part is the text of a part of a message, trimmed.
func (c *Conversation) part(m *Message, n int) []byte {
	s := c.spans[m.from+n]
	return trim(appendText(nil, c.body[s.Start:s.End]))
}

// isQwenSetup reports whether message i is the one with which Qwen Code begins
// each conversation, and which it answers itself.
func (c *Conversation) isQwenSetup(i int) bool {
	for j := range i {
		if !c.Messages[j].System {
			return false
		}
	}
	answered := i+1 < len(c.Messages) && c.Messages[i+1].Role == RoleAssistant
	return answered && !c.Messages[i].Person &&
		place.IsQwenOpening(c.part(&c.Messages[i], 0))
}

// hasDetails reports whether the client is one that ends a person's messages
// with its environment: another may send a file as a part. Its prompts, which
// tell, are read once.
func (c *Conversation) hasDetails() bool {
	if c.details == nil {
		has := c.isDetailed(&c.prompt)
		for i := 0; i < len(c.Messages) && !has; i++ {
			has = c.Messages[i].System && c.isDetailed(&c.Messages[i])
		}
		c.details = &has
	}
	return *c.details
}

func (c *Conversation) isDetailed(m *Message) bool {
	for n := range m.to - m.from {
		if place.EndsWithDetails(c.part(m, n)) {
			return true
		}
	}
	return false
}

// move is a message that says that the conversation goes on elsewhere.
type move struct {
	message int
	to      place.Place
}

// went notes what a message says of the place. What is said before the first
// answer is where the conversation began, though it may stand behind the
// person's words; of Codex, which says it before them, the first counts. What
// comes later moves the conversation from there on.
// So what is known of a message depends on nothing but how the conversation
// went up to its answer, and stays when the client goes elsewhere.
func (c *Conversation) went(message int, from, to place.Place, answered, codex bool) {
	switch {
	case from == to:
	case !answered && (!codex || from == (place.Place{})):
		c.began = to
	default:
		c.moves = append(c.moves, move{message, to})
	}
}

// Began is where the conversation began, after Place.
func (c *Conversation) Began() place.Place { return c.began }
