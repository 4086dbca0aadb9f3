package capture

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Directive is a line in which a person asks to store a text verbatim.
type Directive struct {
	Kind  string // one of graphiti.Kinds
	Scope string // as written: session, workspace, user or agent; or ""
	Text  string
}

const (
	maxDirectives     = 10
	maxDirectiveChars = 1000
)

// directiveLine matches a line such as "- preference (project): tabs, not spaces".
var directiveLine = regexp.MustCompile(`^(?i)\s*(?:[-*]\s+)?(decision|lesson(?:[\s_]+learned)?|preference|procedure|task(?:[\s_]+update)?|terminology|repo[\s_]+state)` +
	`(?:\s*\((session|workspace|project|user|global|agent)\))?:\s+(\S.*)`)

// The kinds by their first letters, and the scopes with another name.
var (
	directiveKinds = map[string]string{
		"deci": "decision", "less": "lesson_learned", "pref": "preference", "proc": "procedure", "task": "task_update", "term": "terminology", "repo": "repo_state",
	}
	directiveScopes = map[string]string{"project": "workspace", "global": "user"}
)

// Directives returns the directives in a person's message, and the number of overlong ones.
// Lines within a code block do not count.
func Directives(text string) (list []Directive, tooLong int) {
	if !strings.Contains(text, ": ") {
		return nil, 0
	}
	for line := range words.OutsideFences(text) {
		m := directiveLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		scope := strings.ToLower(m[2])
		d := Directive{directiveKinds[strings.ToLower(m[1][:4])], cmp.Or(directiveScopes[scope], scope), strings.TrimSpace(m[3])}
		if utf8.RuneCountInString(d.Text) > maxDirectiveChars {
			tooLong++
			continue
		}
		if list = append(list, d); len(list) == maxDirectives {
			break
		}
	}
	return list, tooLong
}
