package standing

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// maxEnds is the most statements that a message ends at once.
const maxEnds = 3

// matching are the statements that a request to forget matches.
type matching struct {
	lines []card.Line     // of the place
	names []string        // of messages of the place, and UUIDs of Graphiti's facts
	turns map[string]bool // of both
	facts int

	elsewhere bool // the group of the place has others
	besides   bool // the person's own group has others
}

// count returns the number of statements of the place. Graphiti extracts facts from messages.
func (m *matching) count() int { return max(len(m.turns), m.facts) }

// end ends the matching statements of the message's place. They wait for the person's
// confirmation if they are many, if the text names a subject only, or if the message says more; so
// do matching statements that apply elsewhere. A line of the text stays, to confirm or to undo it.
func (s *message) end(ctx context.Context, one *card.Statement, h *inject.Heard) error {
	groups, here := s.targets()
	if here.Group == "" {
		h.Unscoped++
		return nil
	}
	if s.Earlier != nil { // the client has read an answer before its turn is stored
		wait, cancel := context.WithTimeout(ctx, storeTimeout)
		s.Earlier(wait)
		cancel()
	}
	own, _ := s.own()
	m, err := s.matching(ctx, one.Text, here, own)
	if err != nil {
		return err
	}
	count, ended := m.count(), Ended{Group: here.Group, Names: m.names}
	ends := s.ends && count > 0 && count <= maxEnds && !one.Vague && card.ContentWords(one.Text) >= card.MinWords
	if ends {
		for i := range m.lines {
			if err := s.k.EndLine(ctx, &m.lines[i], s.Generation, groups...); err != nil {
				return err
			}
			ended.Lines = append(ended.Lines, m.lines[i].ID)
		}
		for turn := range m.turns {
			ended.Names = append(ended.Names, graphiti.TurnNames(turn)...)
		}
		if err := s.k.End(ctx, here.Group, ended.Names, s.Generation); err != nil {
			return err
		}
		h.Ended += count
	}
	if count == 0 && !m.elsewhere && !m.besides {
		h.Unmatched++
	}
	if count > 0 || m.elsewhere {
		id, err := s.keepForget(ctx, one.Text, here.Group, ends, !ends || m.elsewhere, h)
		if err != nil {
			return err
		}
		if ends {
			ended.Lines = append(ended.Lines, id)
			h.Undo = s.k.o.Ended(ctx, s.Who.Owner(), s.Who.Program, ended)
		}
	}
	if m.besides {
		_, err = s.keepForget(ctx, one.Text, own, false, true, h)
	}
	return err
}

// matching finds the statements that match a text to forget.
func (s *message) matching(ctx context.Context, text string, here graphiti.Target, own string) (m matching, err error) {
	m.turns = make(map[string]bool)
	reads := []graphiti.Target{here}
	if own != "" && own != here.Group {
		reads = append(reads, graphiti.Target{Scope: graphiti.ScopeUser, Group: own})
	}
	lines, err := s.k.cards().Lines(ctx, reads)
	if err != nil {
		return m, err
	}
	for _, l := range lines {
		switch isOwn := l.Group != here.Group; {
		case !l.Stands() || l.Kind == card.KindForget || !card.Says(l.Text, text):
		case l.State == card.Confirmed && (l.Personal || isOwn), l.State != card.Confirmed && l.Place != s.Who.Place():
			m.elsewhere, m.besides = m.elsewhere || !isOwn, m.besides || isOwn
		default:
			m.lines = append(m.lines, l)
			m.turns[l.Turn] = true
		}
	}
	for _, r := range reads {
		said, err := s.k.Matches(ctx, r.Group, text)
		if err != nil {
			return m, err
		}
		for _, t := range said {
			turn, ok := graphiti.TurnOf(t.Name)
			switch {
			case ok && m.turns[turn]:
			case r.Group != here.Group:
				m.besides = true
				continue
			case here.Scope != graphiti.ScopeWorkspace && t.place != s.Who.Place():
				m.elsewhere = true
				continue
			case ok:
				m.turns[turn] = true
			default:
				m.facts++
			}
			m.names = append(m.names, t.Name)
		}
	}
	return m, nil
}

// keepForget stores the line of a text to forget in a group, and returns its ID. The text has ended
// statements of its place, or waits, or both.
func (s *message) keepForget(ctx context.Context, text, group string, ended, waits bool, h *inject.Heard) (id string, err error) {
	l, _ := s.line(card.Statement{Act: card.Forget, Text: text, Personal: true})
	l.Group, l.Kind, l.Applies, l.State = group, card.KindForget, ended, card.Local
	if waits {
		l.State = card.Pending
	}
	known, err := s.k.cards().Lines(ctx, []graphiti.Target{{Group: group}})
	if err != nil || s.reportFull(known, &l, h) {
		return "", err
	}
	if waits {
		h.Pending++
	}
	groups, _ := s.targets()
	l.SetID()
	return l.ID, s.k.cards().Put(ctx, l, s.Generation, groups...)
}
