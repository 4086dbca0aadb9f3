package responses

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// parts describes the parts of a message's content.
var parts = dialect.Parts{Form: dialect.FormInput}

func (Dialect) Parse(body []byte, c *dialect.Conversation) bool {
	p := parser{Parser: dialect.NewParser(body, c)}
	p.apart = true
	if !p.Whole(p.member) || !p.input && !p.template || !p.Settle() {
		return false
	}
	switch {
	case p.trigger: // it asks, not the person's message before it, which has its block
		c.Kind, c.Newest = dialect.KindSummary, len(c.Messages)-1
	case p.prewarm:
		c.Kind = dialect.KindProbe
	}
	return true
}

type parser struct {
	dialect.Parser
	input    bool // the input was read
	template bool // the words are in a prompt at the provider, named by the request
	trigger  bool // the last item asks for a compaction
	prewarm  bool // the client wants no answer
	apart    bool // an item separates the last message from the next
}

func (p *parser) member(key []byte) bool {
	switch string(key) {
	case "input":
		kind := p.Peek()
		if p.input || kind != '[' && kind != '"' {
			return p.Empty() // else ambiguous
		}
		p.input = true
		if kind == '[' {
			return p.Messages(p.item)
		}
		m := p.Begin()
		m.Role = dialect.RoleUser
		return p.Content(&m, &parts) && p.Add(m)
	case "prompt":
		return p.Mark(&p.template)
	case "generate":
		p.prewarm = p.Peek() == 'f'
		return p.Skip()
	case "instructions":
		return p.Prompt(&parts)
	}
	return p.Other(key)
}

// item reads one item of the input. The type of a message is optional.
func (p *parser) item(n int) bool {
	if !p.Items(n + 1) {
		return false
	}
	m := p.Begin()
	var kind, role []byte
	var content, commentary bool
	var id dialect.Span
	ok := p.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return p.Word(&kind)
		case "role":
			return p.Word(&role)
		case "id":
			var ok bool
			id, ok = p.Value()
			return ok
		case "phase":
			var phase []byte
			ok := p.Word(&phase)
			commentary = string(phase) == "commentary"
			return ok
		case "content":
			if content {
				return false
			}
			content = true
			return p.Content(&m, &parts)
		}
		return p.Skip()
	})
	if string(kind) == "additional_tools" {
		p.HasTools()
	}
	p.trigger = string(kind) == "compaction_trigger"
	isMessage := len(kind) == 0 && len(role) > 0 || string(kind) == "message"
	if !isMessage || commentary {
		p.DropTexts(&m) // not part of the dialogue
	}
	switch {
	case isMessage:
		m.Role, m.System = dialect.RoleOf(role)
	case isCall(kind):
		m.Role, m.Calls = dialect.RoleAssistant, true
	case string(kind) == "item_reference":
		m.Role = dialect.RoleHeld
		p.AddReference(id)
	case string(kind) == "compaction":
		m.Role = dialect.RoleCompacted
	default:
		m.Results = isResult(kind)
		m.Silent = string(kind) == "reasoning" || string(kind) == "additional_tools"
	}
	return ok && p.add(m, string(kind) == "reasoning" || commentary)
}

// add appends a message. Several messages of one answer become one, as in the captured
// answer; reasoning between them does not separate them.
func (p *parser) add(m dialect.Message, silent bool) bool {
	speaks := m.Role == dialect.RoleAssistant && p.HasText(&m)
	if speaks && !p.apart && p.Join(m) {
		return true
	}
	if silent && !p.apart {
		return true
	}
	p.apart = !speaks
	return p.Add(m)
}

// isCall reports whether such an item is a model's request for an action of the client.
func isCall(kind []byte) bool {
	switch string(kind) {
	case "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "mcp_approval_request":
		return true
	}
	return false
}

// isResult reports whether such an item holds the result of the client's action.
func isResult(kind []byte) bool {
	return bytes.HasSuffix(kind, []byte("_output")) || string(kind) == "mcp_approval_response"
}

func (Dialect) Work(item gjson.Result, w *dialect.Work) {
	switch kind := []byte(item.Get("type").Str); {
	case isCall(kind):
		w.Call(item.Get("call_id").String(), item.Get("name").String(), arguments(item)...)
	case isResult(kind):
		w.Result(item.Get("call_id").String(), item.Get("output"), false)
	}
}

// arguments returns the possible places of a call's arguments.
func arguments(call gjson.Result) []gjson.Result {
	return []gjson.Result{call.Get("arguments"), call.Get("input"), call.Get("action"), call.Get("operation")}
}
