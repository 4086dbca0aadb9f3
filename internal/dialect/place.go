package dialect

import "bytes"

// Place determines the client's place. It reads only that client's own text, never a
// person's words, a tool's output or a file that the client quotes. program is the client's
// name in programs. Began and Chain use the result.
func (c *Conversation) Place(program string) Place {
	moves := program == Codex
	s := c.prompted(&c.prompt)
	if o := c.opening; o != nil && (o.client == "" || o.client == program) {
		s.state(o.directory)
	}
	p := s.place(moves)
	c.began, c.moves = p, c.moves[:0]
	asked, answered := false, false
	for i := range c.Messages {
		m := &c.Messages[i]
		if !c.after(c.rawSize(m) + sizeOfMessage) {
			break // Stopped returns the reason
		}
		answered = answered || asked && m.Role == RoleAssistant
		asked = asked || m.Person
		switch {
		case m.System:
			s.merge(c.prompted(m))
		case m.Role == RoleUser && c.marked(m):
			c.items(&s, i, program)
		default:
			continue
		}
		before := p
		p = s.place(moves)
		c.went(i, before, p, answered, moves)
	}
	return p
}

// prompted returns the statements of a system prompt. It depends on that prompt alone.
func (c *Conversation) prompted(m *Message) (s Statements) {
	if c.marked(m) {
		s.readPrompt(c.joined(m), c.after)
	}
	return s
}

// marked reports, without decoding it, whether a message may state a place.
func (c *Conversation) marked(m *Message) bool {
	if m.noPlace {
		return false
	}
	for _, s := range c.spans[m.from:m.to] {
		if mayStatePlace(c.body[s.Start:s.End], s.Unicode) {
			return true
		}
	}
	m.noPlace = true
	return false
}

// items adds the directories in the client's own texts in user message i.
func (c *Conversation) items(s *Statements, i int, program string) {
	m := &c.Messages[i]
	at := position{Opening: c.opens(i), Only: !m.Person}
	n := m.to - m.from
	for part := range n {
		// The client's own part comes last, after the person's and the files'.
		at.Last = part == n-1 && (n > 1 || m.Results)
		it, ok := readItem(c.part(m, part), at)
		switch {
		case !ok:
		case it.of(program) || it.Tag != "" && c.names(it.Tag):
			s.state(it.Directory)
		case n > 1 && it.Directory != "":
			s.doubt(it.Directory)
		}
	}
}

// part returns the trimmed text of a part of a message.
func (c *Conversation) part(m *Message, n int) []byte {
	s := c.spans[m.from+n]
	return trim(appendText(nil, c.body[s.Start:s.End]))
}

// opens reports whether message i comes before the first answer. There may be several such
// messages: a file that the person names comes before the client's own texts.
func (c *Conversation) opens(i int) bool { return i < c.answer }

// names reports whether the client's prompts name the tag of an item: another client may
// send a file with that tag as a part. It reads the prompts once.
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

// move is a message with which the conversation moves to another place.
type move struct {
	message int
	to      Place
}

// went records that a message states another place. A statement before the first answer,
// even after the person's words, is the beginning of the conversation; Codex states it
// before them, and only the first one counts. A later statement moves the conversation from
// there on. So a message's place depends only on the conversation up to its answer, and is
// unchanged by later moves of the client.
func (c *Conversation) went(message int, from, to Place, answered, moves bool) {
	switch {
	case from == to:
	case !answered && (!moves || from == (Place{})):
		c.began = to
	default:
		c.moves = append(c.moves, move{message, to})
	}
}

// Began returns the first place of the conversation, as found by Place.
func (c *Conversation) Began() Place { return c.began }
