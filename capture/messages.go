package capture

import (
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Messages reads the answers of Anthropic's Messages API.
type Messages struct{}

// NewReader implements Dialect.
func (Messages) NewReader() Reader { return &messagesReader{} }

// messagesReader assembles the text blocks of an answer.
type messagesReader struct {
	texts  []*strings.Builder
	inText bool // the block that is being sent is one of text
	calls  bool // of tools that the client has
	size   int
	end    End
	over   bool // message_stop was seen
	failed bool
	usage  Usage
}

// Event implements Reader.
func (r *messagesReader) Event(_, data []byte) {
	doc := gjson.Parse(unsafe.String(unsafe.SliceData(data), len(data)))
	switch doc.Get("type").Str {
	case "content_block_start":
		block := doc.Get("content_block")
		if r.inText = block.Get("type").Str == "text"; r.inText {
			r.texts = append(r.texts, &strings.Builder{})
			r.add(block.Get("text").Str)
		}
		r.calls = r.calls || block.Get("type").Str == "tool_use"
	case "content_block_delta":
		if doc.Get("delta.type").Str == "text_delta" && r.inText {
			r.add(doc.Get("delta.text").Str)
		}
	case "message_start":
		r.usage = Usage{}
		r.usage.anthropicUsage(doc.Get("message.usage"))
	case "message_delta":
		r.usage.Output = max(r.usage.Output, tokens(doc.Get("usage.output_tokens")))
		r.stop(doc.Get("delta.stop_reason").Str)
	case "message_stop":
		r.over = true
	case "error":
		r.failed = true
	}
}

// Body implements Reader.
func (r *messagesReader) Body(body []byte) {
	doc := gjson.Parse(unsafe.String(unsafe.SliceData(body), len(body)))
	if doc.Get("type").Str != "message" {
		r.failed = true
		return
	}
	doc.Get("content").ForEach(func(_, block gjson.Result) bool {
		if block.Get("type").Str == "text" {
			r.texts = append(r.texts, &strings.Builder{})
			r.add(block.Get("text").Str)
		}
		r.calls = r.calls || block.Get("type").Str == "tool_use"
		return true
	})
	r.usage.anthropicUsage(doc.Get("usage"))
	r.stop(doc.Get("stop_reason").Str)
	r.over = true
}

func (r *messagesReader) add(s string) {
	if r.size+len(s) <= maxAnswer {
		r.texts[len(r.texts)-1].WriteString(s)
		r.size += len(s)
	}
}

func (r *messagesReader) stop(reason string) {
	switch reason {
	case "":
	case "end_turn", "stop_sequence":
		r.end = EndStop
	case "max_tokens", "model_context_window_exceeded":
		r.end = EndLength
	case "tool_use", "pause_turn":
		r.end = EndToolCalls
	case "refusal":
		r.end = EndFilter
	default:
		r.end = EndUnknown
	}
}

// Answer implements Reader.
func (r *messagesReader) Answer() Answer {
	if r.failed {
		return Answer{End: EndError}
	}
	var texts []string
	for _, t := range r.texts {
		if t.Len() > 0 {
			texts = append(texts, t.String())
		}
	}
	a := Answer{Text: strings.TrimSpace(dropThoughts(strings.Join(texts, "\n")))}
	if r.over {
		a.End = r.end.after(r.calls)
	}
	a.Usage = r.usage
	return a
}
