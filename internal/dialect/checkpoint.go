package dialect

import (
	"bytes"
	"slices"
	"unsafe"
)

// Checkpoint holds what was read of a body up to one of its messages. A body that
// begins with the same bytes, as the next request of a conversation does, is read
// from there on.
//
// It depends on those bytes alone, not on who sent them; its fingerprints count only
// for the root that they were made from. It does not refer to the body, never
// changes, and is safe for concurrent use.
type Checkpoint struct {
	header
	at   int // where in the body the next message, or the white space before it, begins
	item int // its index in the list of messages

	messages []Message
	settled  int // how many have a known author, except users' messages from newest on
	newest   int // the newest message that asks
	spans    []Span
	refs     []Span

	root  Fingerprint
	chain []Fingerprint // of the messages that are settled
	moves []move        // within them
}

// header holds what was read before the first message, or with it.
type header struct {
	fields [fieldCount]Span
	prompt Message
	model  []byte
	tools  bool
	format bool
	state  any // of the dialect's parser, see Parser.SetState
}

// unsettledItems are the newest items of a list that a checkpoint leaves out:
// clients change what they send of them in the next request (cache_control).
const unsettledItems = 2

// tracker notes what a checkpoint needs while a body is read.
type tracker struct {
	header
	marks [unsettledItems]mark // of the newest items
	items int
}

// mark is how far a body was read before an item.
type mark struct {
	at, item, messages, spans, refs int
	tools                           bool
	calls, mixed                    bool // of the last message
}

// GoOn makes the next Parse begin at a checkpoint; nil: at the beginning. The next
// body must begin with the checkpoint's bytes and be of the same dialect. Checkpoint
// can be called after that Parse.
func (c *Conversation) GoOn(from *Checkpoint) {
	if c.track == nil {
		c.track = new(tracker)
	}
	c.from, c.tracked = from, true
}

// End returns how many bytes a body must share with the checkpoint's.
func (cp *Checkpoint) End() int { return cp.at }

// Size returns about how many bytes the checkpoint takes.
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

// Checkpoint returns what was read of the body up to its newest messages, and their
// fingerprints from a root; nil when there are too few messages, or when the prompt
// stands behind them. It may be called when Parse has understood the body after GoOn.
func (c *Conversation) Checkpoint(root Fingerprint, chain []Fingerprint) *Checkpoint {
	t := c.track
	m := t.marks[t.items%unsettledItems]
	// The last message may go on behind the checkpoint, and who wrote the one before
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
			m.clean = nil // the text stands in the body
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

// goesOnSettled returns a function that reports whether the checkpoint knows who
// wrote a message. It does not know for users' messages from the newest one that
// asks on: they are read differently when another one follows. It knows for none
// when the prompt, by which the client is recognised, stands behind the messages.
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

// Speaks reports whether the model says something in the last message before the
// place where the reading begins.
func (p *Parser) Speaks() bool {
	if !p.GoesOn() {
		return false
	}
	m := &p.c.from.messages[len(p.c.from.messages)-1]
	return m.Role == RoleAssistant && m.from < m.to
}

// SetState notes what the dialect's parser knows once it has read the first message.
// State returns it when a later reading begins behind that message.
func (p *Parser) SetState(state any) {
	if p.c.tracked {
		p.c.track.state = state
	}
}

// State returns what SetState has noted; nil when the reading begins at the
// beginning.
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

// marked wraps message: it notes how far the body was read before each message.
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

// goOn reads the rest of a body behind a checkpoint.
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
