package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// NewReader implements dialect.Dialect.
// A message of the model at the end of a request is no prefill here: the
// answer is a message of its own.
func (Dialect) NewReader(string) dialect.Reader { return &reader{} }

// reader assembles an answer from its last event, which holds all of it, or from the
// earlier items: ChatGPT's backend leaves the last event's output empty. Other servers send
// nothing but the pieces of the text.
type reader struct {
	dialect.Assembly // of the completed messages

	id    string
	item  string       // the id of the last message
	loose dialect.Said // from the pieces after the completed messages
	n     int          // number of calls, actions for the client before the turn ends
}

func (r *reader) Event(_, data []byte) {
	if dialect.IsDone(data) {
		r.Over = true
		return
	}
	doc := dialect.Document(data)
	switch doc.Get("type").Str {
	case "response.created":
		if doc.Get("response.background").Bool() { // a stream that breaks can be resumed
			r.id = strings.Clone(doc.Get("response.id").Str)
		}
	case "response.output_text.delta":
		r.loose.Add(doc.Get("delta").Str)
	case "response.output_item.done":
		r.add(doc.Get("item"))
	case "response.completed":
		r.Over = true
		r.whole(doc.Get("response"))
	case "response.incomplete", "response.failed", "response.cancelled":
		r.whole(doc.Get("response"))
	case "error":
		r.End = dialect.EndError
	}
}

func (r *reader) Body(body []byte) {
	r.Over = gjson.ValidBytes(body)
	r.whole(dialect.Document(body))
}

// whole takes a response object.
func (r *reader) whole(response gjson.Result) {
	if id := response.Get("id").Str; id != "" {
		r.id = strings.Clone(id)
		r.Keys.Add(id)
	}
	r.Usage = dialect.OpenAIUsage(response.Get("usage"))
	if output := response.Get("output"); len(output.Array()) > 0 {
		r.Said, r.Calls, r.n = dialect.Said{}, nil, 0
		output.ForEach(func(_, item gjson.Result) bool {
			r.add(item)
			return true
		})
	}
	switch status := response.Get("status").Str; {
	case dialect.Holds(response.Get("error")), status == "failed":
		r.End = dialect.EndError
	case status == "queued" || status == "in_progress": // in the background: the client fetches it later
		r.Over = false
	case status == "incomplete":
		r.End = incomplete(response.Get("incomplete_details.reason").Str)
	default:
		r.End = dialect.EndOf(status)
	}
}

// incomplete returns the end of an incomplete answer, by the provider's reason.
func incomplete(reason string) dialect.End {
	switch end := dialect.EndOf(reason); end {
	case dialect.EndUnknown:
		return dialect.EndError
	case dialect.EndStop:
		return dialect.EndLength
	default:
		return end
	}
}

// add takes an output item. It drops commentary, which is not part of the answer.
func (r *reader) add(item gjson.Result) {
	switch kind := item.Get("type").Str; {
	case kind == "message":
		if r.loose = (dialect.Said{}); item.Get("phase").Str == "commentary" {
			return
		}
		r.item = strings.Clone(item.Get("id").Str)
		r.Keys.Add(r.item)
		item.Get("content").ForEach(func(_, part gjson.Result) bool {
			if part.Get("type").Str == "output_text" {
				r.Said.Next()
				r.Said.Add(part.Get("text").Str)
			}
			return true
		})
	case strings.HasSuffix(kind, "_call") && !serverCall(kind), kind == "mcp_approval_request":
		r.Keys.Add(item.Get("call_id").Str)
		r.Call(r.n, item.Get("arguments").Str)
		r.Calls.Made.Call(item.Get("call_id").String(), item.Get("name").String(), arguments(item)...)
		r.n++
	}
}

// serverCall reports whether the provider carries out such a call itself.
func serverCall(kind string) bool {
	switch kind {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call":
		return true
	}
	return false
}

func (r *reader) Answer() dialect.Answer {
	r.Failed = r.End == dialect.EndError
	a := r.Assembly.Answer()
	if r.Failed {
		return a
	}
	if a.ID, a.Item = r.id, r.item; a.Text == "" && (r.Over || r.End != dialect.EndUnknown) {
		a.Text = r.loose.Text()
	}
	return a.Ended(r.Over)
}
