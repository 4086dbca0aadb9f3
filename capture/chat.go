package capture

import (
	"bytes"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"
)

// maxAnswer bounds the text that is kept of an answer.
const maxAnswer = 1 << 20

// Chat reads the answers of the Chat Completions API.
type Chat struct{}

// NewReader implements Dialect.
func (Chat) NewReader() Reader { return &chatReader{} }

// chatReader assembles the first choice of an answer.
type chatReader struct {
	text   strings.Builder
	full   bool
	calls  bool // of tools; some servers end such an answer with "stop"
	end    End
	failed bool
	usage  Usage
}

// Event implements Reader.
func (r *chatReader) Event(_, data []byte) {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		return // finish_reason was the end
	}
	r.read(data, "delta")
}

// Body implements Reader.
func (r *chatReader) Body(body []byte) { r.read(body, "message") }

// read takes a chunk, or a whole answer; said names the member that holds
// what was said. Servers fail in the middle of a stream in several ways: OpenAI
// and SGLang with an error member, vLLM with an object "error", OpenRouter with
// both an error and a choice.
func (r *chatReader) read(data []byte, said string) {
	// gjson copies a result that it gets from bytes; this one does not outlive
	// the call.
	doc := gjson.Parse(unsafe.String(unsafe.SliceData(data), len(data)))
	doc.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "error":
			r.failed = r.failed || value.Type != gjson.Null
		case "usage":
			if value.IsObject() { // null in all events but the last
				r.usage = openAIUsage(value)
			}
		case "object":
			r.failed = r.failed || value.Str == "error"
		case "choices":
			value.ForEach(func(_, choice gjson.Result) bool {
				if choice.Get("index").Int() == 0 {
					r.choice(choice, said)
				}
				return true
			})
		}
		return true
	})
}

func (r *chatReader) choice(choice gjson.Result, said string) {
	m := choice.Get(said)
	if c := m.Get("content"); c.Type == gjson.String {
		r.add(c.Str)
	} else if c.IsArray() {
		c.ForEach(func(_, part gjson.Result) bool {
			if part.Get("type").Str == "text" {
				r.add(part.Get("text").Str)
			}
			return true
		})
	}
	if t := m.Get("audio.transcript"); t.Type == gjson.String {
		r.add(t.Str)
	}
	if m.Get("refusal").Str != "" {
		r.end = EndFilter
	}
	if m.Get("tool_calls.0").Exists() || m.Get("function_call.name").Str != "" {
		r.calls = true
	}
	switch reason := choice.Get("finish_reason").Str; reason {
	case "":
	case "stop":
		r.finish(EndStop)
	case "length":
		r.finish(EndLength)
	case "tool_calls", "function_call":
		r.finish(EndToolCalls)
	case "content_filter":
		r.finish(EndFilter)
	case "error":
		r.failed = true
	default:
		r.finish(EndUnknown)
	}
}

// finish notes the end; a refusal that came before stands.
func (r *chatReader) finish(e End) {
	if r.end != EndFilter {
		r.end = e
	}
}

func (r *chatReader) add(s string) {
	if r.full {
		return
	}
	if room := maxAnswer - r.text.Len(); len(s) > room {
		for room > 0 && !utf8.RuneStart(s[room]) {
			room--
		}
		s, r.full = s[:room], true
	}
	r.text.WriteString(s)
}

// Answer implements Reader.
func (r *chatReader) Answer() Answer {
	if r.failed {
		return Answer{End: EndError}
	}
	return Answer{Text: strings.TrimSpace(dropThoughts(r.text.String())), End: r.end.after(r.calls), Usage: r.usage}
}

// dropThoughts takes out reasoning that some models write into their answer.
// What is not closed is left.
func dropThoughts(s string) string {
	s, open := dropBetween(s, "<think>", "</think>")
	return s + open
}

// dropBetween takes out of s what stands between two tags, and the tags. What
// others leave behind may be a tag too. open is the rest, from a first tag that
// no second one follows. It reads s once: an answer may be full of them.
func dropBetween(s, first, second string) (kept, open string) {
	if !strings.Contains(s, first) {
		return s, ""
	}
	out := make([]byte, 0, len(s))
	for {
		i := strings.IndexByte(s, first[len(first)-1]) + 1
		if i == 0 {
			return string(append(out, s...)), ""
		}
		out, s = append(out, s[:i]...), s[i:]
		if !bytes.HasSuffix(out, []byte(first)) {
			continue
		}
		kept := len(out) - len(first)
		j := strings.Index(s, second)
		if j < 0 {
			return string(out[:kept]), first + s
		}
		out, s = out[:kept], s[j+len(second):]
	}
}
