package responses

import (
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

// NewReader implements dialect.Dialect.
func (Dialect) NewReader() dialect.Reader { return &reader{} }

// reader assembles an answer from its last event, which holds it
// whole, or else from the items that ended before. ChatGPT's backend leaves
// the last event's output empty.
type reader struct {
	id    string
	said  string   // the id of the last message
	texts []string // of the messages that ended
	calls bool     // something is to be done before the turn ends
	size  int
	end   dialect.End
	usage dialect.Usage
}

// Event implements dialect.Reader.
func (r *reader) Event(_, data []byte) {
	doc := gjson.Parse(unsafe.String(unsafe.SliceData(data), len(data)))
	switch doc.Get("type").Str {
	case "response.output_item.done":
		r.item(doc.Get("item"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		r.whole(doc.Get("response"))
	case "error":
		r.end = dialect.EndError
	}
}

// Body implements dialect.Reader.
func (r *reader) Body(body []byte) {
	r.whole(gjson.Parse(unsafe.String(unsafe.SliceData(body), len(body))))
}

// whole takes a response object.
func (r *reader) whole(response gjson.Result) {
	r.id = strings.Clone(response.Get("id").Str)
	r.usage = dialect.OpenAIUsage(response.Get("usage"))
	if output := response.Get("output"); len(output.Array()) > 0 {
		r.texts, r.calls, r.size = nil, false, 0
		output.ForEach(func(_, item gjson.Result) bool {
			r.item(item)
			return true
		})
	}
	switch status := response.Get("status").Str; {
	case status == "completed" && r.calls:
		r.end = dialect.EndToolCalls
	case status == "completed":
		r.end = dialect.EndStop
	case status == "queued" || status == "in_progress": // in the background: it is fetched later
		r.end = dialect.EndUnknown
	default:
		r.end = dialect.EndError
	}
}

// item takes an output item. What a model says beside its answer is not kept.
func (r *reader) item(item gjson.Result) {
	switch kind := item.Get("type").Str; {
	case kind == "message" && item.Get("phase").Str != "commentary":
		r.said = strings.Clone(item.Get("id").Str)
		item.Get("content").ForEach(func(_, part gjson.Result) bool {
			if text := part.Get("text").Str; part.Get("type").Str == "output_text" && text != "" && r.size+len(text) <= dialect.MaxAnswer {
				r.texts = append(r.texts, strings.Clone(text))
				r.size += len(text)
			}
			return true
		})
	case strings.HasSuffix(kind, "_call") && !serverCall(kind), kind == "mcp_approval_request":
		r.calls = true
	}
}

// serverCall tells the calls that the provider carries out itself.
func serverCall(kind string) bool {
	switch kind {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call":
		return true
	}
	return false
}

// Answer implements dialect.Reader.
func (r *reader) Answer() dialect.Answer {
	if r.end == dialect.EndError {
		return dialect.Answer{End: dialect.EndError}
	}
	return dialect.Answer{Text: dialect.WithoutThoughts(strings.Join(r.texts, "\n")), End: r.end, ID: r.id, Item: r.said, Usage: r.usage}
}
