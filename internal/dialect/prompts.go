package dialect

import "hash/maphash"

// Prompts remember what system prompts state of a place: clients send the same
// long ones with every request, and reading one takes longer than all else that
// is done for it.
type Prompts interface {
	// Prompt is what the prompt with a hash states. The hash has a seed that nobody
	// knows: no text can be made up that is taken for another.
	Prompt(hash uint64) (s Statements, ok bool)
	KeepPrompt(hash uint64, s Statements)
}

// maxStated bounds, in bytes, what is remembered of one.
const maxStated = 4 << 10

// stated is what a prompt states; known is nil for one that is short.
func (c *Conversation) stated(m *Message, known Prompts) (s Statements) {
	switch {
	case m.from == m.to:
		return s
	case known == nil:
		return c.prompted(m)
	}
	var h maphash.Hash
	h.SetSeed(rawSeed)
	for _, s := range c.spans[m.from:m.to] {
		_, _ = h.Write(c.body[s.Start:s.End]) // which never fails
		_ = h.WriteByte('"')                  // which no text holds as it stands in a body
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
