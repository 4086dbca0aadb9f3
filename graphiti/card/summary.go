package card

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Summary has the parts of a client's summary of a conversation.
type Summary struct {
	About string `json:"about,omitempty"` // one line; may be empty
	Open  string `json:"open,omitempty"`  // open points, in one line; may be empty
}

// summaries returns the name of the list of a session's summaries in a project.
func summaries(group, session, owner string) string {
	return "summary:" + group + ":" + graphiti.SessionScopeOf(session, owner)
}

// keepSummary stores the parts of a conversation's summary in a project's group.
func (c Cards) keepSummary(ctx context.Context, t *ledger.Turn, group string) error {
	s := readSummary(t.User)
	if s == (Summary{}) || t.OfSession() == "" {
		return nil
	}
	body, _ := json.Marshal(s) // strings only
	return c.Lists.Add(ctx, summaries(group, t.OfSession(), t.Owner), body, t.Generation,
		group, graphiti.SessionScopeOf(t.OfSession(), ""), graphiti.SessionScopeOf(t.OfSession(), t.Owner))
}

// Summary returns the newest summary of a session, given by its hash, in a project's group.
// It returns the zero Summary if there is none.
func (c Cards) Summary(ctx context.Context, group, session, owner string) (s Summary, err error) {
	first := true
	err = c.Lists.Entries(ctx, func(_ string, body []byte) {
		if first {
			_ = json.Unmarshal(body, &s) // an unreadable entry counts as empty
			first = false
		}
	}, summaries(group, session, owner))
	return s, err
}

var (
	// aboutHeading and openHeading match the headings of these parts in the summaries of
	// Claude Code, opencode, Codex and Gemini, and common variants.
	aboutHeading = regexp.MustCompile(`(?i)^(primary request( and intent)?|goal|overall goal|objective|task|user'?s? (request|goal|intent)|context|overview|summary)$`)
	openHeading  = regexp.MustCompile(`(?i)^(pending tasks?|open|open (tasks?|questions?|points?|items?)|next steps?|optional next step|remaining( work| tasks?)?|what remains( to be done)?|to-?dos?|left to do|unfinished( work)?|(current )?(plan|status): next)$`)

	heading = regexp.MustCompile(`^[#*\s\d.)<>/_-]*([^:*#<>\n]{3,60}?)[*:>\s]*(:|$|\*\*)\s*(.*)$`)
	bullet  = regexp.MustCompile(`^\s*([-*•]|\d+[.)])\s+`)
)

// openPoints bounds the open points of a Summary.
const openPoints = 3

// readSummary finds the parts of a summary by their headings.
func readSummary(text string) (s Summary) {
	part, points := (*string)(nil), 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			name := strings.TrimSpace(m[1])
			switch {
			case s.About == "" && aboutHeading.MatchString(name):
				part, points, line = &s.About, 1, m[3]
			case s.Open == "" && openHeading.MatchString(name):
				part, points, line = &s.Open, openPoints, m[3]
			case strings.HasSuffix(line, ":") || strings.HasPrefix(line, "#"):
				part = nil
			}
		}
		line = strings.TrimSpace(strings.ReplaceAll(bullet.ReplaceAllString(line, ""), "**", ""))
		done := none.MatchString(line) || strings.HasPrefix(strings.ToLower(line), "[x]")
		line = strings.TrimPrefix(line, "[ ] ")
		if part == nil || points == 0 || line == "" || done {
			continue
		}
		if *part != "" {
			*part += "; "
		}
		*part = shorten(*part + line)
		points--
	}
	return s
}

// none matches the content of an empty list, such as "none" or "no pending tasks".
var none = regexp.MustCompile(`(?i)^(none|nothing|n/a|-|no (pending|open|remaining|further) .*)[.!]?$`)
