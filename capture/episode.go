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
	if t.Kind != "" {
		return t.curated(scope, source, have, maxChars, now)
	}
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
			Role:              t.Speaker,
			RoleType:          m.role,
			Content:           text,
			Timestamp:         m.at.UTC(),
			SourceDescription: source,
		})
	}
	return out
}

// curated is a curated text as it is written to one group.
func (t *Turn) curated(scope graphiti.Scope, source string, have sides, maxChars int, now time.Time) []graphiti.Message {
	at := t.Said
	if at.After(now) {
		at = now
	}
	text := clip(strings.TrimSpace(dropBlocks(t.User)), maxChars)
	if text == "" || have != 0 {
		return nil
	}
	return []graphiti.Message{{
		Name:              graphiti.EpisodeName(t.ID, graphiti.RoleSystem),
		RoleType:          graphiti.RoleSystem,
		Content:           graphiti.Curated{Kind: t.Kind, Scope: scope, At: at, Text: text}.String(),
		Timestamp:         at.UTC(),
		SourceDescription: source,
	}}
}

// source says where a turn comes from, as a small JSON object. Strings of
// ours and of clients are all it holds, so that it cannot fail.
func (t *Turn) source(scope graphiti.Scope) string {
	b, _ := json.Marshal(struct {
		Source string         `json:"source"`
		Scope  graphiti.Scope `json:"scope"`
		Client string         `json:"client,omitempty"`
		Talk   string         `json:"session,omitempty"`
		Git    Git            `json:"git,omitzero"`
	}{"graphiti-proxy", scope, t.Client, graphiti.Talk(t.Session), t.Git})
	return string(b)
}

// dropBlocks takes out our own blocks, also when the model quotes one: a
// memory must not feed on itself. One that is not closed goes on to the end.
func dropBlocks(s string) string {
	s, _ = dropBetween(s, "<graphiti_memory>", "</graphiti_memory>")
	return s
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
