package messages

import (
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const textPart = `{"type":"text","text":"`

// prompt describes the parts of a system prompt.
var prompt = dialect.Parts{Form: textPart}

func (Dialect) Parse(body []byte, c *dialect.Conversation) bool {
	p := parser{Parser: dialect.NewParser(body, c)}
	p.content = dialect.Parts{Form: textPart, Each: p.part}
	return p.Whole(p.member) && p.messages && p.Settle()
}

type parser struct {
	dialect.Parser
	messages bool // the messages were read

	content dialect.Parts
	m       dialect.Message // the current one
	after   int             // offset of the first text after its results, or -1
}

func (p *parser) member(key []byte) bool {
	switch string(key) {
	case "messages":
		if p.messages {
			return false // ambiguous
		}
		p.messages = true
		return p.Messages(p.message)
	case "system":
		return p.Prompt(&prompt)
	case "thread": // the provider holds the messages up to the one named
		return p.Thread("previous_message_id")
	}
	return p.Other(key)
}

// message reads one message.
func (p *parser) message(int) bool {
	p.m, p.after = p.Begin(), -1
	var role []byte
	content := false
	ok := p.Object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return p.Word(&role)
		case "content":
			if content {
				return false
			}
			content = true
			return p.Content(&p.m, &p.content)
		}
		return p.Skip()
	})
	p.m.Role, p.m.System = dialect.RoleOf(role)
	if p.m.Results {
		p.m.At = p.after
	}
	return ok && len(role) > 0 && p.Add(p.m)
}

// part is called for each part of a message. The results of tools come first, and the API
// refuses a text before one, so a block goes after the last.
func (p *parser) part(kind []byte, at int, text bool) {
	switch {
	case string(kind) == "tool_use":
		p.m.Calls = true
	case string(kind) == "tool_result":
		p.m.Results, p.after = true, -1
		p.DropTexts(&p.m)
	case text && p.after < 0:
		p.after = at
	}
}

func (Dialect) Work(m gjson.Result, w *dialect.Work) {
	m.Get("content").ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "tool_use":
			w.Call(part.Get("id").String(), part.Get("name").String(), part.Get("input"))
		case "tool_result":
			w.Result(part.Get("tool_use_id").String(), part.Get("content"), part.Get("is_error").Bool())
		}
		return true
	})
}
