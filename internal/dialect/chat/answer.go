package chat

import (
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func (Dialect) NewReader(prefill string) dialect.Reader {
	return &reader{Assembly: dialect.Assembly{Said: dialect.Begun(prefill)}}
}

// reader assembles the first choice of an answer.
type reader struct {
	dialect.Assembly
	deltas bool // it comes in the member delta; some servers use message there, too
}

func (r *reader) Event(_, data []byte) {
	if dialect.IsDone(data) {
		r.Over = true
		return
	}
	r.read(data)
}

func (r *reader) Body(body []byte) {
	r.Over = gjson.ValidBytes(body)
	r.read(body)
}

// read takes a chunk or a whole answer. Servers report an error within a stream in several ways: OpenAI and SGLang with an
// error member, vLLM with an object "error", OpenRouter with both an error and a
// choice.
func (r *reader) read(data []byte) {
	dialect.Document(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "id":
			r.Keys.Add(value.Str)
		case "error":
			r.Failed = r.Failed || dialect.Holds(value)
		case "usage":
			if dialect.Holds(value) { // null in all events but the last
				r.Usage = dialect.OpenAIUsage(value)
			}
		case "object":
			r.Failed = r.Failed || value.Str == "error"
		case "choices":
			value.ForEach(func(_, choice gjson.Result) bool {
				if choice.Get("index").Int() == 0 {
					r.choice(choice)
				}
				return true
			})
		}
		return true
	})
}

func (r *reader) choice(choice gjson.Result) {
	m := choice.Get("delta")
	for _, name := range []string{"content", "tool_calls", "function_call", "audio", "refusal"} {
		r.deltas = r.deltas || dialect.Holds(m.Get(name))
	}
	if !r.deltas { // else the message repeats it
		m = choice.Get("message")
	}
	if c := m.Get("content"); c.Type == gjson.String {
		r.Said.Add(c.Str)
	} else if c.IsArray() {
		c.ForEach(func(_, part gjson.Result) bool {
			if part.Get("type").Str == "text" {
				r.Said.Add(part.Get("text").Str)
			}
			return true
		})
	}
	if t := m.Get("audio.transcript"); t.Type == gjson.String {
		r.Said.Add(t.Str)
	}
	if m.Get("refusal").Str != "" {
		r.End = dialect.EndFilter
	}
	r.call(m)
	r.Finish(choice.Get("finish_reason").Str)
}

// call gathers the calls in a message, or in a piece of one.
func (r *reader) call(m gjson.Result) {
	list, one := m.Get("tool_calls"), m.Get("function_call")
	if r.Calls == nil && !dialect.Holds(list) && !dialect.Holds(one) {
		return
	}
	r.Call(0, one.Get("arguments").Str)
	n := -1
	list.ForEach(func(_, call gjson.Result) bool {
		if n++; call.Get("index").Exists() {
			n = int(call.Get("index").Int())
		}
		r.Keys.Add(call.Get("id").Str)
		r.Call(n, call.Get("function.arguments").Str)
		return true
	})
}
