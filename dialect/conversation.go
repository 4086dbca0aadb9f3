package dialect

import (
	"bytes"
	"slices"

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
	c.answer = slices.IndexFunc(c.Messages, func(m Message) bool { return m.Role == RoleAssistant })
	if c.answer < 0 {
		c.answer = len(c.Messages)
	}
	framed, person := false, c.personsName()
	for i := range c.Messages {
		m := &c.Messages[i]
		longest = max(longest, c.decodedSize(m))
		if before := m.Person; !settled(i) {
			if !c.settleMessage(i, newest, person) {
				return false
			}
			if m.Person != before {
				c.known = min(c.known, i)
			}
		}
		if framed = framed || m.frame; m.Person {
			c.Last = i
		}
	}
	if framed {
		c.settleFrames()
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
// newest is the newest message that asks, and person the person's name.
func (c *Conversation) settleMessage(i, newest int, person uint32) bool {
	m := &c.Messages[i]
	m.Person, m.sure, m.cleaned, m.whole, m.frame, m.clean = false, false, false, false, false, nil
	n := c.rawSize(m)
	if !c.after(n + sizeOfMessage) {
		return false
	}
	switch {
	case m.Role == RoleOther || m.from == m.to:
	case m.Role == RoleUser && (m.name != 0 && m.name != person || i < newest && c.asked(i) || c.answeredByClient(i)):
		m.cleaned = true
	case !c.suspicious(m):
		first, texts := c.said(m)
		m.Person = m.Role == RoleUser && texts > 0
		c.standBefore(m, first)
	default:
		if !c.room(2 * n) {
			return false
		}
		m.cleaned = true
		if m.Role == RoleAssistant {
			m.clean, m.whole = c.answered(m)
			break
		}
		c.settleWords(i)
	}
	return true
}

// Sure reports whether the person wrote all of message i that is theirs: the part in
// which it stands holds nothing else, and the client alone wrote every other part.
// Where a person pasted something, or may have, it is not sure.
func (c *Conversation) Sure(i int) bool {
	m := &c.Messages[i]
	if !m.Person || m.cleaned {
		return m.Person && m.sure
	}
	_, texts := c.said(m) // several may be of several hands
	return texts == 1 && !slices.ContainsFunc(c.spans[m.from:m.to], func(s Span) bool {
		raw := c.body[s.Start:s.End]
		return client.MayBeForeign(raw) || s.Unicode && bytes.Contains(raw, []byte(`\u00`))
	})
}

// standBefore has a block stand directly before a part of a message: the provider
// may cache what stands before that, such as a document.
func (c *Conversation) standBefore(m *Message, span int) {
	if s := c.spans[span]; m.Person && s.part > 0 {
		m.At = s.Start - int(s.part)
	}
}

// personsName is the name of the person, of those that user messages carry: the
// first speaker's. Others are agents, or other people.
func (c *Conversation) personsName() uint32 {
	for i := range c.Messages {
		if m := &c.Messages[i]; m.Role == RoleUser && m.name != 0 {
			return m.name
		}
	}
	return 0
}

// settleFrames finds out who wrote the messages that stand in frames of clients
// that are not known: where a person says something else in the same turn, the
// client.
func (c *Conversation) settleFrames() {
	c.Last = -1
	for from := 0; from < len(c.Messages); {
		to, said := from, false
		for ; to < len(c.Messages) && (to == from || !c.ends(to-1)); to++ {
			said = said || c.Messages[to].Person && !c.Messages[to].frame
		}
		for ; from < to; from++ {
			m := &c.Messages[from]
			if m.frame && m.Person == said {
				m.Person, c.known = !said, min(c.known, from)
			}
			if m.Person {
				c.Last = from
			} else if m.frame {
				m.clean = nil
			}
		}
	}
}

// ends reports whether message i is an answer that ends a turn: one that says
// something, and no tool's result follows it.
func (c *Conversation) ends(i int) bool {
	m := &c.Messages[i]
	if m.Role != RoleAssistant || m.from == m.to || i+1 == len(c.Messages) {
		return m.Role == RoleAssistant && m.from < m.to
	}
	next := &c.Messages[i+1]
	return !next.Results && (next.Role != RoleOther || next.System)
}

// unanswered reports whether message i is a user's or the client's own, and no
// result of a tool: no answer stands between such messages.
func (c *Conversation) unanswered(i int) bool {
	return c.Messages[i].System || c.asks(i)
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

// settleWords finds out what a person said in user message i, how sure that is, and
// where a block stands.
func (c *Conversation) settleWords(i int) {
	m := &c.Messages[i]
	texts := make([][]byte, 0, m.to-m.from)
	for _, s := range c.spans[m.from:m.to] {
		texts = append(texts, c.decoded(s))
	}
	all := len(texts[0])
	m.sure = !client.WithoutFiles(texts)
	origins := make([]client.Origin, len(texts))
	for n := range texts {
		texts[n], origins[n] = client.Words(texts[n], within{c, i})
	}
	c.settleDocuments(m, origins)
	of := slices.Min(origins)
	if of == client.Mixed {
		of = client.Person
	}
	first, said := -1, texts[:0]
	for n, o := range origins {
		m.sure = m.sure && (o == client.Client || o == client.Person && first < 0)
		if o == client.Client || o == client.Unknown && of != o {
			continue
		}
		if first < 0 {
			first = n
		}
		said = append(said, texts[n])
	}
	m.clean = bytes.Join(said, []byte{'\n'})
	m.Person, m.frame = len(m.clean) > 0, of == client.Unknown
	m.sure = m.sure && m.Person
	m.whole = m.Person && m.to-m.from == 1 && len(m.clean) == all
	if first >= 0 {
		c.standBefore(m, m.from+first)
	}
}

// settleDocuments finds the parts that are documents: a client that has the
// provider cache a part, and says more behind it, asks about that part.
func (c *Conversation) settleDocuments(m *Message, origins []client.Origin) {
	asked := false
	for n := len(origins) - 1; n >= 0; n-- {
		if origins[n] == client.Client {
			continue
		}
		if asked && c.spans[m.from+n].cached {
			for k := range origins[:n+1] {
				origins[k] = client.Client
			}
			m.sure = false
			return
		}
		asked = true
	}
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
	for n, s := range c.spans[m.from:m.to] {
		if raw := c.body[s.Start:s.End]; mayHoldHarness(raw, m.Role, s.Unicode) || m.Role == RoleUser && s.cached && n < m.to-m.from-1 {
			return true
		}
	}
	return false
}

// said is the first text of a message that is not blank, in c.spans, and how many
// there are.
func (c *Conversation) said(m *Message) (first, texts int) {
	for n := m.to - 1; n >= m.from; n-- {
		if s := c.spans[n]; len(trimRaw(c.body[s.Start:s.End])) > 0 {
			first, texts = n, texts+1
		}
	}
	return first, texts
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
	return client.MayHoldSummary(c.body[s.Start:s.End]) && client.IsSummary(c.decoded(s))
}
