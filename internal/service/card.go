package service

import (
	"context"
	"errors"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

func (sv *Service) cards() card.Cards { return card.Cards{Lists: sv.o.State.Snapshots} }

// Standing returns what is on a caller's card, the more important first: entries of the
// groups that a question about the person searches.
func (sv *Service) Standing(ctx context.Context, w graphiti.Who) ([]graphiti.Fact, error) {
	return sv.cards().Facts(ctx, sv.Recallable(sv.namer().Reads(w, true)))
}

// Summary returns the last summary of a caller's session, in the project that they are
// in; empty if there is none. session is the hash of its id.
func (sv *Service) Summary(ctx context.Context, w graphiti.Who, session string) (about, open string, err error) {
	for _, t := range sv.Recallable(sv.namer().Reads(w, false)) {
		if t.Scope == graphiti.ScopeWorkspace {
			s, err := sv.cards().Summary(ctx, t.Group, session, w.Owner())
			return s.About, s.Open, err
		}
	}
	return "", "", nil
}

// card returns the lines on the card of whoever a selector means.
func (sv *Service) card(ctx context.Context, s Selector) (lines []string, err error) {
	targets, err := sv.targets(s)
	if err != nil {
		return nil, err
	}
	facts, err := sv.cards().Facts(ctx, sv.Recallable(targets))
	for i := range facts {
		lines = append(lines, facts[i].Text)
	}
	return lines, err
}

// waiting returns the rules of the selected person that they have not confirmed.
func (sv *Service) waiting(ctx context.Context, s Selector) ([]string, error) {
	targets, err := sv.targets(s)
	if err != nil {
		return nil, err
	}
	return sv.cards().Waiting(ctx, sv.Recallable(targets))
}

// takeOff takes one line off the card of whom a selector means. The message that it
// was said in stays in their memory.
func (sv *Service) takeOff(ctx context.Context, s Selector) ([]string, error) {
	targets, err := sv.targets(s)
	if err != nil {
		return nil, err
	}
	who, err := sv.meant(s)
	if err != nil {
		return nil, err
	}
	lines, err := sv.cards().TakeOff(ctx, sv.Recallable(targets), s.Card, who.Owner(), sv.o.State.Generations.Now())
	if err == nil && lines == nil {
		err = InvalidError{errors.New("card: no line of the card says that; graphiti-proxy memory show lists them; for one of a project add --workspace")}
	}
	return lines, err
}
