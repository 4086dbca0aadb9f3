package dialect

import (
	"fmt"
	"slices"
	"strings"
)

// AnswerTo is what the model said last before somebody spoke again after
// message i; nil when it said nothing, or when another model had asked. What is
// answered to a client's own message is not said to the person: some clients answer
// those themselves.
func (c *Conversation) AnswerTo(i int) (text []byte) {
	if c.spawned {
		return nil
	}
	ended := false
	for j := i + 1; j < len(c.Messages) && !c.Messages[j].Person && (!ended || !c.asks(j)); j++ {
		if c.isSummary(j) {
			return nil // the message was said long before
		}
		if c.Messages[j].Role == RoleAssistant {
			if said := c.Text(j); len(said) > 0 {
				text = said
			}
			ended = ended || c.ends(j)
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
func (c *Conversation) ToolsUsed(d Dialect) string {
	var names []string
	times := make(map[string]int)
	behind := 0 // where the newest message ends at the latest
	if c.Last >= 0 {
		behind = c.Messages[c.Last].At
	}
	use := func(name string) {
		n := toolName(name)
		if times[n]++; times[n] == 1 {
			names = append(names, n)
		}
	}
	d.Calls(c.body, behind, use)
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
