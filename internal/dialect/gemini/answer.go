package gemini

import (
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func (Dialect) NewReader(prefill string) dialect.Reader {
	return &reader{said: dialect.Begun(prefill)}
}

// reader assembles the first candidate of an answer. Its texts are joined without a
// separator.
type reader struct {
	said   dialect.Said
	calls  *dialect.Calls // of functions that the client has
	n      int            // number of those calls
	end    dialect.End
	over   bool // all of it was read
	failed bool
	keys   dialect.Keys
	usage  dialect.Usage
}

func (r *reader) Event(_, data []byte) {
	r.over = r.over || dialect.IsDone(data)
	r.read(data)
}

// Body implements dialect.Reader. A streamed answer that is not in the form of events is an
// array.
func (r *reader) Body(body []byte) {
	r.over = gjson.ValidBytes(body)
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
			r.keys.Add(value.Str)
		case "error":
			r.failed = r.failed || dialect.Holds(value)
		case "promptFeedback":
			if value.Get("blockReason").Str != "" {
				r.end = dialect.EndFilter
			}
		case "usageMetadata": // each has the totals so far
			r.usage = usage(value)
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
			if r.calls == nil {
				r.calls = &dialect.Calls{}
			}
			r.calls.Add(r.n, call.Get("args").Raw)
			r.n++
		}
		if text := part.Get("text"); text.Type == gjson.String && !part.Get("thought").Bool() {
			r.said.Add(text.Str)
		}
		return true
	})
	switch end := dialect.EndOf(c.Get("finishReason").Str); {
	case end == dialect.EndError:
		r.failed = true
	case end != dialect.EndUnknown && r.end != dialect.EndFilter:
		r.end = end
	}
}

func (r *reader) Answer() dialect.Answer {
	if r.failed {
		return dialect.Answer{End: dialect.EndError}
	}
	return dialect.Answer{Text: r.said.Text(), End: r.end, Keys: r.keys, Usage: r.usage, Calls: r.calls}.Ended(r.over)
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
