package dialect

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/client"
)

// Kind says what a request is for.
type Kind = client.Kind

// The kinds of requests. All but KindTurn are forwarded without new recall
// and are not kept.
const (
	KindTurn    = client.Turn    // a person's turn, or a tool round of one
	KindTitle   = client.Title   // a title, tags or follow-ups are asked for
	KindSummary = client.Summary // the client compacts its history
	KindProbe   = client.Probe   // quota, topic, autocompletion, choice of tools
	KindMachine = client.Machine // no person wrote the newest user message
)

// kind finds out what the request is for, by its words.
func (c *Conversation) kind() Kind {
	var system [][]byte
	for i := c.prompt.from; i < min(c.prompt.to, c.prompt.from+maxParts); i++ {
		system = append(system, trim(c.startOf(c.spans[i])))
	}
	if len(c.Messages) > 0 && system == nil {
		if m := &c.Messages[0]; m.Role == RoleOther && m.from < m.to {
			system = append(system, trim(c.start(m)))
		}
	}
	for i := len(c.Messages) - 1; i >= 0 && c.Newest < 0; i-- {
		if m := &c.Messages[i]; m.Role == RoleUser && (m.Person || !m.Results) {
			c.Newest = i
		}
	}
	var said []client.Part
	if c.Newest >= 0 {
		m := &c.Messages[c.Newest]
		for n := m.from; n < m.to; n++ {
			if n == m.from+maxParts && m.to-n > maxParts {
				n = m.to - maxParts // a client's own text is the first or the last
			}
			said = append(said, c.toldBy(c.spans[n]))
		}
	}
	kind, agent := client.KindOf(system, said, c.Tools)
	c.agent = agent
	if kind == KindTurn && c.Newest > c.Last && c.Newest == len(c.Messages)-1 && c.Last >= 0 {
		return KindMachine
	}
	return kind
}

// asked reports whether message i, of the history, is how a client asked for a
// chore: then no person wrote it.
func (c *Conversation) asked(i int) bool {
	m := &c.Messages[i]
	for _, s := range c.spans[m.from:min(m.to, m.from+maxParts)] {
		raw := trimRaw(c.body[s.Start:s.End])
		if len(raw) > 0 && client.MayAsk(raw[0]) && client.Asks(c.toldBy(s)) {
			return true
		}
	}
	return false
}

// toldBy is a part of a message as rules look at it.
func (c *Conversation) toldBy(s Span) client.Part {
	return client.Part{Start: trim(c.startOf(s)), Text: func() []byte { return appendText(nil, c.body[s.Start:s.End]) }}
}

// start is the beginning of a message's text.
func (c *Conversation) start(m *Message) []byte {
	if m.from == m.to {
		return nil
	}
	return c.startOf(c.spans[m.from])
}

// maxParts bounds the parts of a prompt, and of either end of a message, that are
// looked at.
const maxParts = 8

func (c *Conversation) startOf(s Span) []byte {
	raw := c.body[s.Start:s.End]
	if !s.Escaped {
		return raw[:min(len(raw), client.Near)]
	}
	if len(raw) > client.Near {
		raw = raw[:client.Near]
		// Do not cut an escape in two.
		if i := bytes.LastIndexByte(raw, '\\'); i >= 0 && i > client.Near-12 {
			raw = raw[:i-backslashes(raw[:i])]
		}
	}
	return appendText(nil, raw)
}
