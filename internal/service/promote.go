package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Promotion is a text to store verbatim.
type Promotion struct {
	Kind  string `json:"kind"` // one of graphiti.Kinds
	Scope string `json:"scope" help:"user, workspace, session or agent"`
	Text  string `json:"text"`
}

// Promoted is the result of Promote.
type Promoted struct {
	noted
	Groups []string `json:"groups"`
	For    string   `json:"for"` // owner of the groups, for people
}

// Promote stores a text of a kind in a scope. A repetition has no effect.
func (sv *Service) Promote(ctx context.Context, in *PromoteRequest) (kept Promoted, err error) {
	s, p := in.Selector, in.Promotion
	if err := cmp.Or(s.check(), sv.checkText(p.Text)); err != nil {
		return kept, err
	}
	if !slices.Contains(graphiti.Kinds, p.Kind) {
		return kept, invalid(fmt.Sprintf("kind: unknown kind %q; write one of %s", p.Kind, strings.Join(graphiti.Kinds, ", ")))
	}
	target, who, err := sv.target(s, p.Scope)
	if err != nil {
		return kept, err
	}
	kept.Groups, kept.For = []string{target.Group}, sv.keptFor(target.Scope, who, target.Group)
	t := ledger.Promoted(who, target, sv.o.State.Generations.Now(), p.Kind, p.Text)
	kept.change.What, kept.change.in(target.Group).Added = "pin", []string{personsName(&t)}
	return kept, sv.store(ctx, t)
}

// full returns an error if an owner has reached a quota.
func (sv *Service) full(owner string) error {
	if which := sv.o.Pipeline.Full(owner); which != "" {
		return invalid("the quota is reached (" + which + "), so no new message is stored; an operator can raise it, or forget something")
	}
	return nil
}

// checkText returns an error for a text that cannot be stored.
func (sv *Service) checkText(text string) error {
	switch n, most := utf8.RuneCountInString(strings.TrimSpace(text)), sv.settings().MaxChars; {
	case n == 0:
		return invalid("text: is empty; write the text to store")
	case n > most:
		return invalid(fmt.Sprintf("text: has %d characters, at most %d are allowed; shorten it, or raise ingest.max_message_chars", n, most))
	case sv.o.Pipeline.HoldsSecret(text):
		return invalid("text: appears to contain a credential, so it was not stored")
	}
	return nil
}

// store stores a promoted text, makes it valid if it had ended, and restores its line on the card if
// that was removed.
func (sv *Service) store(ctx context.Context, t ledger.Turn) error {
	if err := sv.full(t.Owner); err != nil {
		return err
	}
	if err := cmp.Or(sv.o.Pipeline.Add(ctx, t), sv.o.Standing.Restore(ctx, t.Targets[0].Group, personsName(&t))); err != nil {
		return err
	}
	if err := sv.cards().Keep(&t, []string{t.Targets[0].Group}); err != nil {
		sv.o.Log.Warn("put a promoted text on the card failed", "error", err)
	}
	return nil
}

// personsName returns the name of a stored turn's message by the person.
func personsName(t *ledger.Turn) string {
	if t.Kind != "" {
		return graphiti.EpisodeName(t.ID, graphiti.RoleSystem)
	}
	return graphiti.EpisodeName(t.ID, graphiti.RoleUser)
}
