package dialect

import (
	"bytes"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Parser reads a request body into a Conversation. It is the base of all dialects' parsers.
type Parser struct {
	Scanner
	c *Conversation
}

// NewParser resets c and returns a parser that reads body into it.
func NewParser(body []byte, c *Conversation) Parser {
	c.reset(body)
	s := NewScanner(body)
	s.i = len(body) - len(WithoutMark(body))
	if !c.limits.Until.IsZero() {
		s.hurry, s.next = c, stride
	}
	return Parser{Scanner: s, c: c}
}

// Whole reads the whole body, an object. member reads each member's value.
func (p *Parser) Whole(member func(key []byte) bool) bool {
	return p.c.room(p.c.Size()) && p.Object(member) && p.atEnd()
}

// Messages reads the list of messages.
func (p *Parser) Messages(message func(i int) bool) bool {
	ok := p.Array(message)
	p.c.end = p.Offset()
	return ok
}

// Settle completes the reading: it determines the messages of the person, and the kind of
// the request. It returns false if a limit ends it.
func (p *Parser) Settle() bool { return p.c.settle() }

// Other reads a member that several dialects share, or skips it.
func (p *Parser) Other(key []byte) bool {
	switch string(key) {
	case "model":
		return p.Word(&p.c.Model)
	case "tools", "functions":
		return p.Mark(&p.c.Tools)
	case "response_format", "output_config", "text", "generationConfig", "generation_config":
		v, ok := p.Value()
		if ok && bytes.Contains(p.Raw(v), formJSON) {
			p.c.Format, p.c.fields[fieldFormat] = true, v
		}
		return ok
	}
	return p.Field(fieldOf(key))
}

// formJSON is part of every request for a data format: a schema, an object, a media type.
var formJSON = []byte("json")

// Field skips a member's value, and records its span if it is a Field and holds anything.
func (p *Parser) Field(f Field) bool {
	if f == fieldNone {
		return p.Skip()
	}
	p.space()
	v, holds := Span{Start: p.Offset()}, false
	ok := p.Mark(&holds)
	if v.End = p.Offset(); holds && v.End-v.Start <= maxField {
		p.c.fields[f] = v
	}
	return ok
}

// Thread reads the object by which a request makes the provider hold the conversation. One
// member names the answer that the request continues.
func (p *Parser) Thread(previous string) bool {
	isObject, at := p.Peek() == '{', p.i
	if !p.Field(fieldThread) || !isObject {
		return !isObject
	}
	p.i = at
	return p.Object(func(key []byte) bool {
		if string(key) == previous {
			return p.Field(FieldPreviousResponseID)
		}
		return p.Skip()
	})
}

// Word reads a string into w, or skips any other value and an empty string.
func (p *Parser) Word(w *[]byte) bool {
	if p.Peek() != '"' {
		return p.Skip()
	}
	s, ok := p.Quoted()
	if s.End > s.Start {
		*w = p.Raw(s)
	}
	return ok
}

// Begin begins a message. Its texts are the ones added before Add.
func (p *Parser) Begin() Message {
	return Message{from: len(p.c.spans), start: p.Offset(), At: -1}
}

// AddText adds a text, the inside of a JSON string, to the current message, unless it is
// empty. It returns false if there are too many.
func (p *Parser) AddText(s Span) bool { return s.End == s.Start || p.c.addSpan(s) }

// DropTexts drops the texts of the current message.
func (p *Parser) DropTexts(m *Message) { p.c.spans = p.c.spans[:m.from] }

// HasText reports whether the current message has texts.
func (p *Parser) HasText(m *Message) bool { return len(p.c.spans) > m.from }

// Add ends a message. It returns false if there are too many.
func (p *Parser) Add(m Message) bool {
	m.to = len(p.c.spans)
	return p.c.addMessage(m)
}

// Join adds the content of a message to the message before it. It returns false if its
// texts do not follow that message's texts directly.
func (p *Parser) Join(m Message) bool {
	last := len(p.c.Messages) - 1
	if last < 0 || p.c.Messages[last].to != m.from {
		return false
	}
	into := &p.c.Messages[last]
	into.to, into.Calls, into.Mixed = len(p.c.spans), into.Calls || m.Calls, into.Mixed || m.Mixed
	return true
}

// HasTools records that the request offers tools.
func (p *Parser) HasTools() { p.c.Tools = true }

// Items reports whether a body may hold n items; if not, the reading stops.
func (p *Parser) Items(n int) bool { return n <= p.c.maxMessages() || p.c.tooLarge() }

// AddReference records the id of an item that the provider holds.
func (p *Parser) AddReference(id Span) {
	if id.End-id.Start <= maxField {
		p.c.refs = append(p.c.refs, id)
	}
}

// Prompt reads the system prompt outside the messages.
func (p *Parser) Prompt(parts *Parts) bool {
	return p.PromptText(func(m *Message) bool { return p.Content(m, parts) })
}

// PromptText is Prompt with a function that adds the texts.
func (p *Parser) PromptText(read func(m *Message) bool) bool {
	m := p.Begin()
	m.System = true
	ok := read(&m)
	m.to = len(p.c.spans)
	p.c.prompt = m
	return ok
}

// RunOn marks the texts of each answer as pieces of one text, without separators.
func (p *Parser) RunOn() { p.c.runOn = true }

// Decoded returns the text of a span.
func (p *Parser) Decoded(s Span) []byte { return appendText(nil, p.Raw(s)) }

// opener is a client's statement of its directory at the beginning of a conversation; empty
// if unclear.
type opener struct{ client, directory string }

// States records the directory in the client's own statement at the beginning of the
// conversation; empty if unclear. It counts only for requests of that client, or for all
// requests if client is empty.
func (p *Parser) States(client, directory string) { p.c.opening = &opener{client, directory} }

// Parts describes a content that is an array.
type Parts struct {
	Form Form // the form of a block as a part

	// Each, if any, is called for every part with its type, its offset, and whether it held
	// text.
	Each func(kind []byte, at int, text bool)
}

// Content reads a message's content: a string, an array of parts, or null.
func (p *Parser) Content(m *Message, parts *Parts) bool {
	switch p.Peek() {
	case '"':
		s, ok := p.Quoted()
		m.At, m.Form = s.Start, FormString
		return ok && p.AddText(s)
	case '[':
		first := p.Offset() + 1
		return p.Array(func(int) bool {
			m.At, m.Form = first, parts.Form // not in an empty array: the form ends with a comma
			return p.part(m, parts)
		})
	}
	return p.Mark(&m.Mixed)
}

// isText reports whether parts of this type hold text.
func isText(kind []byte) bool {
	return string(kind) == "text" || string(kind) == "input_text" || string(kind) == "output_text"
}

// isThought reports whether parts of this type hold thoughts of the model.
func isThought(kind []byte) bool {
	switch string(kind) {
	case "thinking", "redacted_thinking", "reasoning":
		return true
	}
	return false
}

// Name reads the name of a message's speaker.
func (p *Parser) Name(m *Message) bool {
	var name []byte
	ok := p.Word(&name)
	if len(name) > 0 {
		m.name = uint32(xxhash.Sum64(name)) | 1 //nolint:gosec // half of a hash
	}
	return ok
}

// AddPart adds the text of a part that begins at an offset of the body. cached reports
// whether the provider caches the request up to the end of this part.
func (p *Parser) AddPart(s Span, at int, cached bool) bool {
	s.cached = cached
	if before := s.Start - at; before <= math.MaxInt32 {
		s.part = int32(before) //nolint:gosec // it is compared
	}
	return p.AddText(s)
}

// part reads one part of a message's content, and adds its text.
func (p *Parser) part(m *Message, parts *Parts) bool {
	if p.Peek() != '{' {
		return p.Mark(&m.Mixed)
	}
	at := p.Offset()
	var text Span
	var kind []byte
	has, cached := false, false
	ok := p.Object(func(key []byte) bool {
		switch {
		case string(key) == "cache_control":
			return p.Mark(&cached)
		case string(key) == "type" && p.Peek() == '"':
			s, ok := p.Quoted()
			kind = p.Raw(s)
			return ok
		case string(key) == "text" && p.Peek() == '"':
			if has {
				return false
			}
			has = true
			var ok bool
			text, ok = p.Quoted()
			return ok
		}
		return p.Skip() // an unknown member is no content, but an unknown part may be
	})
	isText := isText(kind)
	has = has && isText
	m.Mixed = m.Mixed || !isText && !isThought(kind) && string(kind) != "tool_result"
	if ok && parts.Each != nil {
		parts.Each(kind, at, has)
	}
	if has && string(kind) == "input_text" { // some gateways take such parts in Chat Completions, too
		m.Form = FormInput
	}
	if ok && has {
		return p.AddPart(text, at, cached)
	}
	return ok
}

// RoleOf reads a role in the spelling of OpenAI and Anthropic. system reports whether the
// message is the client's own.
func RoleOf(raw []byte) (r Role, system bool) {
	switch string(raw) {
	case "user":
		return RoleUser, false
	case "assistant":
		return RoleAssistant, false
	case "system", "developer":
		return RoleOther, true
	}
	return RoleOther, false
}
