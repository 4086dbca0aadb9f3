package gemini

import (
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func (Dialect) NewReader(prefill string) dialect.Reader {
	return &reader{Assembly: dialect.Assembly{Said: dialect.Begun(prefill)}}
}

// reader assembles the first candidate of an answer. Its texts are joined without a
// separator.
type reader struct {
	dialect.Assembly
	n int // number of calls
}

func (r *reader) Event(_, data []byte) {
	r.Over = r.Over || dialect.IsDone(data)
	r.read(data)
}

// Body implements dialect.Reader. A streamed answer that is not in the form of events is an
// array.
func (r *reader) Body(body []byte) {
	r.Over = gjson.ValidBytes(body)
	r.read(body)
}

func (r *reader) read(data []byte) {
	doc := dialect.Document(data)
	if !doc.IsArray() {
		r.chunk(doc)
		return
	}
	doc.ForEach(func(_, chunk gjson.Result) bool {
		r.chunk(chunk)
		return true
	})
}

// chunk reads a piece of an answer, which may be all of it.
func (r *reader) chunk(doc gjson.Result) {
	doc.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "responseId":
			r.Keys.Add(value.Str)
		case "error":
			r.Failed = r.Failed || dialect.Holds(value)
		case "promptFeedback":
			if value.Get("blockReason").Str != "" {
				r.End = dialect.EndFilter
			}
		case "usageMetadata": // each has the totals so far
			r.Usage = usage(value)
		case "candidates":
			value.ForEach(func(_, c gjson.Result) bool {
				if c.Get("index").Int() == 0 {
					r.candidate(c)
				}
				return true
			})
		}
		return true
	})
}

func (r *reader) candidate(c gjson.Result) {
	c.Get("content.parts").ForEach(func(_, part gjson.Result) bool {
		if call := part.Get("functionCall"); dialect.Holds(call) {
			r.Call(r.n, call.Get("args").Raw)
			r.n++
		}
		if text := part.Get("text"); text.Type == gjson.String && !part.Get("thought").Bool() {
			r.Said.Add(text.Str)
		}
		return true
	})
	r.Finish(c.Get("finishReason").Str)
}

// usage reads the usage of an answer. Thoughts are not in candidatesTokenCount.
func usage(u gjson.Result) (out dialect.Usage) {
	u.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "promptTokenCount", "toolUsePromptTokenCount":
			out.Input += dialect.Tokens(value)
		case "cachedContentTokenCount":
			out.Cached = dialect.Tokens(value)
		case "candidatesTokenCount", "thoughtsTokenCount":
			out.Output += dialect.Tokens(value)
		}
		return true
	})
	return out
}
