package capture

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// truncated ends a text that was cut.
const truncated = "…[truncated]"

// messages are a turn as it is written to one group, less what the group has
// already: what the person said, and what was answered.
func (t *Turn) messages(scope graphiti.Scope, have sides, maxChars int, now time.Time) []graphiti.Message {
	source := t.source(scope)
	answer := dropBlocks(t.Assistant)
	if t.Tools != "" {
		answer = strings.TrimSpace(answer) + "\n(tools used: " + t.Tools + ")"
	}
	var out []graphiti.Message
	for _, m := range []struct {
		side sides
		role graphiti.RoleType
		text string
		at   time.Time
	}{{sideUser, graphiti.RoleUser, dropBlocks(t.User), t.Said}, {sideAssistant, graphiti.RoleAssistant, answer, t.Answered}} {
		text := clip(strings.TrimSpace(m.text), maxChars)
		if text == "" || have&m.side != 0 {
			continue
		}
		if m.at.After(now) { // Graphiti hides what lies in the future
			m.at = now
		}
		out = append(out, graphiti.Message{
			Name:              graphiti.EpisodeName(t.ID, m.role),
			RoleType:          m.role,
			Content:           text,
			Timestamp:         m.at.UTC(),
			SourceDescription: source,
		})
	}
	return out
}

// source says where a turn comes from, as a small JSON object. Strings of
// ours and of clients are all it holds, so that it cannot fail.
func (t *Turn) source(scope graphiti.Scope) string {
	b, _ := json.Marshal(struct {
		Source string         `json:"source"`
		Scope  graphiti.Scope `json:"scope"`
		Client string         `json:"client,omitempty"`
		Git    Git            `json:"git,omitzero"`
	}{"graphiti-proxy", scope, t.Client, t.Git})
	return string(b)
}

// dropBlocks takes out our own blocks, also when the model quotes one: a
// memory must not feed on itself. One that is not closed goes on to the end.
func dropBlocks(s string) string {
	const open, shut = "<graphiti_memory>", "</graphiti_memory>"
	for {
		i := strings.Index(s, open)
		if i < 0 {
			return s
		}
		j := strings.Index(s[i:], shut)
		if j < 0 {
			return s[:i]
		}
		s = s[:i] + s[i+j+len(shut):]
	}
}

// clip shortens s to max characters, the mark at its end included.
func clip(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	keep := max - utf8.RuneCountInString(truncated)
	for i := range s {
		if keep == 0 {
			return s[:i] + truncated
		}
		keep--
	}
	return s
}
