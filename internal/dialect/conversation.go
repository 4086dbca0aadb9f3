package dialect

import (
	"bytes"
	"slices"
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
	frame    bool // all of it stands in frames that are not known
	sure     bool // see Conversation.Sure, where it was cleaned

	name     uint32 // hash of the name of who speaks; 0: it has none
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

// Conversation is what a request body says, as far as memory is concerned. Parse,
// Signals and Place make it, in this order; whoever has it then only reads. It is
// reused from request to request: Parse resets it.
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

	// Guessed says that the kind was inferred: no rule for a client says so.
	Guessed bool

	// Format says that the answer has to be data of some form.
	Format bool

	body    []byte
	prompt  Message          // what the client says for itself beside the messages
	fields  [fieldCount]Span // JSON values
	refs    []Span           // the ids of items that the provider holds, JSON strings
	end     int              // of the list of messages
	answer  int              // the first message of the model; len(Messages): there is none
	began   Place            // where the conversation began, as Place has found
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

// answered is what the model says in a message, and whether that is its whole text.
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

// decoded is the text of a span, which the caller may change.
func (c *Conversation) decoded(s Span) []byte {
	raw := c.body[s.Start:s.End]
	return appendText(make([]byte, 0, len(raw)), raw)
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

// Behind is the rest of the list of messages from where a block stands before
// message i.
func (c *Conversation) Behind(i int) []byte {
	at := max(0, c.Messages[i].At)
	return c.body[at:max(at, c.end)]
}

// Summarised reports whether a client has put a summary in place of what was said
// before.
func (c *Conversation) Summarised() bool {
	for i := range c.Messages {
		if c.isSummary(i) {
			return true
		}
	}
	return false
}

// isSummary reports whether message i holds what a client has put in place of what
// was said before it.
func (c *Conversation) isSummary(i int) bool {
	m := &c.Messages[i]
	return m.Role == RoleUser && m.cleaned && slices.ContainsFunc(c.spans[m.from:m.to], c.holdsSummary)
}

// holdsSummary reports whether a text is a summary, or asks for one by showing how
// it has to look.
func (c *Conversation) holdsSummary(s Span) bool {
	return MayHoldSummary(c.body[s.Start:s.End]) && IsSummary(c.decoded(s))
}
