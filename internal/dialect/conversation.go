package dialect

import (
	"bytes"
	"slices"
)

// Role says who sent a message, in every dialect.
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

	// Person is true for a user message that holds words of a person, beside what a
	// client wrote into it.
	Person bool

	System  bool // the client speaks for itself
	Results bool // it holds results of tools
	Calls   bool // it calls tools of the client
	Mixed   bool // it holds content other than texts and thoughts
	Silent  bool // it is no message: thoughts, or a list of tools
	cleaned bool // what a client wrote into it was taken out
	whole   bool // it was cleaned, but the client had written nothing into it
	noPlace bool // it states no place
	frame   bool // a part of it stands in a frame that the table does not know
	alone   bool // of a cleaned message: one part holds the words and nothing else

	name     uint32 // hash of the speaker's name; 0: it has none
	from, to int    // its texts, in Conversation.spans
	clean    []byte // the text, when it is not that of the spans, or was asked for

	At   int  // offset in the body where a block is inserted
	Form Form // how a block is written there
}

// Form says how a block is written into a message. A form other than the two here is
// the JSON of a part up to the block.
type Form string

// The forms that all dialects have.
const (
	FormNone   Form = ""  // no block can stand there
	FormString Form = `"` // at the beginning of a JSON string
)

// Conversation holds what memory needs of a request body. Parse, Signals and Place
// make it, in this order; whoever has it then only reads. It is reused from request
// to request: Parse resets it.
type Conversation struct {
	Messages []Message
	Model    []byte // as it stands in the body
	Tools    bool   // tools are offered

	// Last is the index of the newest message that a person wrote, or -1.
	Last int

	// Newest is the index of the newest user message, whoever wrote it, or -1.
	Newest int

	// Kind says whether this request is a turn of a person, or a chore, as far as it
	// says so itself.
	Kind Kind

	// Guessed says that the kind was inferred, not found by a rule for a client.
	Guessed bool

	// Format says that the request asks for an answer in some data format.
	Format bool

	body    []byte
	prompt  Message          // the system prompt beside the messages
	fields  [fieldCount]Span // JSON values
	refs    []Span           // the ids of items that the provider holds, JSON strings
	end     int              // of the list of messages
	answer  int              // the first message of the model; len(Messages): there is none
	began   Place            // where the conversation began, as Place has found
	moves   []move           // where it went from there
	spans   []Span
	agent   bool    // a subagent speaks, as its system prompt says
	spawned bool    // it is a subagent's thread: a model asked what was asked before
	details *bool   // what names found; nil: it was not asked
	runOn   bool    // see Parser.RunOn
	opening *opener // see Parser.States
	scratch []byte  // for decoding what is not kept
	inserts []byte  // the texts of its inserts

	from    *Checkpoint // where the reading began; nil: at the beginning
	known   int         // how many messages have their fingerprints from the checkpoint
	track   *tracker    // what the next checkpoint needs
	tracked bool        // a checkpoint is wanted

	limits  Limits // for reading the body
	stopped Stop   // which of them ended the reading
	worked  int    // bytes since the clock was checked
}

// Reset makes c forget the body.
func (c *Conversation) Reset() {
	if c.tracked {
		*c.track = tracker{} // it refers to the body
	}
	c.limits, c.from, c.tracked = Limits{}, nil, false
	c.reset(nil)
}

// reset makes c ready for another body.
func (c *Conversation) reset(body []byte) {
	clear(c.Messages) // they may hold large texts
	*c = Conversation{Messages: c.Messages[:0], refs: c.refs[:0], moves: c.moves[:0], spans: c.spans[:0], scratch: c.scratch, inserts: c.inserts[:0], Last: -1, Newest: -1, body: body, from: c.from, track: c.track, tracked: c.tracked, limits: c.limits}
}

// Text returns what message i says: its text parts joined by line feeds, without what
// a client wrote into them, trimmed.
func (c *Conversation) Text(i int) []byte {
	m := &c.Messages[i]
	if m.clean != nil || m.cleaned && !m.whole {
		return m.clean
	}
	text := trim(c.joined(m))
	if i == c.Last {
		m.clean = text // callers ask for it several times
	}
	return text
}

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

// decodedSize returns how many bytes of the body have to be decoded for a message's
// text; 0 when it can be used as it stands.
func (c *Conversation) decodedSize(m *Message) int {
	if m.to-m.from > 1 || m.from < m.to && c.spans[m.from].Escaped {
		return c.rawSize(m)
	}
	return 0
}

// rawSize returns how many bytes of the body a message's texts take.
func (c *Conversation) rawSize(m *Message) (n int) {
	for _, s := range c.spans[m.from:m.to] {
		n += s.End - s.Start
	}
	return n
}

// answered returns what the model says in a message, and whether that is all of it.
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

// decoded returns a copy of a span's text.
func (c *Conversation) decoded(s Span) []byte {
	raw := c.body[s.Start:s.End]
	return appendText(make([]byte, 0, len(raw)), raw)
}

// Answered reports whether the model has already answered the newest message of a
// person: then the request is a tool round within that turn. A model's message at
// the very end does not count: with it a client begins the answer for the model.
func (c *Conversation) Answered() bool {
	for i := c.Last + 1; i < len(c.Messages)-1; i++ {
		if c.Messages[i].Role == RoleAssistant {
			return true
		}
	}
	return false
}

// Prefill returns the beginning of the answer that the request ends with, or "". A
// provider continues it, so its answer is the rest.
func (c *Conversation) Prefill() string {
	i := len(c.Messages) - 1
	if i <= c.Last || c.Messages[i].Role != RoleAssistant {
		return ""
	}
	return string(c.joined(&c.Messages[i]))
}

// Insertable reports whether message i has a place where a block can stand.
func (c *Conversation) Insertable(i int) bool { return c.Messages[i].Form != FormNone }

// Behind returns the rest of the list of messages from where message i's block goes.
func (c *Conversation) Behind(i int) []byte {
	at := max(0, c.Messages[i].At)
	return c.body[at:max(at, c.end)]
}

// Summarised reports whether a client has replaced what was said before with a
// summary.
func (c *Conversation) Summarised() bool {
	for i := range c.Messages {
		if c.isSummary(i) {
			return true
		}
	}
	return false
}

// isSummary reports whether message i holds a summary with which a client has
// replaced what was said before.
func (c *Conversation) isSummary(i int) bool {
	m := &c.Messages[i]
	return m.Role == RoleUser && m.cleaned && slices.ContainsFunc(c.spans[m.from:m.to], c.holdsSummary)
}

// holdsSummary reports whether a text is a summary, or asks for one and shows its
// form.
func (c *Conversation) holdsSummary(s Span) bool {
	return mayHoldSummary(c.body[s.Start:s.End]) && isSummary(c.decoded(s))
}
