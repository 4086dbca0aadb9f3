package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func (Dialect) NewReader(prefill string) dialect.Reader {
	return &reader{said: dialect.Begun(prefill)}
}

// reader assembles the text blocks of an answer.
type reader struct {
	said   dialect.Said
	inText bool           // the current block is a text
	begun  string         // its beginning, which some servers repeat in the first delta
	calls  *dialect.Calls // of tools that the client has
	block  int            // the block of the next piece of arguments
	end    dialect.End
	over   bool // all of it was read
	failed bool
	keys   dialect.Keys
	usage  dialect.Usage
}

func (r *reader) Event(_, data []byte) {
	if dialect.IsDone(data) {
		r.over = true
		return
	}
	doc := dialect.Document(data)
	switch doc.Get("type").Str {
	case "content_block_start":
		block := doc.Get("content_block")
		if r.inText = block.Get("type").Str == "text"; r.inText {
			r.begun = strings.Clone(block.Get("text").Str)
			r.said.Next()
			r.said.Add(r.begun)
		}
		r.call(&block, "")
	case "content_block_delta":
		if doc.Get("delta.type").Str == "input_json_delta" && r.calls != nil {
			r.calls.Add(r.block, doc.Get("delta.partial_json").Str)
		}
		if text := doc.Get("delta.text").Str; doc.Get("delta.type").Str == "text_delta" && r.inText {
			if text != r.begun {
				r.said.Add(text)
			}
			r.begun = ""
		}
	case "message_start":
		r.usage = dialect.Usage{}
		r.keys.Add(doc.Get("message.id").Str)
		addUsage(&r.usage, doc.Get("message.usage"))
	case "message_delta":
		r.usage.Output = max(r.usage.Output, dialect.Tokens(doc.Get("usage.output_tokens")))
		r.stop(doc.Get("delta.stop_reason"))
	case "message_stop":
		r.over = true
	case "error":
		r.failed = true
	}
}

func (r *reader) Body(body []byte) {
	doc := dialect.Document(body)
	if doc.Get("type").Str != "message" {
		r.failed = true
		return
	}
	r.keys.Add(doc.Get("id").Str)
	doc.Get("content").ForEach(func(_, block gjson.Result) bool {
		if block.Get("type").Str == "text" {
			r.said.Next()
			r.said.Add(block.Get("text").Str)
		}
		r.call(&block, block.Get("input").Raw)
		return true
	})
	addUsage(&r.usage, doc.Get("usage"))
	r.stop(doc.Get("stop_reason"))
	r.over = gjson.ValidBytes(body)
}

// call begins a call of a tool, if the block is one.
func (r *reader) call(block *gjson.Result, arguments string) {
	if block.Get("type").Str != "tool_use" {
		return
	}
	r.keys.Add(block.Get("id").Str)
	if r.block++; r.calls == nil {
		r.calls, r.block = &dialect.Calls{}, 0
	}
	r.calls.Add(r.block, arguments)
}

func (r *reader) stop(reason gjson.Result) {
	switch end := dialect.EndOf(reason.Str); end {
	case dialect.EndUnknown:
	case dialect.EndError:
		r.failed = true
	default:
		r.end = end
	}
}

func (r *reader) Answer() dialect.Answer {
	if r.failed {
		return dialect.Answer{End: dialect.EndError}
	}
	a := dialect.Answer{Text: r.said.Text(), Keys: r.keys, Usage: r.usage, Calls: r.calls}
	if r.over { // else its end is unknown
		a.End = r.end
	}
	return a.Ended(r.over)
}

// addUsage adds the usage in an event. Anthropic's input_tokens do not include cached
// tokens.
func addUsage(u *dialect.Usage, r gjson.Result) {
	r.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "input_tokens", "cache_creation_input_tokens":
			u.Input += dialect.Tokens(value)
		case "cache_read_input_tokens":
			u.Input += dialect.Tokens(value)
			u.Cached = dialect.Tokens(value)
		case "output_tokens":
			u.Output = dialect.Tokens(value)
		}
		return true
	})
}
