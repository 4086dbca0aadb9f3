package standing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// message is a message with statements.
type message struct {
	Message
	k     *Keeper
	alone bool // the message consists of statements
	ends  bool // it may end matching statements
}

func (s *message) applyAll(ctx context.Context, statements []card.Statement, h *inject.Heard) {
	for _, one := range statements {
		if err := s.apply(ctx, one, h); err != nil {
			s.k.o.Log.Warn("store a statement failed", "error", err)
		}
	}
}

func (s *message) apply(ctx context.Context, one card.Statement, h *inject.Heard) error {
	switch {
	case one.TellsPassword() || s.k.o.Pipeline.HoldsSecret(one.Text):
		h.Refused++
		return nil
	case one.Act == card.Forget:
		return s.end(ctx, &one, h)
	}
	l, ok := s.line(one)
	if !ok {
		h.Unscoped++
		return nil
	}
	groups, here := s.targets()
	known, err := s.k.cards().Lines(ctx, []graphiti.Target{{Group: l.Group}, here})
	if err != nil {
		return err
	}
	l.SetID()
	at := slices.IndexFunc(known, func(k card.Line) bool { return k.ID == l.ID && k.Group == l.Group })
	if at >= 0 && known[at].State == card.Superseded && known[at].Promoted != "" {
		known[at].State = card.Confirmed // its person has decided
	}
	// A fact without a state is found by a match of its turn.
	keeps := l.State != "" && (at < 0 || known[at].State != card.Confirmed && (l.Applies || s.Template || known[at].State == card.Pending || known[at].State == card.Superseded))
	if keeps && s.reportFull(known, &l, h) {
		return nil
	}
	if l.Applies || s.alone && l.Kind == card.KindFact {
		h.Promoted++
	}
	if !keeps { // or the person has decided
		return nil
	}
	if l.State == card.Pending {
		h.Pending++
	}
	return s.k.cards().Put(ctx, l, s.Generation, groups...)
}

// reportFull counts and logs a line without room in its list.
func (s *message) reportFull(known []card.Line, l *card.Line, h *inject.Heard) (full bool) {
	if full = card.IsFull(known, l); full {
		h.Full++
		s.k.o.Log.Warn("too many standing lines, another one was not stored", "state", l.State, "to_do", "graphiti-proxy memory pending")
	}
	return full
}

// targets returns the groups of the message, whose forgetting deletes its effects, and the group
// of its place.
func (s *message) targets() (groups []string, here graphiti.Target) {
	for _, to := range s.k.namer().Writes(s.Who) {
		if here.Group == "" || to.Scope == graphiti.ScopeWorkspace {
			here = to
		}
		groups = append(groups, to.Group)
	}
	return groups, here
}

// line returns the line of a statement. Its state is "" for a fact that needs no line. ok is
// false without a group for the line.
func (s *message) line(one card.Statement) (l card.Line, ok bool) {
	_, here := s.targets()
	group := here.Group
	if one.Personal {
		own, ok := s.own()
		if one.Personal = ok; ok {
			group = own
		}
	}
	l = card.Line{
		Group: group, Kind: card.KindRule, Text: one.Text, State: card.Pending, Applies: s.alone, Personal: one.Personal, At: time.Now().Unix(),
		Place: s.Who.Place(), Where: cmp.Or(graphiti.ShortWorkspace(s.Who.Workspace), s.Who.Program), Workspace: s.Who.Workspace,
		Turn: s.Turn, Program: s.Who.Program, Session: graphiti.SessionHash(s.Who.Session), Owner: s.Who.Owner(),
	}
	switch {
	case !one.Instructs:
		l.Kind, l.Applies = card.KindFact, false
		if s.alone && (s.Who.Workspace == "" || !one.Personal) {
			l.State = ""
		}
	case s.alone && !one.Personal:
		l.State = card.Local
	}
	return l, l.Group != ""
}

// own returns the group of the person's own memory, if the settings let it be written to.
func (s *message) own() (group string, ok bool) {
	if to, ok := s.k.namer().Beside(s.Who); ok {
		return to.Group, true
	}
	writes := s.k.namer().Writes(s.Who)
	n := slices.IndexFunc(writes, func(t graphiti.Target) bool { return t.Scope == graphiti.ScopeUser })
	if n < 0 {
		return "", false
	}
	return writes[n].Group, true
}
