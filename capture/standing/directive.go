package standing

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
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

// applyDirectives stores the directives of a message, such as "decision: …". Those of a
// message that says anything else, or names something to fetch or run, wait. One for the person
// applies in its place until it is confirmed.
func (k *Keeper) applyDirectives(ctx context.Context, s *Message, h *inject.Heard) {
	found, tooLong := Directives(s.Text)
	h.Refused += tooLong
	// A template may continue the line of a directive with a question or a label.
	continues := func(d Directive) bool { return strings.ContainsAny(d.Text, "?？:：[]<>{}") }
	acts := func(d Directive) bool { return card.Acts(d.Text) }
	said := message{k: k, Message: *s, alone: s.Typed && len(found) > 0 && !s.FromFile() && !slices.ContainsFunc(found, acts) && !slices.ContainsFunc(found, continues) && len(found) == strings.Count(strings.TrimSpace(s.Text), "\n")+1}
	for _, d := range found {
		scope := graphiti.Scope(d.Scope)
		if scope == "" {
			switch scope = graphiti.ScopeUser; {
			case s.Who.Alone:
				scope = graphiti.ScopeSession
			case s.Who.Workspace != "":
				scope = graphiti.ScopeWorkspace
			}
		}
		group, ok := k.namer().Group(scope, s.Who)
		var err error
		switch {
		case !ok:
			h.Unscoped++
		case k.o.Pipeline.HoldsSecret(d.Text):
			h.Refused++
		case !said.alone || scope == graphiti.ScopeUser:
			l, _ := said.line(card.Statement{Text: d.Text, Instructs: true, Personal: scope == graphiti.ScopeUser})
			if l.Kind, l.State = d.Kind, card.Pending; l.Applies {
				h.Promoted++
			}
			groups, _ := said.targets()
			h.Pending++
			err = k.cards().Put(ctx, l, s.Generation, groups...)
		default:
			t := ledger.Promoted(s.Who, graphiti.Target{Scope: scope, Group: group}, s.Generation, d.Kind, d.Text)
			if k.o.Pipeline.AddAsync([]ledger.Turn{t}) {
				h.Promoted++
			}
		}
		if err != nil {
			k.o.Log.Warn("store a directive failed", "error", err)
		}
	}
}
