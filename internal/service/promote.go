package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Promotion is a text worth keeping as it stands.
type Promotion struct {
	Kind  string `json:"kind"`  // one of graphiti.Kinds
	Scope string `json:"scope"` // user, workspace, session or agent
	Text  string `json:"text"`
}

// Promoted says where a text was kept.
type Promoted struct {
	Groups []string `json:"groups"`
	For    string   `json:"for"` // whose they are, in words
}

// Promote keeps a text of a kind in a scope, once.
func (sv *Service) Promote(ctx context.Context, s Selector, p Promotion) (Promoted, error) {
	if strings.TrimSpace(p.Text) == "" {
		return Promoted{}, invalid("say what to keep as text, and its kind, one of " + strings.Join(graphiti.Kinds, ", "))
	}
	if err := s.check(); err != nil {
		return Promoted{}, err
	}
	return sv.promote(ctx, s, p)
}

func (sv *Service) promote(ctx context.Context, s Selector, p Promotion) (kept Promoted, err error) {
	if !slices.Contains(graphiti.Kinds, p.Kind) {
		return kept, fmt.Errorf("kind: %q is not known; write one of %s", p.Kind, strings.Join(graphiti.Kinds, ", "))
	}
	if n, most := utf8.RuneCountInString(strings.TrimSpace(p.Text)), sv.settings().MaxChars; n > most {
		return kept, fmt.Errorf("text: has %d characters, %d are the most; shorten it, or raise ingest.max_message_chars", n, most)
	}
	scope := p.Scope
	if scope == "" { // the most durable one that was named
		switch {
		case s.Workspace != "":
			scope = "workspace"
		case s.Session != "":
			scope = "session"
		}
	}
	target, who, err := sv.target(s, scope)
	if err != nil {
		return kept, err
	}
	if sv.o.Pipeline.HoldsSecret(p.Text) {
		return kept, errors.New("the text looks like it holds a credential; it was not stored")
	}
	kept = Promoted{[]string{target.Group}, sv.keptFor(target.Scope, who, target.Group)}
	t := promoted(who, target, sv.o.State.Generations.Now(), p.Kind, p.Text)
	if err := sv.o.Pipeline.Add(ctx, t); err != nil {
		return kept, err
	}
	// What the memory has already is not kept again, and may be off the card.
	if err := sv.cards().Keep(&t, kept.Groups); err != nil {
		sv.o.Log.Warn("a promoted text cannot be put on the card now", "error", err)
	}
	return kept, nil
}

// promoted is a text as it is kept: the same one once in a group.
func promoted(who graphiti.Who, target graphiti.Target, generation int64, kind, text string) ledger.Turn {
	now := time.Now()
	return ledger.Turn{
		ID: digest("promote", kind, target.Group, strings.Join(strings.Fields(text), " ")), Kind: kind, Session: who.Session,
		Owner: who.Owner(), Workspace: who.Workspace, User: text, Said: now, Answered: now, Client: "graphiti-proxy",
		Targets: []graphiti.Target{target}, Generation: generation, Standalone: true,
	}
}

// Beside returns the caller's own memory, if they are in a project whose turns are not
// kept there.
func (sv *Service) Beside(who graphiti.Who) (t graphiti.Target, ok bool) {
	return sv.namer().Beside(who)
}

// Stated returns the texts in a person's message that are kept beside its turn: what
// they ask to have remembered, and the directives, if the settings want them. All of
// text must be the person's words. A directive without a scope goes to the project, or
// to the person if there is no project. Stated counts as refused what looks like it
// holds a credential or is too long, and as unscoped what is for a scope that the caller
// does not have.
func (sv *Service) Stated(who graphiti.Who, generation int64, text string) (list []ledger.Turn, refused, unscoped int) {
	list, refused, unscoped = sv.wished(who, generation, text)
	if !sv.settings().Directives {
		return list, refused, unscoped
	}
	found, tooLong := capture.Directives(text)
	refused += tooLong
	for _, d := range found {
		scope := graphiti.Scope(d.Scope)
		if scope == "" {
			if scope = graphiti.ScopeUser; who.Workspace != "" {
				scope = graphiti.ScopeWorkspace
			}
		}
		group, ok := sv.namer().Group(scope, who)
		switch {
		case !ok:
			unscoped++
			continue
		case sv.o.Pipeline.HoldsSecret(d.Text):
			refused++
			continue
		}
		list = append(list, promoted(who, graphiti.Target{Scope: scope, Group: group}, generation, d.Kind, d.Text))
	}
	return list, refused, unscoped
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
