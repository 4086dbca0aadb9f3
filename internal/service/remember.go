package service

import (
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

// wished is what a person's message asks to have remembered, as promoted texts: what
// they say of themselves for them, all else for the project, or for them where
// there is none. They are kept where turns may be; a bot asks for nothing.
func (sv *Service) wished(who graphiti.Who, generation int64, text string) (list []ledger.Turn, refused, unscoped int) {
	if !sv.settings().Remember || who.SystemActor != "" {
		return nil, 0, 0
	}
	wishes, refused := card.Wishes(text)
	for _, w := range wishes {
		target, ok := sv.wishedFor(who, w)
		switch {
		case !ok:
			unscoped++
		case w.TellsPassword() || sv.o.Pipeline.HoldsSecret(w.Text):
			refused++
		default:
			list = append(list, promoted(who, target, generation, kindOf(w), w.Text))
		}
	}
	return list, refused, unscoped
}

// wishedFor is where a wish is kept. ok is false where that is not written to.
func (sv *Service) wishedFor(who graphiti.Who, w card.Wish) (target graphiti.Target, ok bool) {
	scope := graphiti.ScopeWorkspace
	if w.Own || who.Workspace == "" {
		scope = graphiti.ScopeUser
		if to, ok := sv.namer().Beside(who); ok {
			return to, true
		}
	}
	writes := sv.namer().Writes(who)
	n := slices.IndexFunc(writes, func(t graphiti.Target) bool { return t.Scope == scope })
	if n < 0 {
		return target, false
	}
	return writes[n], true
}

// kindOf is the kind of a wish. What names something to fetch or to run stands on
// no card, as a rule that does: it is found by who asks for it.
func kindOf(w card.Wish) string {
	switch {
	case w.Acts():
		return "lesson_learned"
	case w.Own:
		return "preference"
	}
	return "decision"
}
