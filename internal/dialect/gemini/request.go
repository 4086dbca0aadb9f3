package gemini

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// textPart is the form of a block as a part of a content.
const textPart = dialect.Form(`{"text":"`)

// Parse implements dialect.Dialect. The API takes each name in camel case and
// in snake case, and one value in place of a list of one.
func (Dialect) Parse(body []byte, c *dialect.Conversation) bool {
	p := parser{Parser: dialect.NewParser(body, c), c: c}
	p.RunOn()
	if !p.Whole(p.member) || !p.contents || !p.Settle() {
		return false
	}
	if c.Kind == dialect.KindTurn && (p.agent || p.cli && !p.session) {
		c.Kind = dialect.KindMachine
	}
	if p.session {
		client := dialect.GeminiCLI
		if p.cli {
			client = "" // its prompt identifies it, even if a gateway changes its User-Agent
		}
		if dir, ok := placeIn(p.Decoded(p.opening)); ok {
			p.States(client, dir)
		}
	}
	return true
}

type parser struct {
	dialect.Parser
	c        *dialect.Conversation
	contents bool // the contents were read
	prompt   bool // the system instruction was read

	cli     bool // Gemini CLI speaks, with its usual system prompt or to compact
	session bool // the contents begin like its conversations; its tools' own requests do not
	opening dialect.Span
	agent   bool // one of its subagents speaks
}

// cliPrompt begins Gemini CLI's prompt, and cliSession or cliBegins the first content of its
// conversations. cliCompacts begins its prompt for a compaction, cliThinks and cliSummary
// the answers to that. cliAgent is part of the prompts of its subagents, even of
// user-defined ones.
var (
	cliPrompt   = []byte("You are Gemini CLI")
	cliCompacts = []byte("You are a specialized system component responsible for distilling chat history")
	cliThinks   = []byte("<scratchpad>")
	cliSummary  = []byte("<state_snapshot>")
	cliSession  = []byte("<session_context>")
	cliBegins   = []byte("This is the Gemini CLI. We are setting up the context") // until 0.24
	block       = []byte("<graphiti_memory>")                                     // of another proxy before this one
	cliAgent    = []byte("You are running in a non-interactive mode. You CANNOT ask the user for input or clarification.")
)

func (p *parser) member(key []byte) bool {
	switch string(key) {
	case "contents":
		if p.contents {
			return false // ambiguous
		}
		p.contents = true
		if p.Peek() == '[' {
			return p.Messages(func(int) bool { return p.content() })
		}
		return p.content()
	case "systemInstruction", "system_instruction":
		if p.prompt {
			return p.Empty() // else ambiguous
		}
		return p.PromptText(p.instruction)
	case "tools":
		return p.each(p.tool)
	}
	return p.Other(key)
}

// each reads the items of a list, or a single value in place of a list.
func (p *parser) each(item func() bool) bool {
	if p.Peek() == '[' {
		return p.Array(func(int) bool { return item() })
	}
	return item()
}

// tool reads a tool. Only functions count: the provider carries out searches and the
// like, and clients offer those for chores too.
func (p *parser) tool() bool {
	if p.Peek() != '{' {
		return p.Skip()
	}
	return p.Object(func(key []byte) bool {
		switch string(key) {
		case "functionDeclarations", "function_declarations":
			return p.Mark(&p.c.Tools)
		}
		return p.Skip()
	})
}

// instruction reads the system instruction: a content with any role.
func (p *parser) instruction(m *dialect.Message) bool {
	if p.Peek() != '{' {
		return p.Skip()
	}
	parts := contentParts{m: m, system: true}
	_, ok := p.parts(&parts)
	m.At, m.Form = -1, dialect.FormNone
	begins := p.Raw(parts.begins)
	p.prompt = p.HasText(m)
	p.cli = bytes.HasPrefix(begins, cliPrompt) || bytes.HasPrefix(begins, cliCompacts)
	return ok
}

func (p *parser) content() bool {
	if p.Peek() != '{' {
		return false
	}
	m := p.Begin()
	parts := contentParts{m: &m, after: -1}
	role, ok := p.parts(&parts)
	return ok && p.add(m, role, &parts)
}

// parts reads the parts and the role of a content.
func (p *parser) parts(c *contentParts) (role []byte, ok bool) {
	seen := false
	ok = p.Object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return p.Word(&role)
		case "parts":
			if seen {
				return false
			}
			seen, c.list, c.first = true, p.Peek() == '[', p.Offset()+1
			return p.each(func() bool { return p.part(c) })
		}
		return p.Skip()
	})
	return role, ok
}

// add adds a message. Clients send the pieces of an answer back as separate contents; they
// become one message.
func (p *parser) add(m dialect.Message, role []byte, parts *contentParts) bool {
	if len(p.c.Messages) == 0 {
		p.opening = parts.begins
		p.session = bytes.HasPrefix(p.Raw(p.opening), cliSession) || bytes.HasPrefix(p.Raw(p.opening), cliBegins)
	}
	switch string(role) {
	case "", "user":
		m.Role = dialect.RoleUser
		if m.Results {
			m.At, m.Form = parts.after, textPart
		}
	case "model":
		m.Role = dialect.RoleAssistant
		last := len(p.c.Messages) - 1
		if last >= 0 && p.c.Messages[last].Role == dialect.RoleAssistant && !p.summarises(parts) && p.Join(m) {
			return true
		}
	}
	return p.Add(m)
}

// summarises reports whether a content is the summary of a compaction. Gemini CLI sends it
// after the last of the compacted answers, to have it checked.
func (p *parser) summarises(parts *contentParts) bool {
	begins := p.Raw(parts.begins)
	return bytes.HasPrefix(begins, cliSummary) || bytes.HasPrefix(begins, cliThinks)
}

// contentParts holds facts about the parts of a content.
type contentParts struct {
	m      *dialect.Message
	system bool // they are the system instruction's
	list   bool
	first  int          // offset of the first part of a list
	after  int          // offset of the first text after the results of functions, or -1
	begins dialect.Span // the first text
}

// part reads a part. It adds texts, but neither thoughts nor results of functions. It drops
// texts before such a result, because a block goes after the last result.
func (p *parser) part(c *contentParts) bool {
	if p.Peek() != '{' {
		return p.Mark(&c.m.Mixed)
	}
	at := p.Offset()
	var text dialect.Span
	has, thought, result, data := false, false, false, false
	ok := p.Object(func(key []byte) bool {
		switch string(key) {
		case "text":
			if has {
				return false
			}
			if p.Peek() != '"' {
				return p.Skip()
			}
			has = true
			var ok bool
			text, ok = p.Quoted()
			return ok
		case "thought":
			thought = p.Peek() == 't'
		case "functionResponse", "function_response":
			return p.Mark(&result)
		case "functionCall", "function_call":
			return p.Mark(&c.m.Calls)
		case "inlineData", "inline_data", "fileData", "file_data":
			return p.Mark(&data)
		}
		return p.Skip()
	})
	switch {
	case !ok:
		return false
	case result:
		c.m.Results, c.after = true, -1
		p.DropTexts(c.m)
	case text.End > text.Start && !thought:
		return p.text(c, text, at)
	default:
		c.m.Mixed = c.m.Mixed || !thought && (data || !has)
	}
	if c.list { // not in an empty list: the form ends with a comma
		c.m.At, c.m.Form = c.first, textPart
	}
	return true
}

// text adds a part's text.
func (p *parser) text(c *contentParts, text dialect.Span, at int) bool {
	raw := p.Raw(text)
	if c.begins.End == 0 && !bytes.HasPrefix(raw, block) {
		c.begins = text
	}
	p.agent = p.agent || c.system && bytes.Contains(raw, cliAgent)
	c.m.At, c.m.Form = c.first, textPart
	if !c.list {
		c.m.At, c.m.Form = text.Start, dialect.FormString
	}
	if c.after < 0 {
		c.after = at
	}
	if !c.list {
		return p.AddText(text)
	}
	return p.AddPart(text, at, false)
}

func (Dialect) Work(content gjson.Result, w *dialect.Work) {
	parts := content.Get("parts")
	if parts.IsObject() {
		work(parts, w)
	}
	parts.ForEach(func(_, part gjson.Result) bool {
		work(part, w)
		return true
	})
}

func work(part gjson.Result, w *dialect.Work) {
	for _, name := range []string{"functionCall", "function_call"} {
		if v := part.Get(name); v.IsObject() {
			w.Call(v.Get("id").String(), v.Get("name").String(), v.Get("args"))
		}
	}
	for _, name := range []string{"functionResponse", "function_response"} {
		v := part.Get(name)
		if response := v.Get("response"); response.Exists() {
			fault := response.Get("error")
			failed := dialect.Holds(fault)
			if failed {
				response = fault
			}
			w.Result(v.Get("id").String(), response, failed)
		}
	}
}
