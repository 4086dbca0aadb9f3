package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Typed reports whether message i holds only words that a person typed. It relies on
// evidence in the structure of the request, and returns false if any is missing:
//   - One text of the message holds the words. No client wrote into that text, and no line
//     of it begins like pasted or attached text. Every other text is a known client's own.
//   - The message has no other content, such as a file, and no speaker's name.
//   - Its turn holds no other words of a person, no other speaker, no call of a tool and no
//     result, unless the client marks the words as sent while the model worked.
//
// A text that a program composed may still pass: only the text itself shows its origin.
func (c *Conversation) Typed(i int) bool {
	m := &c.Messages[i]
	if !m.Person || m.Mixed || m.name != 0 || !m.alone {
		return false
	}
	if isMarked := c.isMarked(m); isMarked || m.Results {
		return isMarked
	}
	for j := i - 1; j >= 0 && !c.ends(j); j-- {
		if !c.saysNothing(j) {
			return false
		}
	}
	for j := i + 1; j < len(c.Messages); j++ {
		switch {
		case !c.saysNothing(j):
			return false
		case c.ends(j):
			return true
		}
	}
	return true
}

// IsAmid reports whether message i follows results of tools alone, and holds only words.
func (c *Conversation) IsAmid(i int) bool {
	m := &c.Messages[i]
	return i > 0 && m.Person && !m.Mixed && !m.Results && m.name == 0 && m.alone && c.Messages[i-1].Results
}

// InChat reports whether the request may be one of a person's chat: a program without a chat
// gives its task in a prompt, and the text to work on as the message, or it begins or forms
// the answer.
func (c *Conversation) InChat(known bool) bool {
	if c.Format || c.Prefill() != "" {
		return false
	}
	var parts [maxParts][]byte
	return known || c.Tools || len(c.prompts(parts[:0])) == 0 && !slices.ContainsFunc(c.Messages, func(m Message) bool { return m.System })
}

// saysNothing reports whether message j adds only the model's words, or a known client's,
// to the turn of a person's message.
func (c *Conversation) saysNothing(j int) bool {
	m := &c.Messages[j]
	switch {
	case m.Silent:
		return true
	case m.name != 0 || m.Mixed || m.Calls || m.Results:
		return false
	case m.Role == RoleUser:
		return !m.Person && !m.frame
	}
	return m.Role == RoleAssistant || m.System || m.Role == RoleHeld
}

// roundOpen reports whether a round of tools is open after message m: tools were called,
// and the model has not answered in words since. open reports whether a round was open
// before.
//
// Clients put skills, reminders and files in and after the results of an open round, and a
// person may write there, too; see isTypedAmid. After a client's report of an interruption,
// all further words are the person's.
func (c *Conversation) roundOpen(m *Message, open bool) bool {
	switch {
	case m.Role == RoleUser:
		return (open || m.Results) && c.afterInterruption(m) < 0
	case m.Calls || m.Results:
		return true
	}
	return open && m.Role != RoleAssistant && m.Role != RoleHeld // some clients put an empty answer before new words
}

// isTypedAmid reports whether the words in user message i, in an open round of tools, are a
// person's. They are if the client says so, or if one text holds words and nothing else, as
// people type them: a short paragraph, no line of the round, no request for a chore, and no
// other content in the message. All else is the client's.
func (c *Conversation) isTypedAmid(i int) bool {
	m := &c.Messages[i]
	said := messagePart{Start: m.clean[:min(len(m.clean), startBytes)], Raw: m.clean, Decode: bytes.Clone}
	return c.isMarked(m) || m.alone && !m.Mixed && len(m.clean) < minInstructions && !bytes.Contains(m.clean, []byte("\n\n")) && !asksChore(said) && !c.inRound(m)
}

// IsLine reports whether message i is one line, as people type it.
func (c *Conversation) IsLine(i int) bool {
	text := c.Text(i)
	return len(text) < minInstructions && bytes.IndexByte(text, '\n') < 0
}

// isMarked reports whether the client marks words of a message as sent while the model worked.
func (c *Conversation) isMarked(m *Message) bool {
	return slices.ContainsFunc(c.spans[m.from:m.to], func(s Span) bool { return len(sentAmid(c.decoded(s))) > 0 })
}

// inRound reports whether the round of tools before message m holds the first line of its words.
func (c *Conversation) inRound(m *Message) bool {
	line, _, _ := bytes.Cut(m.clean, []byte{'\n'})
	quoted, _ := json.Marshal(string(line)) // never fails
	return !c.after(m.start) || bytes.Contains(c.body[c.Messages[c.Last+1].start:c.spans[m.to-1].Start], quoted[1:len(quoted)-1])
}

// answers reports whether message m holds an answer of the model. A reference counts: if the
// item that the provider holds is a call, its result follows.
func (m *Message) answers() bool {
	return m.Role == RoleHeld || m.Role == RoleAssistant && !m.Calls && (m.from < m.to || m.Mixed)
}

// afterInterruption returns the index in a message of the first text after the client's
// note that the person has interrupted the model, or -1.
func (c *Conversation) afterInterruption(m *Message) int {
	for n := m.to - 1; n >= m.from; n-- {
		raw := trimRaw(c.body[c.spans[n].Start:c.spans[n].End])
		if !slices.ContainsFunc(interruptions, func(s string) bool { return begins(raw, s) }) {
			continue
		}
		if _, by := wordsIn(c.decoded(c.spans[n]), within{c, len(c.Messages)}); by == byClient {
			return n + 1 - m.from
		}
	}
	return -1
}
