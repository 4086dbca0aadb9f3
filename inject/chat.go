package inject

// Chat reads the Chat Completions API: POST …/chat/completions.
type Chat struct{}

// Parse implements Dialect.
func (Chat) Parse(body []byte, c *Conversation) bool {
	c.reset(body)
	p := chatParser{scanner: scanner{b: body}, c: c}
	if !p.object(p.member) {
		return false
	}
	p.space()
	if p.i != len(body) || !p.messages {
		return false
	}
	c.settle()
	return true
}

type chatParser struct {
	scanner
	c        *Conversation
	messages bool // they were seen
}

// member reads a member of the request.
func (p *chatParser) member(key []byte) bool {
	switch string(key) {
	case "messages":
		if p.messages {
			return false // which of the two counts is not ours to say
		}
		p.messages = true
		return p.array(p.message)
	case "model":
		if p.peek() != '"' {
			return p.skip()
		}
		s, ok := p.string()
		p.c.Model = p.b[s.start:s.end]
		return ok
	case "tools":
		p.c.Tools = p.peek() == '['
		return p.skip()
	case "":
		return false
	}
	return p.field(key, p.c)
}

// message reads one message.
func (p *chatParser) message(int) bool {
	m := Message{from: len(p.c.spans), at: -1}
	var role, content bool
	ok := p.object(func(key []byte) bool {
		switch string(key) {
		case "role":
			if role || p.peek() != '"' {
				return false
			}
			role = true
			s, ok := p.string()
			m.Role = chatRole(p.b[s.start:s.end])
			m.system = isSystem(p.b[s.start:s.end])
			return ok
		case "content":
			if content {
				return false
			}
			content = true
			return p.content(&m)
		case "":
			return false
		}
		return p.skip()
	})
	m.to = len(p.c.spans)
	p.c.Messages = append(p.c.Messages, m)
	return ok && role
}

func chatRole(raw []byte) Role {
	switch string(raw) {
	case "user":
		return RoleUser
	case "assistant":
		return RoleAssistant
	}
	return RoleOther
}

// content reads a message's content: a string, an array of parts, or null.
func (p *chatParser) content(m *Message) bool {
	switch p.peek() {
	case '"':
		s, ok := p.string()
		p.c.spans = append(p.c.spans, s)
		m.at, m.form = s.start, formString
		return ok
	case '[':
		m.at, m.form = p.i+1, formPart
		return p.array(func(int) bool { return p.part() })
	}
	return p.skip()
}

// part reads one part of a content. Those of type text are kept.
func (p *chatParser) part() bool {
	if p.peek() != '{' {
		return p.skip()
	}
	var text span
	var isText, has bool
	ok := p.object(func(key []byte) bool {
		switch {
		case string(key) == "type" && p.peek() == '"':
			s, ok := p.string()
			isText = string(p.b[s.start:s.end]) == "text"
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
	if ok && isText && has {
		p.c.spans = append(p.c.spans, text)
	}
	return ok
}

// isSystem tells the roles in which a client speaks for itself.
func isSystem(role []byte) bool {
	return string(role) == "system" || string(role) == "developer"
}
