package dialect

// bodyParser is what the parsers of all dialects share.
type bodyParser struct {
	scanner
	c *Conversation
}

func newBodyParser(body []byte, c *Conversation) bodyParser {
	s := scanner{b: body, next: len(body)}
	if !c.limits.Until.IsZero() {
		s.inTime, s.next = c.InTime, stride
	}
	return bodyParser{scanner: s, c: c}
}

// read reads the whole body, an object.
func (p *bodyParser) read(member func(key []byte) bool) bool {
	return p.c.room(p.c.Size()) && p.object(member) && p.atEnd()
}

func (p *bodyParser) atEnd() bool {
	p.space()
	return p.i == len(p.b)
}

// other reads a member that all dialects have, or skips it.
func (p *bodyParser) other(key []byte) bool {
	switch string(key) {
	case "model":
		if p.peek() != '"' {
			return p.skip()
		}
		s, ok := p.string()
		p.c.Model = p.b[s.start:s.end]
		return ok
	case "tools":
		if p.peek() != '[' {
			return p.skip()
		}
		return p.array(func(int) bool {
			p.c.Tools = true
			return p.skip()
		})
	case "":
		return false
	}
	return p.field(key, p.c)
}

// word reads a short string, or skips what is none.
func (p *bodyParser) word(w *[]byte) bool {
	if p.peek() != '"' {
		return p.skip()
	}
	s, ok := p.string()
	*w = p.b[s.start:s.end]
	return ok
}

// prompt reads what the client says for itself beside the messages.
func (p *bodyParser) prompt(isText func(kind []byte) bool) bool {
	m := &p.c.prompt
	m.from, m.system = len(p.c.spans), true
	ok := p.content(m, formNone, isText, nil)
	m.to = len(p.c.spans)
	return ok
}

// content reads a message's content: a string, an array of parts, or null.
// form is how a block is written as a part of the array; isText tells the
// types of parts that hold text. each is told of every part: its type, where
// it begins, and whether it held text; it may be nil.
func (p *bodyParser) content(m *Message, form form, isText func(kind []byte) bool, each func(kind []byte, at int, text bool)) bool {
	switch p.peek() {
	case '"':
		s, ok := p.string()
		m.at, m.form = s.start, formString
		return ok && p.c.addSpan(s)
	case '[':
		first := p.i + 1
		return p.array(func(int) bool {
			m.at, m.form = first, form // of an empty one a block could be no part
			return p.part(isText, each)
		})
	}
	return p.skip()
}

// part reads one part of a content. Those that hold text are kept.
func (p *bodyParser) part(isText func(kind []byte) bool, each func(kind []byte, at int, text bool)) bool {
	if p.peek() != '{' {
		return p.skip()
	}
	at := p.i
	var text span
	var kind []byte
	has := false
	ok := p.object(func(key []byte) bool {
		switch {
		case string(key) == "type" && p.peek() == '"':
			s, ok := p.string()
			kind = p.b[s.start:s.end]
			return ok
		case string(key) == "text" && p.peek() == '"':
			if has {
				return false
			}
			has = true
			var ok bool
			text, ok = p.string()
			return ok
		case key == nil:
			return false
		}
		return p.skip()
	})
	has = has && isText(kind)
	if ok && each != nil {
		each(kind, at, has)
	}
	if ok && has {
		return p.c.addSpan(text)
	}
	return ok
}
