package capture

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/sjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// truncated ends a text that was cut.
const truncated = "…[truncated]"

// messages are a turn as it is written to one group: what the person said, and
// what was answered.
func (t *Turn) messages(scope graphiti.Scope, maxChars int, now time.Time) []graphiti.Message {
	source, _ := sjson.Set(`{"source":"graphiti-proxy"}`, "scope", string(scope)) // a constant path: cannot fail
	if t.Client != "" {
		source, _ = sjson.Set(source, "client", t.Client)
	}
	var out []graphiti.Message
	for _, m := range []struct {
		role graphiti.RoleType
		text string
		at   time.Time
	}{{graphiti.RoleUser, t.User, t.Said}, {graphiti.RoleAssistant, t.Assistant, t.Answered}} {
		text := clip(strings.TrimSpace(dropBlocks(m.text)), maxChars)
		if text == "" {
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
