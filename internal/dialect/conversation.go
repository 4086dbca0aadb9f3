package dialect

import (
	"bytes"
	"slices"
)

// Role is the sender of a message, in every dialect.
type Role uint8

// The roles that matter here; everything else (system, developer, tool
// results, reasoning) is RoleOther.
const (
	RoleOther Role = iota
	RoleUser
	RoleAssistant
	RoleHeld      // a reference to an item of the model that the provider holds
	RoleCompacted // a summary of earlier messages that only the provider can read
)

// Message is one message of a conversation.
type Message struct {
	Role Role

	// Person is true for a user message with words of a person, whether or not a client has
	// added to it.
	Person bool

	System  bool // the client speaks for itself
	Results bool // it holds results of tools
	Calls   bool // it calls tools of the client
	Mixed   bool // it holds content other than texts, thoughts and results
	Silent  bool // it is no message, but thoughts or a list of tools
	cleaned bool // clean is the text: that of a user, or one without additions
	noPlace bool // it states no place
	frame   bool // a part of it is in a frame that is not in the table
	alone   bool // of a user's message: one part holds the words and nothing else

	name     uint32 // hash of the speaker's name, or 0
	from, to int    // its texts, in Conversation.spans
	start    int    // offset in the body, or of the white space before it
	clean    []byte // the text, if it differs from the spans or a caller has requested it

	At   int  // offset of an inserted block in the body
	Form Form // the form of a block there
}

// Form is the form of a block in a message. A form other than the two here is the JSON of a
// part up to the block.
type Form string

// The forms that several dialects have.
const (
	FormNone   Form = ""  // there is no position for a block
	FormString Form = `"` // at the beginning of a JSON string
	FormInput  Form = `{"type":"input_text","text":"`
)

// Conversation holds the facts about a request body that memory needs. Parse, Signals and
// Place fill it, in this order; later users only read it. It is reused from request to
// request: Parse resets it.
type Conversation struct {
	Messages []Message
	Model    []byte // the raw JSON text
	Tools    bool   // tools are offered

	// Last is the index of the newest message of a person, or -1.
	Last int

	// Newest is the index of the newest user message, of any author, or -1.
	Newest int

	// Kind is the kind of this request, as far as the request itself shows it: a turn of a
	// person, or a chore.
	Kind Kind

	// Rule is the client of the rule that determined Kind, or "".
	Rule string

	// Guessed is true if the kind was inferred, not found by a rule for a client.
	Guessed bool

	// Format is true if the request asks for an answer in some data format.
	Format bool

	body    []byte
	prompt  Message          // the system prompt outside the messages
	fields  [fieldCount]Span // JSON values
	refs    []Span           // the ids of items that the provider holds, JSON strings
	end     int              // of the list of messages
	answer  int              // the first message of the model; len(Messages) if there is none
	began   Place            // the first place of the conversation, as found by Place
	moves   []move           // its later places
	spans   []Span
	agent   bool    // the system prompt shows that a subagent speaks
	spawned bool    // it is a subagent's thread: a model asked the earlier questions
	details *bool   // the result of names; nil before its first call
	runOn   bool    // see Parser.RunOn
	opening *opener // see Parser.States
	scratch []byte  // for decoding temporary texts
	inserts []byte  // the texts of its inserts

	limits  Limits // for reading the body
	stopped Stop   // the limit that ended the reading
	worked  int    // bytes since the last check of the clock
}

// Reset drops all references to the body.
func (c *Conversation) Reset() {
	c.limits = Limits{}
	c.reset(nil)
}

// reset prepares c for another body.
func (c *Conversation) reset(body []byte) {
	clear(c.Messages) // they may hold large texts
	*c = Conversation{Messages: c.Messages[:0], refs: c.refs[:0], moves: c.moves[:0], spans: c.spans[:0], scratch: c.scratch, inserts: c.inserts[:0], Last: -1, Newest: -1, body: body, limits: c.limits}
}

// Text returns the text of message i: its text parts joined by line feeds, without a
// client's additions, trimmed.
func (c *Conversation) Text(i int) []byte {
	m := &c.Messages[i]
	if m.clean != nil || m.cleaned {
		return m.clean
	}
	text := trim(c.joined(m))
	if i == c.Last {
		m.clean = text // callers request it several times
	}
	return text
}

// Raw returns the whole text of message i, including a client's additions.
func (c *Conversation) Raw(i int) []byte { return c.joined(&c.Messages[i]) }

// runsOn reports whether a message's texts are pieces of one.
func (c *Conversation) runsOn(m *Message) bool { return c.runOn && m.Role == RoleAssistant }

// joined returns a message's whole text.
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

// decodedSize returns the number of raw bytes to decode for a message's text; 0 if the raw
// text needs no decoding.
func (c *Conversation) decodedSize(m *Message) int {
	if m.to-m.from > 1 || m.from < m.to && c.spans[m.from].Escaped {
		return c.rawSize(m)
	}
	return 0
}

// rawSize returns the number of raw bytes in a message's texts.
func (c *Conversation) rawSize(m *Message) (n int) {
	for _, s := range c.spans[m.from:m.to] {
		n += s.End - s.Start
	}
	return n
}

// answered returns the model's words in a message, and reports whether they are all of it.
func (c *Conversation) answered(m *Message) (clean []byte, whole bool) {
	if c.runsOn(m) {
		text := c.joined(m)
		clean = answer(text)
		return trim(clean), len(clean) == len(text)
	}
	whole = m.to-m.from == 1
	var texts [][]byte
	for _, s := range c.spans[m.from:m.to] {
		text := c.decoded(s)
		said := answer(text)
		whole = whole && len(said) == len(text)
		if said = trim(said); len(said) > 0 {
			texts = append(texts, said)
		}
	}
	return bytes.Join(texts, []byte{'\n'}), whole
}

// decoded returns a span's text. The caller must not change it.
func (c *Conversation) decoded(s Span) []byte {
	raw := c.body[s.Start:s.End]
	if !s.Escaped {
		return raw
	}
	return appendText(make([]byte, 0, len(raw)), raw)
}

// Answered reports whether the model has already answered the newest message of a person,
// so that the request is a tool round within that turn. A model's message at the very end
// does not count: it is a prefill.
func (c *Conversation) Answered() bool {
	for i := c.Last + 1; i < len(c.Messages)-1; i++ {
		if c.Messages[i].Role == RoleAssistant {
			return true
		}
	}
	return false
}

// Prefill returns the beginning of the answer at the end of the request, or "". A provider
// continues it, so its answer is the rest.
func (c *Conversation) Prefill() string {
	i := len(c.Messages) - 1
	if i <= c.Last || c.Messages[i].Role != RoleAssistant {
		return ""
	}
	return string(c.joined(&c.Messages[i]))
}

// minRepeated is the length, in bytes, of a sentence in Repeats. People repeat shorter
// texts, such as "continue".
const minRepeated = 30

// Repeats reports whether message i says, word for word, what at least two earlier messages
// of the user said: a program of the client repeats such a sentence. same returns the answer
// to the newest of them.
func (c *Conversation) Repeats(i int) (same []byte, ok bool) {
	size, newest, times := c.rawSize(&c.Messages[i]), -1, 0
	if size < minRepeated {
		return nil, false
	}
	for j := range i {
		if m := &c.Messages[j]; m.Person && c.rawSize(m) == size && bytes.Equal(c.Text(j), c.Text(i)) {
			newest, times = j, times+1
		}
	}
	if times < 2 || len(c.Text(i)) < minRepeated {
		return nil, false
	}
	same, _ = c.AnswerTo(newest)
	return same, true
}

// Insertable reports whether message i has a position for a block.
func (c *Conversation) Insertable(i int) bool { return c.Messages[i].Form != FormNone }

// SummaryAt returns the index of the newest message that replaces earlier messages with a
// summary, or -1.
func (c *Conversation) SummaryAt() int {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		if c.isSummary(i) {
			return i
		}
	}
	return -1
}

// Replaced returns the index of the newest summary in place of the client's earlier answers, or
// -1.
func (c *Conversation) Replaced() int {
	i := min(c.answer, len(c.Messages)-1)
	for i >= 0 && !c.isSummary(i) {
		i--
	}
	return i
}

// Summary returns the text of the summary at message i. Some clients put a short question there,
// and the summary is its answer.
func (c *Conversation) Summary(i int) []byte {
	text := c.Raw(i)
	if _, _, holds := summaryElement(text, true); holds || len(text) >= Telling || c.Messages[i].Role != RoleUser || i+1 == len(c.Messages) {
		return text
	}
	return c.Raw(i + 1)
}

// isSummary reports whether message i holds a summary with which a client has replaced
// earlier messages. A request for a summary may hold an earlier one, or the form of one.
func (c *Conversation) isSummary(i int) bool {
	m := &c.Messages[i]
	if c.Kind == KindSummary && i == c.Newest {
		return false
	}
	return m.Role == RoleCompacted || m.Role == RoleUser && m.cleaned && slices.ContainsFunc(c.spans[m.from:m.to], c.holdsSummary)
}

// holdsSummary reports whether a text is a summary, or asks for one and shows its form.
func (c *Conversation) holdsSummary(s Span) bool {
	return mayHoldSummary(c.body[s.Start:s.End]) && isSummary(c.decoded(s))
}
