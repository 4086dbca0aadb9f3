package service

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// Hear applies a person's message to the memory, and counts the effects. A statement takes effect
// at once only in its own place, and only in a typed message of statements alone: other messages
// may contain another author's text. Everything else waits for the person's confirmation. A bot's
// message has no effect.
func (sv *Service) Hear(ctx context.Context, s capture.Saying) (h inject.Heard) {
	if s.Who.SystemActor != "" {
		return h
	}
	set := sv.settings()
	if set.Directives {
		sv.hearDirectives(ctx, &s, &h)
	}
	m := card.Read(s.Text)
	if !m.Alone {
		m = readAround(s.Text)
	}
	if set.Remember {
		h.Refused += m.TooLong
	}
	if len(m.Statements) == 0 {
		return h
	}
	said := hearing{sv: sv, Saying: s}
	if m.Alone && (s.Typed || s.Amid) && !s.FromFile() {
		said.alone, said.ends = s.Typed, true
	}
	statements := slices.DeleteFunc(m.Statements, func(one card.Statement) bool { return one.Act != card.Rule && !set.Remember })
	if !said.alone {
		statements = statements[:min(len(statements), maxQuoted)]
	}
	h.Forgets = said.ends && slices.ContainsFunc(statements, func(one card.Statement) bool { return one.Act == card.Forget })
	// To forget something, all of a memory is read. Work that takes longer than the request
	// may wait continues without being counted. It ends with Close.
	counted := make(chan inject.Heard, 1)
	sv.hearings.Go(func() {
		ctx, cancel := context.WithTimeout(sv.base, hearTimeout)
		defer cancel()
		all := h
		said.hearAll(ctx, statements, &all)
		counted <- all
	})
	select {
	case h = <-counted:
	case <-ctx.Done():
	}
	return h
}

// readAround reads the first and the last paragraph of a text: a person may have pasted or piped a
// file between them. If lines look like those of a file, a paragraph counts only if it consists of
// statements: the file may begin or end the text.
func readAround(text string) (m card.Parsed) {
	all := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n\n")
	if len(all) > 2 {
		all = []string{all[0], all[len(all)-1]}
	}
	isFile := len(all) > 1 && ofFile.MatchString(text)
	for _, paragraph := range all {
		p := card.Read(paragraph)
		if m.TooLong += p.TooLong; p.Alone || !isFile {
			m.Statements = append(m.Statements, p.Statements...)
		}
	}
	return m
}

// ofFile matches a line that looks like a file's: a heading, a fence, a row or a setting.
var ofFile = regexp.MustCompile("(?m)^(?:#{1,6} |```|\\||---|>|\\[[^\\]\n]+\\]$|[\\w.-]+ *= )")

// Forgets reports whether a message only asks to forget something.
func (*Service) Forgets(text string) bool { return card.Forgets(text) }

// maxQuoted is the most statements that one message of other text adds to the waiting lines.
const maxQuoted = 3

// hearTimeout limits the work for one message, and storeTimeout its wait for the turns before it.
const (
	hearTimeout  = time.Minute
	storeTimeout = 10 * time.Second
)

// hearing is a message with statements.
type hearing struct {
	capture.Saying
	sv    *Service
	alone bool // the message consists of statements
	ends  bool // it may end what it matches
}

func (s *hearing) hearAll(ctx context.Context, statements []card.Statement, h *inject.Heard) {
	for _, one := range statements {
		if err := s.hear(ctx, one, h); err != nil {
			s.sv.o.Log.Warn("store a statement failed", "error", err)
		}
	}
}

func (s *hearing) hear(ctx context.Context, one card.Statement, h *inject.Heard) error {
	switch {
	case one.TellsPassword() || s.sv.o.Pipeline.HoldsSecret(one.Text):
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
	known, err := s.sv.cards().Lines(ctx, []graphiti.Target{{Group: l.Group}, here})
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
	return s.sv.cards().Put(ctx, l, s.Generation, groups...)
}

// reportFull counts and logs a line without room in its list.
func (s *hearing) reportFull(known []card.Line, l *card.Line, h *inject.Heard) (full bool) {
	if full = card.IsFull(known, l); full {
		h.Full++
		s.sv.o.Log.Warn("too many standing lines, another one was not stored", "state", l.State, "to_do", "graphiti-proxy memory pending")
	}
	return full
}

// targets returns the groups of the message, whose forgetting deletes its effects, and the group
// of its place.
func (s *hearing) targets() (groups []string, here graphiti.Target) {
	for _, to := range s.sv.namer().Writes(s.Who) {
		if here.Group == "" || to.Scope == graphiti.ScopeWorkspace {
			here = to
		}
		groups = append(groups, to.Group)
	}
	return groups, here
}

// line returns the line of a statement. Its state is "" for a fact that needs no line. ok is
// false without a group for the line.
func (s *hearing) line(one card.Statement) (l card.Line, ok bool) {
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
		Place: s.Who.Place(), Where: cmp.Or(shortWorkspace(s.Who.Workspace), s.Who.Program), Workspace: s.Who.Workspace,
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
func (s *hearing) own() (group string, ok bool) {
	if to, ok := s.sv.namer().Beside(s.Who); ok {
		return to.Group, true
	}
	writes := s.sv.namer().Writes(s.Who)
	n := slices.IndexFunc(writes, func(t graphiti.Target) bool { return t.Scope == graphiti.ScopeUser })
	if n < 0 {
		return "", false
	}
	return writes[n].Group, true
}

const (
	// maxEnds is the most statements that a message ends at once, and minEnds the fewest content
	// words of its text. "Forget that the server." is about too much.
	maxEnds = 3
	minEnds = 2
)

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
func (s *hearing) end(ctx context.Context, one *card.Statement, h *inject.Heard) error {
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
	count, part := m.count(), ChangedPart{Group: here.Group}
	ends := s.ends && count > 0 && count <= maxEnds && !one.Vague && card.ContentWords(one.Text) >= minEnds
	if ends {
		for i := range m.lines {
			if err := s.sv.endLine(ctx, &m.lines[i], s.Generation, groups...); err != nil {
				return err
			}
			part.Lines = append(part.Lines, m.lines[i].ID)
		}
		part.Ended = m.names
		for turn := range m.turns {
			part.Ended = append(part.Ended, sidesOf(turn)...)
		}
		if err := s.sv.endNames(ctx, here.Group, part.Ended, s.Generation); err != nil {
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
			part.Lines = append(part.Lines, id)
			c := Change{What: "end", Parts: []ChangedPart{part}}
			s.sv.note(ctx, historyOfOwner(s.Who.Owner()), cmp.Or(s.Who.Program, "a chat"), &c)
			h.Undo = c.ID
		}
	}
	if m.besides {
		_, err = s.keepForget(ctx, one.Text, own, false, true, h)
	}
	return err
}

// matching finds the statements that match a text to forget.
func (s *hearing) matching(ctx context.Context, text string, here graphiti.Target, own string) (m matching, err error) {
	m.turns = make(map[string]bool)
	reads := []graphiti.Target{here}
	if own != "" && own != here.Group {
		reads = append(reads, graphiti.Target{Scope: graphiti.ScopeUser, Group: own})
	}
	lines, err := s.sv.cards().Lines(ctx, reads)
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
		said, err := s.sv.saying(ctx, r.Group, text)
		if err != nil {
			return m, err
		}
		for _, t := range said {
			turn, ok := graphiti.TurnOf(t.name)
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
			m.names = append(m.names, t.name)
		}
	}
	return m, nil
}

// keepForget stores the line of a text to forget in a group, and returns its ID. The text has ended
// statements of its place, or waits, or both.
func (s *hearing) keepForget(ctx context.Context, text, group string, ended, waits bool, h *inject.Heard) (id string, err error) {
	l, _ := s.line(card.Statement{Act: card.Forget, Text: text, Personal: true})
	l.Group, l.Kind, l.Applies, l.State = group, card.KindForget, ended, card.Local
	if waits {
		l.State = card.Pending
	}
	known, err := s.sv.cards().Lines(ctx, []graphiti.Target{{Group: group}})
	if err != nil || s.reportFull(known, &l, h) {
		return "", err
	}
	if waits {
		h.Pending++
	}
	groups, _ := s.targets()
	l.SetID()
	return l.ID, s.sv.cards().Put(ctx, l, s.Generation, groups...)
}

// acceptForget ends the statements of a line's group that say its text, with the other sides of
// their turns, and adds them to a change.
func (sv *Service) acceptForget(ctx context.Context, l *card.Line, c *Change) error {
	part, generation := c.in(l.Group), sv.o.State.Generations.Now()
	names := sidesOf(l.Turn)
	err := sv.eachLine(ctx, []string{l.Group}, func(o *card.Line) error {
		if !o.Stands() || o.Kind == card.KindForget || !card.Says(o.Text, l.Text) {
			return nil
		}
		names, part.Lines = append(names, sidesOf(o.Turn)...), append(part.Lines, o.ID)
		return sv.endLine(ctx, o, generation)
	})
	if err != nil {
		return err
	}
	said, err := sv.saying(ctx, l.Group, l.Text)
	if err != nil {
		return err
	}
	for _, t := range said {
		names = append(names, t.name)
		if turn, ok := graphiti.TurnOf(t.name); ok {
			names = append(names, sidesOf(turn)...)
		}
	}
	part.Ended = append(part.Ended, names...)
	if err := sv.endNames(ctx, l.Group, names, generation); err != nil {
		return err
	}
	return sv.setLine(ctx, l, card.Confirmed)
}

func (sv *Service) endLine(ctx context.Context, l *card.Line, generation int64, groups ...string) error {
	l.Was, l.State = l.State, card.Ended
	return sv.cards().Put(ctx, *l, generation, groups...)
}

// sidesOf returns the names of both messages of a turn.
func sidesOf(turn string) []string {
	return []string{graphiti.EpisodeName(turn, graphiti.RoleUser), graphiti.EpisodeName(turn, graphiti.RoleAssistant)}
}

// told is a message that says a text.
type told struct {
	name  string
	text  string
	place string // hash of the place of the message; "" if unknown
}

// saying returns the messages of a group that say a text, and the sources of facts that do. A search would leave out messages that repeat one another.
func (sv *Service) saying(ctx context.Context, group, text string) (list []told, err error) {
	says := card.Sayer(text)
	places := make(map[string]string) // of messages, by name
	add := func(name, said string) {
		if says(said) && !slices.ContainsFunc(list, func(t told) bool { return t.name == name }) {
			list = append(list, told{name, said, places[name]})
		}
	}
	for r, err := range sv.rows(ctx, ledger.Part{Group: group}, graphiti.Filter{Text: true}) {
		if err != nil {
			return nil, err
		}
		places[r.Name] = gjson.Get(r.Source, "place").String()
		add(r.Name, textOf(&r))
	}
	err = sv.eachDistilled(ctx, group, func(d *graphiti.Distilled) error {
		for _, name := range d.Sources {
			add(name, d.Text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// EndTurn ends both messages of a person's turn in its groups, after a turn of a generation
// has replaced it, and deletes the standing text that it said and the person has not
// confirmed.
func (sv *Service) EndTurn(ctx context.Context, who graphiti.Who, turn string, in []graphiti.Target, generation int64) error {
	names := sidesOf(turn)
	said := hearing{sv: sv, Saying: capture.Saying{Who: who}}
	var groups []string
	if own, ok := said.own(); ok {
		groups = append(groups, own)
	}
	for _, t := range in {
		if err := sv.endNames(ctx, t.Group, names, generation); err != nil {
			return err
		}
		groups = append(groups, t.Group)
	}
	return sv.cards().Remove(ctx, groups, func(l *card.Line) bool { return l.Turn == turn && l.State != card.Confirmed })
}

// hearDirectives stores the directives of a message, such as "decision: …". Those of a
// message that says anything else, or names something to fetch or run, wait. One for the person
// applies in its place until it is confirmed.
func (sv *Service) hearDirectives(ctx context.Context, s *capture.Saying, h *inject.Heard) {
	found, tooLong := capture.Directives(s.Text)
	h.Refused += tooLong
	// A template may continue the line of a directive with a question or a label.
	continues := func(d capture.Directive) bool { return strings.ContainsAny(d.Text, "?？:：[]<>{}") }
	acts := func(d capture.Directive) bool { return card.Acts(d.Text) }
	said := hearing{sv: sv, Saying: *s, alone: s.Typed && len(found) > 0 && !s.FromFile() && !slices.ContainsFunc(found, acts) && !slices.ContainsFunc(found, continues) && len(found) == strings.Count(strings.TrimSpace(s.Text), "\n")+1}
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
		group, ok := sv.namer().Group(scope, s.Who)
		var err error
		switch {
		case !ok:
			h.Unscoped++
		case sv.o.Pipeline.HoldsSecret(d.Text):
			h.Refused++
		case !said.alone || scope == graphiti.ScopeUser:
			l, _ := said.line(card.Statement{Text: d.Text, Instructs: true, Personal: scope == graphiti.ScopeUser})
			if l.Kind, l.State = d.Kind, card.Pending; l.Applies {
				h.Promoted++
			}
			groups, _ := said.targets()
			h.Pending++
			err = sv.cards().Put(ctx, l, s.Generation, groups...)
		default:
			t := promoted(s.Who, graphiti.Target{Scope: scope, Group: group}, s.Generation, d.Kind, d.Text)
			if sv.o.Pipeline.AddAsync([]ledger.Turn{t}) {
				h.Promoted++
			}
		}
		if err != nil {
			sv.o.Log.Warn("store a directive failed", "error", err)
		}
	}
}
