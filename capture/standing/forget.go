package standing

import (
	"context"
	"slices"
	"time"

	"github.com/tidwall/gjson"

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
	count, ended := m.count(), Ending{Group: here.Group, Names: m.names}
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

// Ending is statements of a group that a message has ended.
type Ending struct {
	Group string
	Names []string // of messages, and UUIDs of facts
	Lines []string // IDs
}

// End ends messages of a group, and their distilled facts.
func (k *Keeper) End(ctx context.Context, group string, names []string, generation int64) error {
	now := time.Now()
	if err := k.o.State.Ended.Add(ctx, group, names, now, generation); err != nil {
		return err
	}
	return k.endDistilled(ctx, group, names, now)
}

// Restore makes ended messages of a group valid again, and their distilled facts.
func (k *Keeper) Restore(ctx context.Context, group string, names ...string) error {
	if err := k.o.State.Ended.Restore(ctx, group, names...); err != nil {
		return err
	}
	return k.endDistilled(ctx, group, names, time.Time{})
}

func (k *Keeper) endDistilled(ctx context.Context, group string, names []string, at time.Time) error {
	d, ok := k.o.Memory.Distiller()
	if !ok || len(names) == 0 {
		return nil
	}
	return d.EndDistilled(ctx, group, names, at)
}

// EndLine ends a line. Forgetting one of groups deletes it, too.
func (k *Keeper) EndLine(ctx context.Context, l *card.Line, generation int64, groups ...string) error {
	l.Was, l.State = l.State, card.Ended
	return k.cards().Put(ctx, *l, generation, groups...)
}

// Match is a message that says a text, or the source of a fact that does.
type Match struct {
	Name  string
	Text  string
	place string // hash of the place of the message; "" if unknown
}

// Matches returns the messages of a group that say a text, and the sources of facts that do. A
// search would leave out messages that repeat one another.
func (k *Keeper) Matches(ctx context.Context, group, text string) (list []Match, err error) {
	says := card.Sayer(text)
	places := make(map[string]string) // of messages, by name
	add := func(name, said string) {
		if says(said) && !slices.ContainsFunc(list, func(m Match) bool { return m.Name == name }) {
			list = append(list, Match{name, said, places[name]})
		}
	}
	for r, err := range k.o.Memory.Rows(ctx, group, graphiti.Filter{Text: true}) {
		if err != nil {
			return nil, err
		}
		places[r.Name] = gjson.Get(r.Source, "place").String()
		add(r.Name, r.Plain())
	}
	if d, ok := k.o.Memory.Distiller(); ok {
		err = d.Distilled(ctx, group, func(d *graphiti.Distilled) error {
			for _, name := range d.Sources {
				add(name, d.Text)
			}
			return nil
		})
	}
	return list, err
}

// EndTurn ends both messages of a person's turn in its groups, after a turn of a generation
// has replaced it, and deletes the standing text that it said and the person has not
// confirmed.
func (k *Keeper) EndTurn(ctx context.Context, who graphiti.Who, turn string, in []graphiti.Target, generation int64) error {
	names := graphiti.TurnNames(turn)
	said := message{k: k, Message: Message{Who: who}}
	var groups []string
	if own, ok := said.own(); ok {
		groups = append(groups, own)
	}
	for _, t := range in {
		if err := k.End(ctx, t.Group, names, generation); err != nil {
			return err
		}
		groups = append(groups, t.Group)
	}
	return k.cards().Remove(ctx, groups, func(l *card.Line) bool { return l.Turn == turn && l.State != card.Confirmed })
}
