package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// AnswerTo returns the model's last words after message i and before the person's next
// message; nil if there are none, or if a model had asked. Answers to a client's own
// messages do not count: some clients write those themselves. ended is false if the person
// spoke again before the model had answered in words.
func (c *Conversation) AnswerTo(i int) (text []byte, ended bool) {
	if c.spawned {
		return nil, true
	}
	for j := i + 1; j < len(c.Messages) && !c.Messages[j].Person && (!ended || !c.asks(j)); j++ {
		if c.isSummary(j) {
			return nil, true // message i is much older
		}
		if c.Messages[j].Role == RoleAssistant {
			if said := c.Text(j); len(said) > 0 {
				text, ended = said, ended || c.ends(j)
			}
		}
	}
	return text, ended
}

// Prepared reports whether the client has put an exchange of its own before the person's
// first words, such as an example, or a summary with an answer. Then the client may have
// written more of the history.
func (c *Conversation) Prepared() bool {
	asked := false
	for i := range c.Messages {
		switch m := &c.Messages[i]; {
		case m.Person:
			return false
		case m.Role == RoleAssistant && asked:
			return true
		}
		asked = asked || c.asks(i) && c.clients(i)
	}
	return false
}

const (
	maxTools    = 10 // tools in the list
	maxToolName = 64
)

// ToolsUsed returns the names of the tools that were called since the newest message of a
// person, such as "read_file ×3, bash", without their arguments and results. It reads the
// body again.
func (c *Conversation) ToolsUsed(d Dialect) string {
	var names []string
	times := make(map[string]int)
	var w Work
	c.rawItems(c.Last+1, func(raw []byte) bool {
		d.Work(gjson.ParseBytes(raw), &w)
		return true
	})
	for i := range w.Calls {
		n := toolName(w.Calls[i].Name)
		if times[n]++; times[n] == 1 {
			names = append(names, n)
		}
	}
	for i, n := range names {
		if times[n] > 1 {
			names[i] = fmt.Sprintf("%s ×%d", n, times[n])
		}
	}
	if len(names) > maxTools {
		names = append(names[:maxTools], "…")
	}
	return strings.Join(names, ", ")
}

// toolName drops the characters of a name that APIs do not allow.
func toolName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./", r) {
			return r
		}
		return -1
	}, s[:min(len(s), maxToolName)])
}

// Answers yields the model's answers to a person, newest first. A model's message before
// the person's first one is a client's greeting, and does not count.
func (c *Conversation) Answers(yield func(i int) bool) {
	first := slices.IndexFunc(c.Messages, func(m Message) bool { return m.Person })
	if first < 0 {
		return
	}
	for i := len(c.Messages) - 1; i > first; i-- {
		if c.Messages[i].Role == RoleAssistant && !yield(i) {
			return
		}
	}
}
