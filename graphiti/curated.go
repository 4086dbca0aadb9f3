package graphiti

import (
	"strings"
	"time"
)

// Curated is a text other than a turn: promoted by a person, or a client's summary. Other
// clients of Graphiti use the same form.
type Curated struct {
	Kind  string // such as decision; see Kinds
	Scope Scope
	At    time.Time
	Text  string
}

// Kinds lists the kinds of promoted texts.
var Kinds = []string{"decision", "lesson_learned", "preference", "procedure", "task_update", "terminology", "repo_state"}

// Other kinds.
const (
	KindSessionSummary   = "session_summary"
	KindOwnershipContext = "ownership_context"

	// KindWork is the kind of an agent's work in a turn. It takes the place of a role in the name of
	// the message.
	KindWork = "work"

	// BetweenWork separates the lines of a message of this kind.
	BetweenWork = ";\n"
)

const (
	curatedOpen  = `<graphiti_episode kind="`
	curatedClose = "</graphiti_episode>"
)

// String returns the stored form. It replaces end tags in the text.
func (c Curated) String() string {
	text := strings.ReplaceAll(strings.TrimSpace(c.Text), curatedClose, "‹/graphiti_episode›")
	return curatedOpen + c.Kind + "\">\nsource: graphiti-proxy\nscope: " + string(c.Scope) +
		"\ntimestamp: " + c.At.UTC().Format(time.RFC3339) + "\ncontent:\n" + text + "\n" + curatedClose
}

// IsWork reports whether a message with this name describes an agent's work.
func IsWork(name string) bool {
	return strings.HasPrefix(name, turnPrefix) && strings.HasSuffix(name, "."+KindWork)
}

// ParseCurated parses the form of String. s is untrusted.
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
			c.At, _ = time.Parse(time.RFC3339, value) // zero if missing or malformed
		}
	}
	return c, true
}
