package dialect

// Chat reads the Chat Completions API: POST …/chat/completions.
type Chat struct{}

// Parse implements Dialect.
func (Chat) Parse(body []byte, c *Conversation) bool {
	c.reset(body)
	p := chatParser{bodyParser: newBodyParser(body, c)}
	if !p.read(p.member) || !p.messages || !c.settle() {
		return false
	}
	return true
}

type chatParser struct {
	bodyParser
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
	}
	return p.other(key)
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
			return p.content(&m, formPart, isChatText, nil)
		case "":
			return false
		}
		return p.skip()
	})
	m.to = len(p.c.spans)
	return ok && role && p.c.addMessage(m)
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

func isChatText(kind []byte) bool { return string(kind) == "text" }

// isSystem tells the roles in which a client speaks for itself.
func isSystem(role []byte) bool {
	return string(role) == "system" || string(role) == "developer"
}
