package dialect

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

const (
	maxCalls     = 64        // calls of an answer with gathered arguments
	maxArguments = 256 << 10 // bytes of them
	maxStrings   = 256       // in them
)

// Calls gathers the arguments of an answer's tool calls. The zero value is ready, and a
// nil Calls is empty.
type Calls struct {
	arguments [][]byte
	bytes     int

	Made Work // the same calls, if the next request may hold only their results
}

// Add adds a piece to the arguments of a call. It drops pieces beyond the bounds.
func (c *Calls) Add(call int, piece string) {
	if call < 0 || call >= maxCalls || c.bytes+len(piece) > maxArguments {
		return
	}
	for len(c.arguments) <= call {
		c.arguments = append(c.arguments, nil)
	}
	c.bytes += len(piece)
	c.arguments[call] = append(c.arguments[call], piece...)
}

// Texts returns the strings in the arguments, also those in JSON within a string.
func (c *Calls) Texts() (texts []string) {
	if c == nil {
		return nil
	}
	var walk func(v gjson.Result, deeper int)
	walk = func(v gjson.Result, deeper int) {
		switch {
		case len(texts) >= maxStrings || deeper < 0:
		case v.IsObject() || v.IsArray():
			v.ForEach(func(_, v gjson.Result) bool {
				walk(v, deeper-1)
				return true
			})
		case v.Type == gjson.String:
			text := strings.TrimSpace(v.Str)
			if text == "" {
				return
			}
			if texts = append(texts, text); (text[0] == '{' || text[0] == '[') && gjson.Valid(text) {
				walk(gjson.Parse(text), deeper-1)
			}
		}
	}
	const deep = 8
	for i := range c.arguments {
		walk(gjson.ParseBytes(c.arguments[i]), deep)
	}
	return texts
}

// AfterCalls returns the length of the messages after the model's last one, in bytes.
func (c *Conversation) AfterCalls() int {
	i := len(c.Messages)
	for i > 0 && c.Messages[i-1].Role != RoleAssistant {
		i--
	}
	if i == len(c.Messages) {
		return 0
	}
	return c.end - c.Messages[i].start
}

// Opens reports whether the conversation has no answer yet.
func (c *Conversation) Opens() bool { return c.answer == len(c.Messages) }

// Texts yields the text of message i without the client's additions, and then each of
// its parts.
func (c *Conversation) Texts(i int) func(yield func(text []byte) bool) {
	return func(yield func(text []byte) bool) {
		text := c.Text(i)
		if !yield(text) {
			return
		}
		m := &c.Messages[i]
		for n := range m.to - m.from {
			if part := c.part(m, n); !bytes.Equal(part, text) && !yield(part) {
				return
			}
		}
	}
}
