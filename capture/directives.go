package capture

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Directive is a line in which a person says that something is worth keeping
// as it stands.
type Directive struct {
	Kind  string // one of graphiti.Kinds
	Scope string // as written: session, workspace, user or agent; may be empty
	Text  string
}

const (
	maxDirectives     = 10
	maxDirectiveChars = 1000
)

var (
	directive = regexp.MustCompile(`(?i)^\s*(?:[-*]\s+)?(decision|lesson|lesson learned|preference|procedure|task|task update|terminology|repo state)(?:\s*\((session|workspace|project|user|global|agent)\))?:\s+(\S.*)$`)

	directiveKinds  = map[string]string{"lesson": "lesson_learned", "task": "task_update"}
	directiveScopes = map[string]string{"project": "workspace", "global": "user"}
)

// Directives finds them in what a person wrote. A line within a code block is
// none.
func Directives(text string) (list []Directive) {
	if !strings.Contains(text, ": ") {
		return nil
	}
	fenced := false
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
			fenced = !fenced
		}
		m := directive.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil || fenced || utf8.RuneCountInString(m[3]) > maxDirectiveChars {
			continue
		}
		kind := strings.ReplaceAll(strings.ToLower(m[1]), " ", "_")
		if k, ok := directiveKinds[kind]; ok {
			kind = k
		}
		scope := strings.ToLower(m[2])
		if s, ok := directiveScopes[scope]; ok {
			scope = s
		}
		if list = append(list, Directive{kind, scope, strings.TrimSpace(m[3])}); len(list) == maxDirectives {
			break
		}
	}
	return list
}
