package dialect

// Messages reads Anthropic's Messages API: POST …/v1/messages, and
// …/v1/messages/count_tokens.
type Messages struct{}

// Parse implements Dialect.
func (Messages) Parse(body []byte, c *Conversation) bool {
	c.reset(body)
	p := messagesParser{bodyParser: newBodyParser(body, c)}
	if !p.read(p.member) || !p.messages || !c.settle() {
		return false
	}
	return true
}

type messagesParser struct {
	bodyParser
	messages bool // they were seen
}

// member reads a member of the request.
func (p *messagesParser) member(key []byte) bool {
	switch string(key) {
	case "messages":
		if p.messages {
			return false // which of the two counts is not ours to say
		}
		p.messages = true
		return p.array(p.message)
	case "system":
		return p.prompt(isChatText)
	case "thinking":
		isObject, start := p.peek() == '{', p.i
		if !p.skip() {
			return false
		}
		if isObject {
			p.c.thinking = span{start: start, end: p.i}
		}
		return true
	}
	return p.other(key)
}

// message reads one message. The results of tools come first in theirs, and
// the API refuses a text before one: a block goes behind the last.
func (p *messagesParser) message(int) bool {
	m := Message{from: len(p.c.spans), at: -1}
	var role []byte
	content := false
	after := -1 // where the first text behind the results begins
	ok := p.object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return p.word(&role)
		case "content":
			if content {
				return false
			}
			content = true
			return p.content(&m, formPart, isChatText, func(kind []byte, at int, text bool) {
				switch {
				case string(kind) == "tool_result":
					m.results, after = true, -1
					p.c.spans = p.c.spans[:m.from]
				case text && after < 0:
					after = at
				}
			})
		case "":
			return false
		}
		return p.skip()
	})
	m.Role, m.system = chatRole(role), isSystem(role)
	if m.results {
		m.at = after
	}
	m.to = len(p.c.spans)
	return ok && len(role) > 0 && p.c.addMessage(m)
}
