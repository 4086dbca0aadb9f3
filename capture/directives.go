package capture

import (
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
	maxDirectiveHead  = 64 // bytes before the colon
)

// The spellings of kinds and scopes, in lower case.
var (
	directiveKinds = map[string]string{
		"decision": "decision", "lesson": "lesson_learned", "lesson learned": "lesson_learned", "preference": "preference", "procedure": "procedure",
		"task": "task_update", "task update": "task_update", "terminology": "terminology", "repo state": "repo_state",
	}
	directiveScopes = map[string]string{
		"session": "session", "workspace": "workspace", "project": "workspace", "user": "user", "global": "user", "agent": "agent",
	}
)

// Directives returns the directives in a person's message, and the number of overlong ones.
// Lines within a code block do not count.
func Directives(text string) (list []Directive, tooLong int) {
	if !strings.Contains(text, ": ") {
		return nil, 0
	}
	for line := range words.OutsideFences(text) {
		d, ok := directive(line)
		if !ok {
			continue
		}
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

// directive parses a line such as "- preference (project): tabs, not spaces". Most lines of
// a large text are not directives, so rejecting a line must be cheap.
func directive(line string) (d Directive, ok bool) {
	head, text, ok := strings.Cut(line, ":")
	if !ok || len(head) > maxDirectiveHead || head != strings.TrimRight(head, " \t") || text == strings.TrimLeft(text, " \t") {
		return d, false
	}
	if start := strings.TrimLeft(head, "-* \t"); start == "" || strings.IndexByte("dlptrDLPTR", start[0]) < 0 {
		return d, false // not the first letter of any kind
	}
	words := strings.Fields(strings.ToLower(head))
	if words[0] == "-" || words[0] == "*" {
		words = words[1:]
	}
	name, scope, scoped := strings.Cut(strings.Join(words, " "), "(")
	scope, closed := strings.CutSuffix(scope, ")")
	d = Directive{directiveKinds[strings.TrimSpace(strings.ReplaceAll(name, "_", " "))], directiveScopes[scope], strings.TrimSpace(text)}
	return d, d.Kind != "" && d.Text != "" && scoped == closed && scoped == (d.Scope != "")
}
