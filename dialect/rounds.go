package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// AnswerTo is what the model said last before a person spoke again after
// message i; nil when it said nothing.
func (c *Conversation) AnswerTo(i int) (text []byte) {
	for j := i + 1; j < len(c.Messages) && !c.Messages[j].Person; j++ {
		if c.Messages[j].Role == RoleAssistant {
			if said := c.Text(j); len(said) > 0 {
				text = said
			}
		}
	}
	return text
}

const (
	maxTools    = 10 // that are named
	maxToolName = 64
)

// ToolsUsed names the tools that were called since the newest message of a
// person, such as "read_file ×3, bash": never what they were given or gave.
// It reads the body again, and is for those who asked for it.
func (c *Conversation) ToolsUsed() string {
	var names []string
	times := make(map[string]int)
	use := func(_, name gjson.Result) bool {
		n := toolName(name.String())
		if times[n]++; times[n] == 1 {
			names = append(names, n)
		}
		return true
	}
	said := 0 // where the newest message ends at the latest
	if c.Last >= 0 {
		said = c.Messages[c.Last].at
	}
	for _, list := range []string{"messages", "input"} {
		gjson.GetBytes(c.body, list).ForEach(func(_, m gjson.Result) bool {
			if m.Index > said {
				m.Get("tool_calls.#.function.name").ForEach(use)
				m.Get(`content.#(type=="tool_use")#.name`).ForEach(use)
				if isCall([]byte(m.Get("type").Str)) {
					use(m, m.Get("name"))
				}
			}
			return true
		})
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

// toolName leaves of a name what APIs allow in one.
func toolName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./", r) {
			return r
		}
		return -1
	}, s[:min(len(s), maxToolName)])
}

// Answers are the messages of the model that answer a person, the newest first.
// What stands before the first message of a person answers nobody: clients
// begin all their conversations with the same greeting.
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
