package dialect

import (
	"slices"
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
	keptEnd   = 1 << 10  // bytes kept of each end of a long result
	maxRound  = 1 << 20  // bytes of a round
	maxInputs = 64 << 10 // bytes of a call's arguments
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
			text := a.String()
			c.Arguments = strings.Clone(text[:min(len(text), maxInputs)])
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
	if len(text) > 2*keptEnd {
		text = text[:keptEnd] + "\n" + text[len(text)-keptEnd:]
	}
	w.Results = append(w.Results, Result{ID: strings.Clone(id), Text: strings.Clone(text), Failed: failed})
}

// Round returns a copy of the newest tool round: the model's last calls, their results, and
// the messages after them, as a JSON array. A huge round has no end. Round returns nil if the
// request has no new results.
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
	from := c.Messages[i].start
	return slices.Concat([]byte{'['}, c.body[from:min(c.end, from+maxRound)])
}

// ReadRound returns the calls and results in a round.
func ReadRound(d Dialect, round []byte) (w Work) {
	gjson.ParseBytes(round).ForEach(func(_, item gjson.Result) bool {
		d.Work(item, &w)
		return true
	})
	return w
}
