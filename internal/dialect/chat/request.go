package chat

import (
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// parts describes the parts of a message's content.
var parts = dialect.Parts{Form: `{"type":"text","text":"`}

func (Dialect) Parse(body []byte, c *dialect.Conversation) bool {
	p := parser{Parser: dialect.NewParser(body, c)}
	return p.Whole(p.member) && p.messages && p.Settle()
}

type parser struct {
	dialect.Parser
	messages bool // the messages were read
}

func (p *parser) member(key []byte) bool {
	if string(key) != "messages" {
		return p.Other(key)
	}
	if p.messages {
		return false // ambiguous
	}
	p.messages = true
	return p.Messages(p.message)
}

// message reads one message.
func (p *parser) message(int) bool {
	m := p.Begin()
	var role, content bool
	ok := p.Object(func(key []byte) bool {
		switch string(key) {
		case "role":
			if role || p.Peek() != '"' {
				return false
			}
			role = true
			s, ok := p.Quoted()
			m.Role, m.System = dialect.RoleOf(p.Raw(s))
			return ok
		case "name":
			return p.Name(&m)
		case "content":
			if content {
				return false
			}
			content = true
			return p.Content(&m, &parts)
		case "tool_calls", "function_call":
			return p.Mark(&m.Calls)
		case "audio", "images": // of the model
			return p.Mark(&m.Mixed)
		}
		return p.Skip()
	})
	m.Results = m.Role == dialect.RoleOther && !m.System
	return ok && role && p.Add(m)
}

func (Dialect) Work(m gjson.Result, w *dialect.Work) {
	m.Get("tool_calls").ForEach(func(_, call gjson.Result) bool {
		f := call.Get("function")
		if !f.IsObject() {
			f = call.Get("custom")
		}
		w.Call(call.Get("id").String(), f.Get("name").String(), f.Get("arguments"), f.Get("input"))
		return true
	})
	if one := m.Get("function_call"); one.IsObject() {
		w.Call("", one.Get("name").String(), one.Get("arguments"))
	}
	if role := m.Get("role").Str; role == "tool" || role == "function" {
		w.Result(m.Get("tool_call_id").String(), m.Get("content"), false)
	}
}
