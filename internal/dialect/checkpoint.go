package dialect

import (
	"bytes"
	"slices"
	"unsafe"
)

// Checkpoint holds the result of reading a body up to one of its messages. If another body
// begins with the same bytes, as the next request of a conversation does, its reading
// starts from there.
//
// It depends on those bytes alone, not on their sender; its fingerprints are valid only for
// their root. It does not refer to the body, never changes, and is safe for concurrent use.
type Checkpoint struct {
	header
	at   int // offset of the next message, or of the white space before it, in the body
	item int // its index in the list of messages

	messages []Message
	settled  int // number of messages with a known author, except users' messages from newest on
	newest   int // the newest message that asks
	spans    []Span
	refs     []Span

	root  Fingerprint
	chain []Fingerprint // of the settled messages
	moves []move        // within them
}

// header holds the parts of a request that were read before the first message, or with it.
type header struct {
	fields [fieldCount]Span
	prompt Message
	model  []byte
	tools  bool
	format bool
	state  any // of the dialect's parser, see Parser.SetState
}

// unsettledItems is the number of newest items of a list that a checkpoint leaves out:
// clients change parts of them in the next request (cache_control).
const unsettledItems = 2

// tracker collects the data for a checkpoint during the reading of a body.
type tracker struct {
	header
	marks [unsettledItems]mark // of the newest items
	items int
}

// mark is the state of the reading before an item.
type mark struct {
	at, item, messages, spans, refs int
	tools                           bool
	calls, mixed                    bool // of the last message
}

// GoOn makes the next Parse begin at a checkpoint; nil for the beginning. The next body
// must begin with the checkpoint's bytes and be of the same dialect. Checkpoint can be
// called after that Parse.
func (c *Conversation) GoOn(from *Checkpoint) {
	if c.track == nil {
		c.track = new(tracker)
	}
	c.from, c.tracked = from, true
}

// End returns the number of bytes that a body must share with the checkpoint's.
func (cp *Checkpoint) End() int { return cp.at }

// Size returns the approximate size of the checkpoint in bytes.
func (cp *Checkpoint) Size() int {
	n := int(unsafe.Sizeof(*cp)) + cap(cp.messages)*sizeOfMessage + (cap(cp.spans)+cap(cp.refs))*sizeOfSpan + cap(cp.chain)*len(Fingerprint{}) + cap(cp.model)
	for i := range cp.messages {
		n += len(cp.messages[i].clean)
	}
	for _, m := range cp.moves {
		n += int(unsafe.Sizeof(m)) + len(m.to.Directory) + len(m.to.Repo)
	}
	return n
}

// Checkpoint returns the result of reading the body up to its newest messages, and their
// fingerprints from a root; nil if there are too few messages, or if the prompt comes after
// them. It may be called once Parse has understood the body after GoOn.
func (c *Conversation) Checkpoint(root Fingerprint, chain []Fingerprint) *Checkpoint {
	t := c.track
	m := t.marks[t.items%unsettledItems]
	// The last message may continue after the checkpoint, and the author of the one before
	// it depends on it.
	settled := m.messages - 2
	if settled < 1 || m.item != t.items-unsettledItems || !c.prompt.isThatOf(&t.header) {
		return nil
	}
	cp := &Checkpoint{
		header: t.header, at: m.at, item: m.item, settled: settled, newest: settled - 1,
		messages: slices.Clone(c.Messages[:m.messages]), spans: slices.Clone(c.spans[:m.spans]), refs: slices.Clone(c.refs[:m.refs]),
		root: root, chain: slices.Clone(chain[:settled]), moves: slices.Clone(c.moves[:movesBefore(c.moves, settled)]),
	}
	cp.tools, cp.model = m.tools, bytes.Clone(cp.model)
	for i := range cp.messages {
		m := &cp.messages[i]
		if m.whole || !m.cleaned || i >= settled {
			m.clean = nil // the body holds the text
		}
		m.clean = bytes.Clone(m.clean)
	}
	for cp.newest > 0 && !c.asks(cp.newest) {
		cp.newest--
	}
	last := &cp.messages[m.messages-1]
	last.to, last.noPlace, last.Calls, last.Mixed = min(last.to, m.spans), false, m.calls, m.mixed
	return cp
}

// isThatOf reports whether the prompt m was read before the messages.
func (m *Message) isThatOf(h *header) bool { return m.from == h.prompt.from && m.to == h.prompt.to }

// goesOnSettled returns a function that reports whether the checkpoint knows the author of
// a message. It does not know the authors of users' messages from the newest one that asks
// on: a later message changes their reading. It knows no authors if the prompt, which
// identifies the client, comes after the messages.
func (c *Conversation) goesOnSettled() (settled func(i int) bool) {
	cp := c.from
	if cp == nil || !c.prompt.isThatOf(&cp.header) {
		return func(int) bool { return false }
	}
	c.known = cp.settled
	return func(i int) bool { return i < cp.settled && (i < cp.newest || c.Messages[i].Role != RoleUser) }
}

func movesBefore(moves []move, message int) (n int) {
	for n < len(moves) && moves[n].message < message {
		n++
	}
	return n
}

// GoesOn reports whether the reading begins within the list of messages.
func (p *Parser) GoesOn() bool { return p.c.from != nil }

// Speaks reports whether the last message before the start of the reading holds text of the
// model.
func (p *Parser) Speaks() bool {
	if !p.GoesOn() {
		return false
	}
	m := &p.c.from.messages[len(p.c.from.messages)-1]
	return m.Role == RoleAssistant && m.from < m.to
}

// SetState stores the state of the dialect's parser after the first message. State returns
// it if a later reading begins after that message.
func (p *Parser) SetState(state any) {
	if p.c.tracked {
		p.c.track.state = state
	}
}

// State returns the state that SetState has stored; nil if the reading starts at the
// beginning of the body.
func (p *Parser) State() any {
	if !p.GoesOn() {
		return nil
	}
	return p.c.from.state
}

// Messages reads the list of messages.
func (p *Parser) Messages(message func(i int) bool) bool {
	c := p.c
	if !c.tracked {
		ok := p.Array(message)
		c.end = p.Offset()
		return ok
	}
	*c.track = tracker{header: header{fields: c.fields, prompt: c.prompt, model: c.Model, format: c.Format}}
	ok := p.Array(p.marked(message))
	c.end = p.Offset()
	return ok
}

// marked wraps message: it records the state of the reading before each message.
func (p *Parser) marked(message func(i int) bool) func(i int) bool {
	c := p.c
	return func(i int) bool {
		m := mark{at: p.Offset(), item: i, messages: len(c.Messages), spans: len(c.spans), refs: len(c.refs), tools: c.Tools}
		if m.messages > 0 {
			m.calls, m.mixed = c.Messages[m.messages-1].Calls, c.Messages[m.messages-1].Mixed
		}
		c.track.marks[i%unsettledItems] = m
		c.track.items = i + 1
		return message(i)
	}
}

// goOn reads the rest of a body after a checkpoint.
func (p *Parser) goOn(member func(key []byte) bool, message func(i int) bool) bool {
	c, cp := p.c, p.c.from
	if !c.room(len(cp.messages)*sizeOfMessage + len(cp.spans)*sizeOfSpan) {
		return false
	}
	c.Messages, c.spans, c.refs = append(c.Messages, cp.messages...), append(c.spans, cp.spans...), append(c.refs, cp.refs...)
	c.fields, c.prompt, c.Model, c.Tools, c.Format = cp.fields, cp.prompt, cp.model, cp.tools, cp.format
	*c.track = tracker{header: cp.header}
	p.i, p.depth = cp.at, 2 // within the body's object, and the list
	ok := p.elements(cp.item, p.marked(message))
	if c.end = p.Offset(); !ok {
		return false
	}
	if more, ended := p.more('}'); !more {
		return ended
	}
	return p.members(member)
}

// fits reports whether a checkpoint lies within the limits of c.
func (cp *Checkpoint) fits(c *Conversation) bool {
	return len(cp.messages) <= c.maxMessages() && len(cp.spans) <= partsOfMessage*c.maxMessages()
}
