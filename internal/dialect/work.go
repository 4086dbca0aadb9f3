package dialect

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// Call is one call of a client's tool.
type Call struct {
	ID, Name  string
	Arguments string // JSON, or a tool's free text
}

// Result is the result of a call.
type Result struct {
	ID     string // of its call, or ""
	Text   string
	Failed bool // the client reports an error
}

// Work gathers the tool calls and results of messages. Its zero value is ready.
type Work struct {
	Calls   []Call
	Results []Result
}

const (
	clippedEnd = 4 << 10   // bytes kept of each end of a long string
	maxRound   = 256 << 10 // bytes of a round
)

// Call adds a call, unless it has neither id nor name. Its arguments are the first of several
// values that exists.
func (w *Work) Call(id, name string, arguments ...gjson.Result) {
	if len(w.Calls) >= maxCalls || id == "" && name == "" {
		return
	}
	c := Call{ID: strings.Clone(id), Name: strings.Clone(name)}
	for _, a := range arguments {
		if a.Type != gjson.Null { // null, or absent
			if c.Arguments = a.String(); gjson.Valid(c.Arguments) {
				c.Arguments = string(appendClipped(nil, []byte(c.Arguments)))
			} else {
				c.Arguments = clipped(c.Arguments)
			}
			break
		}
	}
	w.Calls = append(w.Calls, c)
}

// Result adds a result. Its content is a text, or a list of parts, or an object.
func (w *Work) Result(id string, content gjson.Result, failed bool) {
	if len(w.Results) >= maxCalls {
		return
	}
	text := content.String()
	if content.IsArray() {
		var texts []string
		content.ForEach(func(_, part gjson.Result) bool {
			if t := part.Get("text"); t.Type == gjson.String {
				texts = append(texts, t.Str)
			}
			return true
		})
		if texts != nil {
			text = strings.Join(texts, "\n")
		}
	}
	w.Results = append(w.Results, Result{ID: strings.Clone(id), Text: clipped(text), Failed: failed})
}

// clipped returns a copy of both ends of a text, without the lines that it cuts in two:
// half a credential is not recognized.
func clipped(text string) string {
	if len(text) <= 2*clippedEnd {
		return strings.Clone(text)
	}
	head, tail := text[:clippedEnd], text[len(text)-clippedEnd:]
	return head[:strings.LastIndexByte(head, '\n')+1] + tail[strings.IndexByte(tail, '\n')+1:]
}

// Round returns a copy of the newest tool round: the model's last calls, their results, and
// the messages after them, as a JSON array in which long strings are clipped. A huge round has
// no end. Round returns nil if the request has no new results.
func (c *Conversation) Round() []byte {
	i, results := len(c.Messages), false
	for ; i > 0 && c.Messages[i-1].Role != RoleAssistant; i-- {
		results = results || c.Messages[i-1].Results
	}
	if !results {
		return nil
	}
	for i > 0 && (c.Messages[i-1].Role == RoleAssistant || c.Messages[i-1].Silent) {
		i--
	}
	if i == len(c.Messages) || c.Messages[i].start >= c.end {
		return nil
	}
	return appendClipped([]byte{'['}, c.body[c.Messages[i].start:c.end])
}

// ReadRound returns the calls and results in a round.
func ReadRound(d Dialect, round []byte) (w Work) {
	gjson.ParseBytes(round).ForEach(func(_, item gjson.Result) bool {
		d.Work(item, &w)
		return true
	})
	return w
}

// appendClipped appends valid JSON, clips its long strings, and stops at maxRound.
func appendClipped(out, raw []byte) []byte {
	for len(out) < maxRound {
		i := bytes.IndexByte(raw, '"') + 1
		if i == 0 {
			return append(out, raw...)
		}
		out, raw = append(out, raw[:i]...), raw[i:]
		inside := raw[:endOfString(raw)]
		raw = raw[len(inside):]
		if len(inside) > 2*clippedEnd {
			out = append(append(out, headOf(inside[:clippedEnd])...), lineFeed...)
			inside = tailOf(inside[len(inside)-clippedEnd:])
		}
		out = append(append(out, inside...), '"')
		raw = raw[min(1, len(raw)):]
	}
	return out
}

// endOfString returns the index of the quote that ends a JSON string's inside.
func endOfString(raw []byte) (end int) {
	for {
		i := bytes.IndexByte(raw[end:], '"')
		if i < 0 {
			return len(raw)
		}
		end += i
		before := end
		for before > 0 && raw[before-1] == '\\' {
			before--
		}
		if (end-before)%2 == 0 {
			return end
		}
		end++
	}
}

// headOf returns the beginning of a JSON string's inside without its last line, or without
// its last word if it is one line. It cuts no escape in two.
func headOf(text []byte) []byte {
	i := bytes.LastIndex(text, lineFeed)
	if i < 0 {
		i = bytes.LastIndexByte(text, ' ')
	}
	for i > 0 && text[i-1] == '\\' {
		i--
	}
	return text[:max(i, 0)]
}

// tailOf returns the end of a JSON string's inside without its first line, or without its
// first word if it is one line.
func tailOf(text []byte) []byte {
	for _, sep := range [][]byte{lineFeed, {' '}} {
		if _, rest, found := bytes.Cut(text, sep); found {
			return rest
		}
	}
	return nil
}
