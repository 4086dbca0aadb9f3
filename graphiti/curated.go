package graphiti

import (
	"strings"
	"time"
)

// Curated is a text that is no turn: somebody promoted it, or a client summarised
// a conversation. Other clients of Graphiti write and read the same form.
type Curated struct {
	Kind  string // such as decision; see Kinds
	Scope Scope
	At    time.Time
	Text  string
}

// Kinds are the kinds of texts that a person may promote.
var Kinds = []string{"decision", "lesson_learned", "preference", "procedure", "task_update", "terminology", "repo_state"}

// The kinds that no person promotes.
const (
	KindSessionSummary   = "session_summary"
	KindOwnershipContext = "ownership_context"
)

const (
	curatedOpen  = `<graphiti_episode kind="`
	curatedClose = "</graphiti_episode>"
)

// String returns the form in which the text is stored. It replaces an end tag in
// the text.
func (c Curated) String() string {
	text := strings.ReplaceAll(strings.TrimSpace(c.Text), curatedClose, "‹/graphiti_episode›")
	return curatedOpen + c.Kind + "\">\nsource: graphiti-proxy\nscope: " + string(c.Scope) +
		"\ntimestamp: " + c.At.UTC().Format(time.RFC3339) + "\ncontent:\n" + text + "\n" + curatedClose
}

// ParseCurated reads the form of String. Anybody may have written s.
func ParseCurated(s string) (c Curated, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimSpace(s), curatedOpen)
	if !ok {
		return c, false
	}
	kind, rest, _ := strings.Cut(s, `">`)
	head, text, ok := strings.Cut(rest, "\ncontent:\n")
	if !ok || len(kind) > 64 || strings.ContainsAny(kind, "\"\n") {
		return c, false
	}
	c.Kind = kind
	c.Text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), curatedClose))
	for line := range strings.Lines(head) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name {
		case "scope":
			c.Scope = Scope(value)
		case "timestamp":
			c.At, _ = time.Parse(time.RFC3339, value) // the zero time: not known
		}
	}
	return c, true
}
