package dialect

import (
	"bytes"
	"regexp"
	"slices"
)

// settle determines the messages of the person, and the kind of the request. It returns
// false if that takes too much time or RAM.
func (c *Conversation) settle() bool {
	if !c.room(len(c.Messages) * sizeOfTurn) {
		return false
	}
	longest := 0 // size of the longest text to decode
	newest := len(c.Messages) - 1
	for newest >= 0 && !c.asks(newest) {
		newest--
	}
	c.answer = slices.IndexFunc(c.Messages, func(m Message) bool { return m.Role == RoleAssistant })
	if c.answer < 0 {
		c.answer = len(c.Messages)
	}
	framed, person, open := false, c.personsName(), false
	for i := range c.Messages {
		m := &c.Messages[i]
		longest = max(longest, c.decodedSize(m))
		round := open || m.Results
		open = c.roundOpen(m, open)
		if !c.settleMessage(i, newest, person, round) {
			return false
		}
		if framed = framed || m.frame; m.Person {
			c.Last, open = i, false
		}
	}
	if framed {
		c.settleFrames()
	}
	if !c.room(2*longest) || !c.InTime() {
		return false
	}
	if c.Kind = c.kind(); c.Kind != KindTurn {
		c.settleChore()
	}
	return true
}

// settleChore restores the quoted parts of the message that asks for a chore: they are the
// subject of the chore.
func (c *Conversation) settleChore() {
	if c.Newest < 0 || c.Last >= 0 && c.Last != c.Newest {
		return
	}
	if m := &c.Messages[c.Newest]; m.cleaned && (m.Person || m.frame) {
		c.settleWords(c.Newest, false, true)
		if m.Person = len(m.clean) > 0; m.Person {
			c.Last = c.Newest
		}
	}
}

// asks reports whether message i is a user's and holds no results of tools.
func (c *Conversation) asks(i int) bool {
	return c.Messages[i].Role == RoleUser && !c.Messages[i].Results
}

// settleMessage determines whether a person wrote message i, and the person's words in it.
// newest is the newest message that asks, person the hash of the person's name; round
// reports whether a round of tools was open at the beginning of the message.
func (c *Conversation) settleMessage(i, newest int, person uint32, round bool) bool {
	m := &c.Messages[i]
	m.Person, m.alone, m.cleaned, m.frame, m.clean = false, false, false, false, nil
	n := c.rawSize(m)
	if !c.after(n + sizeOfMessage) {
		return false
	}
	switch {
	case m.Role == RoleOther || m.from == m.to:
	case m.Role == RoleUser && (m.name != 0 && m.name != person || i < newest && c.asked(i) || c.answeredByClient(i)):
		m.cleaned = true
	case m.Role == RoleAssistant && !c.mayHoldElement(m):
	case !c.room(2 * n):
		return false
	case m.Role == RoleAssistant:
		if clean, whole := c.answered(m); !whole {
			m.clean, m.cleaned = clean, true
		}
	default:
		c.settleWords(i, round, false)
	}
	return true
}

// standBefore puts a block directly before a part of a message: the provider may cache the
// content before that part, such as a document.
func (c *Conversation) standBefore(m *Message, span int) {
	if s := c.spans[span]; m.Person && s.part > 0 {
		m.At = s.Start - int(s.part)
	}
}

// personsName returns the hash of the person's name: the first name in a user
// message. Speakers with other names are agents, or other people.
func (c *Conversation) personsName() uint32 {
	for i := range c.Messages {
		if m := &c.Messages[i]; m.Role == RoleUser && m.name != 0 {
			return m.name
		}
	}
	return 0
}

// settleFrames determines the author of the messages with unknown frames: the client, if
// another message of the turn holds none.
func (c *Conversation) settleFrames() {
	c.Last = -1
	for from := 0; from < len(c.Messages); {
		to, said := from, false
		for ; to < len(c.Messages) && (to == from || !c.ends(to-1)); to++ {
			said = said || c.Messages[to].Person && !c.Messages[to].frame
		}
		for ; from < to; from++ {
			m := &c.Messages[from]
			if m.frame && m.Person && said {
				m.Person, m.clean = false, nil
			}
			if m.Person {
				c.Last = from
			}
		}
	}
}

// ends reports whether message i is an answer that ends a turn: no call, no result and no
// item of the model follows.
func (c *Conversation) ends(i int) bool {
	if !c.Messages[i].answers() || i+1 == len(c.Messages) {
		return c.Messages[i].answers()
	}
	next := &c.Messages[i+1]
	return !next.Results && !next.Calls && (next.Role == RoleUser || next.Role == RoleAssistant || next.System)
}

// unanswered reports whether message i is a user's or the client's own, without results of
// tools: there is no answer between such messages.
func (c *Conversation) unanswered(i int) bool {
	return c.Messages[i].System || c.asks(i)
}

// settleWords determines the person's words in user message i, whether they are alone, and
// the position of a block.
func (c *Conversation) settleWords(i int, round, chore bool) {
	m := &c.Messages[i]
	m.cleaned = true
	var fewTexts [maxParts][]byte
	var fewOrigins [maxParts]origin
	texts, origins := fewTexts[:0], fewOrigins[:0]
	for _, s := range c.spans[m.from:m.to] {
		texts, origins = append(texts, c.decoded(s)), append(origins, byPerson)
	}
	m.alone = !withoutFiles(texts)
	command, frame := commandIn(texts), lastFrameOfWords(texts)
	for n := range texts {
		if n == command {
			texts[n], origins[n] = commandWords(texts[n]), byBoth
			continue
		}
		origins[n] = byClient // also a file after its command, or before the words' frame
		if (command < 0 || n < command) && n >= frame {
			texts[n], origins[n] = wordsIn(texts[n], within{c, i})
		}
	}
	ended := 0 // number of parts up to an interruption; -1 without one
	if round {
		ended = c.afterInterruption(m)
	}
	for n := range ended {
		origins[n] = byClient
	}
	c.settleDocuments(m, origins)
	c.settleAttached(m, texts, origins)
	if !chore {
		settleQuotes(texts, origins)
	}
	of := slices.Min(origins)
	m.frame = slices.Contains(origins, inUnknownFrame)
	first, said := -1, texts[:0]
	for n, o := range origins {
		m.alone = m.alone && (o == byClient || o == byPerson && first < 0)
		if o > of || o == byClient {
			continue
		}
		if first < 0 {
			first = n
		}
		said = append(said, texts[n])
	}
	if m.clean = nil; len(said) == 1 {
		m.clean = said[0]
	} else {
		m.clean = bytes.Join(said, []byte{'\n'})
	}
	m.Person = len(m.clean) > 0 && of != inUnknownFrame
	m.alone = m.alone && m.Person
	if ended < 0 && m.Person && !c.isTypedAmid(i) {
		first, m.Person, m.clean = -1, false, nil
	}
	if first >= 0 {
		c.standBefore(m, m.from+first)
	}
}

// lastFrameOfWords returns the last part that begins with an element around the person's
// words, or 0. A file in an earlier part may hold such an element, too.
func lastFrameOfWords(texts [][]byte) int {
	for n := len(texts) - 1; n > 0; n-- {
		if tag := tagAt(trim(texts[n])); tag != nil && slices.Contains(wordsWithin, string(tag)) {
			return n
		}
	}
	return 0
}

// settleQuotes removes the quotations in the parts of a message. A part that is only a
// label introduces the parts after it.
func settleQuotes(texts [][]byte, origins []origin) {
	for n, o := range origins {
		if o > byBoth {
			continue
		}
		switch words, quotes := ownWords(texts[n]); {
		case endsWith(texts[n], ":：") && bytes.IndexByte(texts[n], '\n') < 0 && slices.ContainsFunc(origins[n+1:], func(o origin) bool { return o < inUnknownFrame }):
			for k := range origins[n:] {
				origins[n+k] = max(origins[n+k], inUnknownFrame)
			}
		case len(words) == 0:
			origins[n] = inUnknownFrame
		case quotes:
			texts[n], origins[n] = words, byBoth
		}
	}
}

// settleDocuments finds the parts that are documents: if the client lets the provider cache
// a part, and more words follow, those words ask about that part.
func (c *Conversation) settleDocuments(m *Message, origins []origin) {
	asked := false
	for n := len(origins) - 1; n >= 0; n-- {
		if origins[n] == byClient {
			continue
		}
		if asked && c.spans[m.from+n].cached {
			for k := range origins[:n+1] {
				origins[k] = byClient
			}
			m.alone = false
			return
		}
		asked = true
	}
}

// settleAttached finds the texts that a client adds to a picture or a file: between its report
// of a tool and the words, or after the words; and a label in brackets after the words.
func (c *Conversation) settleAttached(m *Message, texts [][]byte, origins []origin) {
	said, attached, last := false, false, len(origins)-1
	for last > 0 && origins[last] == byClient {
		last--
	}
	for n := range origins {
		raw := trimRaw(c.body[c.spans[m.from+n].Start:c.spans[m.from+n].End])
		attached = attached || origins[n] == byClient && begins(raw, attaching)
		switch {
		case origins[n] == byClient:
		case attached && (said || n < last), said && m.Mixed && label.Match(texts[n]):
			origins[n] = byClient
		default:
			said = true
		}
	}
}

// attaching begins a client's report of the tool with which it has read a file.
const attaching = "Called the Read tool with the following input: {"

// label matches the name of a picture.
var label = regexp.MustCompile(`^\[[^\[\]\n:]{1,24}: [^\[\]\n]+\]$`)

// answeredByClient reports whether message i opens the conversation and the client itself
// has answered it: then it is a summary of earlier messages.
func (c *Conversation) answeredByClient(i int) bool {
	if c.Last >= 0 || i+1 == len(c.Messages) || c.Messages[i+1].Role != RoleAssistant {
		return false
	}
	m := &c.Messages[i+1]
	return m.from < m.to && isClientsAnswer(trim(c.start(m)))
}

// blank reports whether a message has no text.
func (c *Conversation) blank(m *Message) bool {
	return !slices.ContainsFunc(c.spans[m.from:m.to], func(s Span) bool { return len(trimRaw(c.body[s.Start:s.End])) > 0 })
}

// mayHoldElement reports, without decoding it, whether a message may hold an element.
func (c *Conversation) mayHoldElement(m *Message) bool {
	return slices.ContainsFunc(c.spans[m.from:m.to], func(s Span) bool {
		raw := c.body[s.Start:s.End]
		return bytes.IndexByte(raw, '<') >= 0 || s.Unicode && bytes.Contains(raw, []byte(`\u00`))
	})
}

// answer returns the model's words in a part of a message.
func answer(text []byte) []byte {
	return withoutElement(withoutElement(text, "think"), "graphiti_memory")
}

// within is the message of a text.
type within struct {
	c       *Conversation
	message int
}

// early reports whether the message comes before the model's first answer.
func (w within) early() bool { return w.message <= w.c.answer }

// prompted reports whether the system prompt holds this text.
func (w within) prompted(text string) bool {
	holds := func(m *Message) bool {
		return slices.ContainsFunc(w.c.spans[m.from:m.to], func(s Span) bool { return bytes.Contains(w.c.body[s.Start:s.End], []byte(text)) })
	}
	return holds(&w.c.prompt) || slices.ContainsFunc(w.c.Messages[:w.message], func(m Message) bool { return m.System && holds(&m) })
}
