package dialect

import (
	"bytes"
	"hash/maphash"
)

// Place determines the client's place. It reads only that client's own text, never a
// person's words, a tool's output or a file that the client quotes. program is the client's
// name in programs; known is nil if prompts are short. Began and Chain use the result.
func (c *Conversation) Place(program string, known Prompts) Place {
	moves := program == Codex
	s := c.stated(&c.prompt, known)
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
			s.merge(c.stated(m, known))
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

// Prompts remembers the statements of system prompts about a place: clients send the same
// long prompts with every request, and reading one takes longer than the rest of the work
// for the request.
type Prompts interface {
	// Prompt returns the statements of the prompt with a hash. The seed of the hash is
	// secret, so an attacker cannot construct a text with the hash of another.
	Prompt(hash uint64) (s Statements, ok bool)
	KeepPrompt(hash uint64, s Statements)
}

// maxStated bounds, in bytes, the remembered statements of one prompt.
const maxStated = 4 << 10

// promptSeed seeds the hashes of prompts: an attacker cannot construct a prompt with the hash of
// another person's.
var promptSeed = maphash.MakeSeed()

// stated returns the statements of a prompt; known is nil if prompts are short.
func (c *Conversation) stated(m *Message, known Prompts) (s Statements) {
	switch {
	case m.from == m.to:
		return s
	case known == nil:
		return c.prompted(m)
	}
	var h maphash.Hash
	h.SetSeed(promptSeed)
	for _, s := range c.spans[m.from:m.to] {
		_, _ = h.Write(c.body[s.Start:s.End]) // never fails
		_ = h.WriteByte('"')                  // an end mark, since no text in a body holds a bare quote
	}
	key := h.Sum64()
	s, ok := known.Prompt(key)
	if ok {
		return s
	}
	s = c.prompted(m)
	if c.Stopped() == NotStopped && s.Size() <= maxStated {
		known.KeepPrompt(key, s)
	}
	return s
}
