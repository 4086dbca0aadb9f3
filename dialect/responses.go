package dialect

// Responses reads the Responses API: POST …/responses.
type Responses struct{}

// Parse implements Dialect.
func (Responses) Parse(body []byte, c *Conversation) bool {
	c.reset(body)
	p := responsesParser{bodyParser: newBodyParser(body, c), apart: true}
	if !p.read(p.member) || !p.input || !c.settle() {
		return false
	}
	switch {
	case p.trigger:
		c.Kind = KindSummary
	case p.prewarm:
		c.Kind = KindProbe
	}
	return true
}

type responsesParser struct {
	bodyParser
	input   bool // it was seen
	trigger bool // the last item asks for a compaction
	prewarm bool // no answer is wanted
	apart   bool // something stands between the last message and what comes
}

// member reads a member of the request.
func (p *responsesParser) member(key []byte) bool {
	switch string(key) {
	case "input":
		if p.input {
			return false // which of the two counts is not ours to say
		}
		p.input = true
		if p.peek() == '[' {
			return p.array(p.item)
		}
		m := Message{Role: RoleUser, from: len(p.c.spans), at: -1}
		if p.peek() != '"' || !p.content(&m, formInput, isResponsesText, nil) {
			return false
		}
		m.to = len(p.c.spans)
		return p.c.addMessage(m)
	case "generate":
		p.prewarm = p.peek() == 'f'
		return p.skip()
	case "instructions":
		return p.prompt(isResponsesText)
	}
	return p.other(key)
}

// item reads one item of the input. Messages may come without a type.
func (p *responsesParser) item(n int) bool {
	if n >= p.c.maxMessages() {
		return p.c.tooLarge()
	}
	m := Message{from: len(p.c.spans), at: -1}
	var kind, role []byte
	var content, commentary bool
	var id span
	ok := p.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return p.word(&kind)
		case "role":
			return p.word(&role)
		case "id":
			p.space()
			id.start = p.i
			ok := p.skip()
			id.end = p.i
			return ok
		case "phase":
			var phase []byte
			ok := p.word(&phase)
			commentary = string(phase) == "commentary"
			return ok
		case "content":
			if content {
				return false
			}
			content = true
			return p.content(&m, formInput, isResponsesText, nil)
		case "":
			return false
		}
		return p.skip()
	})
	if string(kind) == "item_reference" && id.end-id.start <= maxField {
		p.c.refs = append(p.c.refs, id)
	}
	p.c.Tools = p.c.Tools || string(kind) == "additional_tools"
	p.trigger = string(kind) == "compaction_trigger"
	isMessage := len(kind) == 0 && len(role) > 0 || string(kind) == "message"
	if !isMessage || commentary {
		p.c.spans = p.c.spans[:m.from] // what is not said to anybody
	}
	m.to = len(p.c.spans)
	switch {
	case isMessage:
		m.Role, m.system = chatRole(role), isSystem(role)
	case isCall(kind):
		m.Role = RoleAssistant
	}
	return ok && p.add(m, string(kind) == "reasoning" || commentary)
}

// add appends a message. An answer of several messages is one, as it was when
// it was captured; what the model thought does not part them.
func (p *responsesParser) add(m Message, silent bool) bool {
	last := len(p.c.Messages) - 1
	if m.Role == RoleAssistant && m.from < m.to && !p.apart && p.c.Messages[last].to == m.from {
		p.c.Messages[last].to = m.to
		return true
	}
	if silent && !p.apart {
		return true
	}
	p.apart = m.Role != RoleAssistant || m.from == m.to
	return p.c.addMessage(m)
}

// isCall tells the items with which a model asks for something to be done.
func isCall(kind []byte) bool {
	switch string(kind) {
	case "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "mcp_approval_request":
		return true
	}
	return false
}

func isResponsesText(kind []byte) bool {
	switch string(kind) {
	case "input_text", "output_text", "text":
		return true
	}
	return false
}
