package dialect

import (
	"github.com/graphiti-proxy/graphiti-proxy/dialect/client"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/place"
)

// Role is who a message is from, over all dialects.
type Role uint8

// The roles that matter here; everything else (system, developer, tool
// results, reasoning) is RoleOther.
const (
	RoleOther Role = iota
	RoleUser
	RoleAssistant
)

// Message is one message of a conversation.
type Message struct {
	Role Role

	// Person is true for a user message in which something is left that a
	// person wrote, after the text of harnesses was taken out.
	Person bool

	System   bool // the client speaks for itself
	Results  bool // it holds results of tools
	cleaned  bool // what a harness put there was taken out
	whole    bool // a harness had put nothing there
	unmarked bool // no place is stated in it

	from, to int    // its texts, in Conversation.spans
	clean    []byte // the text, where it is not simply that of the spans, or was asked for

	At   int  // offset in the body where a block is inserted
	Form Form // how a block is written there
}

// Form is how a block is written into a message: other than the two here, the
// JSON of a part up to the block, which ends with the part's string.
type Form string

// The forms that all dialects have.
const (
	FormNone   Form = ""  // no block can stand there
	FormString Form = `"` // at the beginning of a JSON string
)

// Conversation is what a request body says, as far as memory is concerned. It
// is reused from request to request: Parse resets it.
type Conversation struct {
	Messages []Message
	Model    []byte // as it stands in the body
	Tools    bool   // tools are offered

	// Last is the index of the newest message that a person wrote, or -1.
	Last int

	// Newest is the index of the newest user message, whoever wrote it, or -1.
	Newest int

	// Kind says whether this request is a turn of a person, or a chore.
	Kind Kind

	body    []byte
	prompt  Message          // what the client says for itself beside the messages
	fields  [fieldCount]Span // JSON values
	refs    []Span           // the ids of items that the provider holds, JSON strings
	began   place.Place      // where the conversation began, as Place has found
	moves   []move           // and where it went
	spans   []Span
	agent   bool    // a subagent speaks, as its system prompt says
	spawned bool    // it is a subagent's thread: a model asked what was asked before
	details *bool   // what hasDetails found; nil: it was not asked
	runOn   bool    // see Parser.RunOn
	opening *string // see Parser.States
	scratch []byte  // for decoding what is not kept
	inserts []byte  // their texts

	from    *Checkpoint // where the reading began; nil: at the beginning
	known   int         // messages whose fingerprints it has
	track   *tracker    // where it has got to, for the next checkpoint
	tracked bool        // one is wanted

	limits  Limits // of reading the body
	stopped Stop   // why it was given up
	worked  int    // bytes since the clock was looked at
}

// Reset takes everything of a body out of c.
func (c *Conversation) Reset() {
	if c.tracked {
		*c.track = tracker{} // which refers to the body
	}
	c.limits, c.from, c.tracked = Limits{}, nil, false
	c.reset(nil)
}

// reset makes c ready for another body.
func (c *Conversation) reset(body []byte) {
	clear(c.Messages) // which may hold large texts
	*c = Conversation{Messages: c.Messages[:0], refs: c.refs[:0], moves: c.moves[:0], spans: c.spans[:0], scratch: c.scratch, inserts: c.inserts[:0], Last: -1, Newest: -1, body: body, from: c.from, track: c.track, tracked: c.tracked, limits: c.limits}
}

// Text is what message i says: its text parts joined by line feeds, without
// what a harness put there, trimmed.
func (c *Conversation) Text(i int) []byte {
	m := &c.Messages[i]
	if m.clean != nil || m.cleaned && !m.whole {
		return m.clean
	}
	text := trim(c.joined(m))
	if i == c.Last {
		m.clean = text // it is asked for several times
	}
	return text
}

// runsOn reports whether a message's texts are pieces of one.
func (c *Conversation) runsOn(m *Message) bool { return c.runOn && m.Role == RoleAssistant }

// joined is a message's whole text.
func (c *Conversation) joined(m *Message) []byte {
	spans := c.spans[m.from:m.to]
	if len(spans) == 1 && !spans[0].Escaped {
		return c.body[spans[0].Start:spans[0].End]
	}
	var b []byte
	for i, s := range spans {
		if i > 0 && !c.runsOn(m) {
			b = append(b, '\n')
		}
		b = appendText(b, c.body[s.Start:s.End])
	}
	return b
}

// settle finds out which messages a person wrote, and what the request is for.
// It reports false where that takes too much time or memory.
func (c *Conversation) settle() bool {
	if !c.room(len(c.Messages) * sizeOfTurn) {
		return false
	}
	longest := 0 // of the texts that are decoded, each by itself
	newest := len(c.Messages) - 1
	for newest >= 0 && !c.asks(newest) {
		newest--
	}
	settled := c.goesOnSettled()
	for i := range c.Messages {
		m := &c.Messages[i]
		longest = max(longest, c.decodedSize(m))
		if before := m.Person; !settled(i) {
			if !c.settleMessage(i, newest) {
				return false
			}
			if m.Person != before {
				c.known = min(c.known, i)
			}
		}
		if m.Person {
			c.Last = i
		}
	}
	if !c.room(2*longest) || !c.InTime() {
		return false
	}
	c.Kind = c.kind()
	return true
}

// asks reports whether message i is a user's, and no result of a tool.
func (c *Conversation) asks(i int) bool {
	return c.Messages[i].Role == RoleUser && !c.Messages[i].Results
}

// settleMessage finds out whether a person wrote message i, and what they said.
// newest is the newest message that asks.
func (c *Conversation) settleMessage(i, newest int) bool {
	m := &c.Messages[i]
	m.Person, m.cleaned, m.whole, m.clean = false, false, false, nil
	n := c.rawSize(m)
	if !c.after(n + sizeOfMessage) {
		return false
	}
	switch {
	case m.Role == RoleOther || m.from == m.to:
	case m.Role == RoleUser && (i < newest && c.asked(i) || c.answeredByClient(i)):
		m.cleaned = true
	case !c.suspicious(m):
		m.Person = m.Role == RoleUser && !c.blank(m)
	default:
		if !c.room(2 * n) {
			return false
		}
		m.clean, m.whole = c.cleaned(i)
		m.cleaned = true
		m.Person = m.Role == RoleUser && len(m.clean) > 0
	}
	return true
}

// decodedSize is how many bytes of the body are decoded for a message's text;
// 0: it stands there as it is.
func (c *Conversation) decodedSize(m *Message) int {
	if m.to-m.from > 1 || m.from < m.to && c.spans[m.from].Escaped {
		return c.rawSize(m)
	}
	return 0
}

// rawSize is how many bytes of the body a message's texts take.
func (c *Conversation) rawSize(m *Message) (n int) {
	for _, s := range c.spans[m.from:m.to] {
		n += s.End - s.Start
	}
	return n
}

// cleaned is the text of message i without what a harness put there: within a
// part, and as whole parts beside those that a person wrote. It reports whether
// that is the whole text.
func (c *Conversation) cleaned(i int) (clean []byte, whole bool) {
	m := &c.Messages[i]
	if c.runsOn(m) {
		text := c.joined(m)
		clean = c.stripHarness(text, i)
		return trim(clean), len(clean) == len(text)
	}
	whole = m.to-m.from == 1
	var b []byte
	until := "" // the line that ends what a client attaches
	for _, s := range c.spans[m.from:m.to] {
		raw := c.body[s.Start:s.End]
		text := appendText(make([]byte, 0, len(raw)), raw)
		all := len(text)
		if m.Role == RoleUser {
			text, until = client.WithoutFiles(text, until)
		}
		text = c.stripHarness(text, i)
		whole = whole && len(text) == all
		text = trim(text)
		if len(text) == 0 {
			continue
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(b, text...)
	}
	return b, whole
}

// answeredByClient reports whether message i opens the conversation, and the
// client itself has answered it: it is a summary of what was said before.
func (c *Conversation) answeredByClient(i int) bool {
	if c.Last >= 0 || i+1 == len(c.Messages) || c.Messages[i+1].Role != RoleAssistant {
		return false
	}
	return client.Answers(trim(c.start(&c.Messages[i+1])))
}

// suspicious reports whether a message may hold text of a harness. It must be
// cheap: most messages do not.
func (c *Conversation) suspicious(m *Message) bool {
	for _, s := range c.spans[m.from:m.to] {
		if raw := c.body[s.Start:s.End]; mayHoldHarness(raw, m.Role, s.Unicode) {
			return true
		}
	}
	return false
}

func (c *Conversation) blank(m *Message) bool {
	for _, s := range c.spans[m.from:m.to] {
		if len(trimRaw(c.body[s.Start:s.End])) > 0 {
			return false
		}
	}
	return true
}

// Answered reports whether an answer to the newest message of a person has been
// acted upon: the request is then a round within its turn. One that stands at
// the end is a beginning that the client gives the model.
func (c *Conversation) Answered() bool {
	for i := c.Last + 1; i < len(c.Messages)-1; i++ {
		if c.Messages[i].Role == RoleAssistant {
			return true
		}
	}
	return false
}

// Insertable reports whether message i has a place where a block can stand.
func (c *Conversation) Insertable(i int) bool { return c.Messages[i].Form != FormNone }

// Behind is the rest of the body from where a block stands before message i.
func (c *Conversation) Behind(i int) []byte {
	return c.body[min(len(c.body), max(0, c.Messages[i].At)):]
}

// Starts calls f with the beginning of each text of message i, until it
// reports true, and reports whether it did.
func (c *Conversation) Starts(i int, f func(start []byte) bool) bool {
	m := &c.Messages[i]
	for _, s := range c.spans[m.from:m.to] {
		if f(trim(c.startOf(s))) {
			return true
		}
	}
	return false
}
