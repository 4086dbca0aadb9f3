package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func (Dialect) NewReader(prefill string) dialect.Reader {
	return &reader{Assembly: dialect.Assembly{Said: dialect.Begun(prefill)}}
}

// reader assembles the text blocks of an answer.
type reader struct {
	dialect.Assembly
	inText bool   // the current block is a text
	begun  string // its beginning, which some servers repeat in the first delta
	block  int    // the block of the next piece of arguments
}

func (r *reader) Event(_, data []byte) {
	if dialect.IsDone(data) {
		r.Over = true
		return
	}
	doc := dialect.Document(data)
	switch doc.Get("type").Str {
	case "content_block_start":
		block := doc.Get("content_block")
		if r.inText = block.Get("type").Str == "text"; r.inText {
			r.begun = strings.Clone(block.Get("text").Str)
			r.Said.Next()
			r.Said.Add(r.begun)
		}
		r.begin(&block, "")
	case "content_block_delta":
		if doc.Get("delta.type").Str == "input_json_delta" && r.Calls != nil {
			r.Calls.Add(r.block, doc.Get("delta.partial_json").Str)
		}
		if text := doc.Get("delta.text").Str; doc.Get("delta.type").Str == "text_delta" && r.inText {
			if text != r.begun {
				r.Said.Add(text)
			}
			r.begun = ""
		}
	case "message_start":
		r.Usage = dialect.Usage{}
		r.Keys.Add(doc.Get("message.id").Str)
		addUsage(&r.Usage, doc.Get("message.usage"))
	case "message_delta":
		r.Usage.Output = max(r.Usage.Output, dialect.Tokens(doc.Get("usage.output_tokens")))
		r.Finish(doc.Get("delta.stop_reason").Str)
	case "message_stop":
		r.Over = true
	case "error":
		r.Failed = true
	}
}

func (r *reader) Body(body []byte) {
	doc := dialect.Document(body)
	if doc.Get("type").Str != "message" {
		r.Failed = true
		return
	}
	r.Keys.Add(doc.Get("id").Str)
	doc.Get("content").ForEach(func(_, block gjson.Result) bool {
		if block.Get("type").Str == "text" {
			r.Said.Next()
			r.Said.Add(block.Get("text").Str)
		}
		r.begin(&block, block.Get("input").Raw)
		return true
	})
	addUsage(&r.Usage, doc.Get("usage"))
	r.Finish(doc.Get("stop_reason").Str)
	r.Over = gjson.ValidBytes(body)
}

// begin begins a call of a tool, if the block is one.
func (r *reader) begin(block *gjson.Result, arguments string) {
	if block.Get("type").Str != "tool_use" {
		return
	}
	r.Keys.Add(block.Get("id").Str)
	if r.block++; r.Calls == nil {
		r.block = 0
	}
	r.Call(r.block, arguments)
}

// Answer implements dialect.Reader. Its end is unknown until all of it was read.
func (r *reader) Answer() dialect.Answer {
	a := r.Assembly
	if !a.Over {
		a.End = dialect.EndUnknown
	}
	return a.Answer()
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
