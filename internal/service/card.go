package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

func (sv *Service) cards() card.Cards { return card.Cards{Lists: sv.o.State.Snapshots} }

// card returns the lines on the card of whoever a selector means: in a project those of the
// project, else those of all applications.
func (sv *Service) card(ctx context.Context, s Selector) (lines []string, err error) {
	targets, err := sv.targets(s)
	if err != nil {
		return nil, err
	}
	place := card.AnyPlace
	if who, _ := sv.meant(s); s.Group == "" && who.Workspace != "" { // targets has checked it
		place = who.Place()
	}
	facts, err := sv.cards().Facts(ctx, sv.o.State.Generations.Recallable(targets), place)
	for i := range facts {
		lines = append(lines, facts[i].Text)
	}
	return lines, err
}

// Standing is a current, pending or former line of the card.
type Standing struct {
	ID       string         `json:"id"`
	Kind     string         `json:"kind"`
	Text     string         `json:"text"`
	State    card.LineState `json:"state"`
	Place    string         `json:"place,omitempty"` // source of the line in words, or "" for promoted and imported texts
	Applies  bool           `json:"applies"`         // applies in its own place without confirmation
	OnCard   bool           `json:"on_card"`         // opens conversations in its place or everywhere
	Personal bool           `json:"personal"`        // confirmed, it applies to the person everywhere, else to the project
	Since    string         `json:"since"`
	Group    string         `json:"group"`
	Ends     []string       `json:"ends,omitempty"` // statements that a text to forget has ended, or would end
}

func standingOf(l *card.Line) Standing {
	s := Standing{
		ID: l.ID, Kind: l.Kind, Text: l.Shown(), State: l.State, Place: l.Where, Personal: l.Personal || l.Workspace == "" && l.Scope != graphiti.ScopeWorkspace, Since: dateOf(time.Unix(l.At, 0)), Group: l.Group,
		Applies: l.Applies && l.State == card.Pending || l.State == card.Local,
	}
	switch {
	case l.Workspace != "":
		s.Place = "in the project " + l.Where
	case l.Place != "":
		s.Place = "outside of projects, with " + l.Where
		if l.Where == "" || l.Where == "other" {
			s.Place = "outside of projects, with an unknown client"
		}
	}
	s.OnCard = l.ForCard() && (s.Applies || l.State == card.Confirmed)
	return s
}

// Here returns a line's effect in its own place in words.
func (s *Standing) Here() string {
	switch {
	case s.OnCard:
		return "yes"
	case s.Kind == card.KindFact && (s.State == card.Pending || s.State == card.Confirmed):
		return "by match"
	}
	return "no"
}

// Accepted returns the reach of an accepted line in words.
func (s *Standing) Accepted() string {
	switch {
	case s.Kind == card.KindForget:
		return "ended everywhere"
	case s.Personal:
		return "you, everywhere"
	}
	return "the project"
}

// PendingRequest is the input of Pending.
type PendingRequest struct {
	Selector
	All bool `json:"all,omitempty"` // also lines that do not wait
}

// PendingLines are the lines of a person.
type PendingLines struct {
	Lines  []Standing `json:"lines"`
	Full   bool       `json:"full,omitempty"` // no further line can wait without effect
	Groups []string   `json:"-"`
}

// notOfLines are the fields of a selector that select no standing lines.
var notOfLines = []string{"agent", "session"}

// Pending lists the lines that wait for their person's confirmation.
var Pending = Operation[PendingRequest, PendingLines]{
	Spec: Spec{Name: "memory/pending", About: "Rules and texts to remember that wait for confirmation; all=true lists all standing lines", People: true, Without: notOfLines},
	Run: func(ctx context.Context, h *Host, in *PendingRequest) (p PendingLines, err error) {
		lines, groups, err := h.Memory.lines(ctx, in.Selector)
		p.Lines, p.Groups = []Standing{}, groups
		for i := range lines {
			l := &lines[i]
			p.Full = p.Full || card.IsFull(lines, &card.Line{Group: l.Group, State: card.Pending})
			if (in.All || l.State == card.Pending) && err == nil {
				s := standingOf(l)
				s.Ends, err = h.Memory.matches(ctx, l, l.State == card.Local || l.State == card.Confirmed)
				p.Lines = append(p.Lines, s)
			}
		}
		return p, err
	},
	Audit: func(in *PendingRequest, out *PendingLines) Entry { return in.audit("list standing lines", out.Groups) },
}

// mostMatches is the most statements that the lists show of a text to forget.
const mostMatches = 10

// matches returns the statements that a text to forget has ended, or would end, one of each turn.
func (sv *Service) matches(ctx context.Context, l *card.Line, ended bool) (texts []string, err error) {
	if l.Kind != card.KindForget {
		return nil, nil
	}
	since, err := sv.o.State.Ended.In(ctx, l.Group)
	if err != nil {
		return nil, err
	}
	said, err := sv.o.Standing.Matches(ctx, l.Group, l.Text)
	turns := make(map[string]bool)
	for _, t := range said {
		turn, ok := graphiti.TurnOf(t.Name)
		if (since[t.Name] != "") != ended || turns[turn] && ok || slices.Contains(texts, t.Text) || len(texts) == mostMatches {
			continue
		}
		turns[turn] = true
		texts = append(texts, t.Text)
	}
	return texts, err
}

// lines returns the standing lines of whoever a selector means, in all their groups.
func (sv *Service) lines(ctx context.Context, s Selector) (lines []card.Line, groups []string, err error) {
	targets, err := sv.targets(s)
	if err != nil {
		return nil, nil, err
	}
	owned, owner, err := sv.owned(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range owned {
		if !slices.ContainsFunc(targets, func(t graphiti.Target) bool { return t.Group == o.Group }) {
			targets = append(targets, graphiti.Target{Scope: graphiti.Scope(o.Scope), Group: o.Group})
		}
	}
	for _, t := range targets {
		groups = append(groups, t.Group)
	}
	lines, err = sv.cards().Lines(ctx, sv.o.State.Generations.Recallable(targets))
	if owner != "" { // a project may have lines of others: each confirms their own
		lines = slices.DeleteFunc(lines, func(l card.Line) bool { return l.State == card.Pending && l.Owner != owner })
	}
	return lines, groups, err
}

// eachLine calls f for each line of groups, also a superseded one.
func (sv *Service) eachLine(ctx context.Context, groups []string, f func(l *card.Line) error) error {
	targets := make([]graphiti.Target, len(groups))
	for i, g := range groups {
		targets[i].Group = g
	}
	all, err := sv.cards().Stored(ctx, targets)
	for i := range all {
		if err == nil {
			err = f(&all[i])
		}
	}
	return err
}

// SettleRequest sets the states of lines. Each list has IDs, or "all" for all pending lines.
type SettleRequest struct {
	Selector
	Accept []string `json:"accept,omitempty" help:"accept these lines"`
	Reject []string `json:"reject,omitempty" help:"reject these lines"`
	End    []string `json:"end,omitempty" help:"take these lines off the card"`
	Text   string   `json:"text,omitempty"` // accepts one line with this text in place of its own
	To     string   `json:"to,omitempty" help:"limit the accepted line to this project"`
}

// Settled are the lines that changed.
type Settled struct {
	noted
	Lines  []Standing `json:"lines"`
	Groups []string   `json:"-"`
}

// Settle accepts, rejects, ends or edits standing lines.
var Settle = Operation[SettleRequest, Settled]{
	Spec: Spec{Name: "memory/settle", About: "Accept, reject, end or edit standing lines", People: true, Without: notOfLines, Fails: OfMemory, Takes: ForgetTimeout},
	Run:  withMemory((*Service).Settle),
	Audit: func(in *SettleRequest, out *Settled) Entry {
		return in.audit("settle standing lines", out.Groups, slog.Int("lines", len(out.Lines)))
	},
}

// Settle changes the state of standing lines.
func (sv *Service) Settle(ctx context.Context, in *SettleRequest) (done Settled, err error) {
	done.Lines = []Standing{}
	lines, groups, err := sv.lines(ctx, in.Selector)
	if err != nil {
		return done, err
	}
	if in.Text = strings.TrimSpace(in.Text); in.Text+in.To != "" && (len(in.Accept) != 1 || in.Accept[0] == "all") {
		return done, invalid("text, to: change one line; name only that line with accept")
	}
	if len(groups) == 0 {
		return done, InvalidError{errNobody}
	}
	type change struct {
		l    *card.Line
		what string // for the history
	}
	var changes []change
	accepts := "accept"
	if in.To != "" {
		accepts = "limit"
	}
	for _, c := range []struct {
		ids  []string
		what string
	}{{in.Accept, accepts}, {in.Reject, "reject"}, {in.End, "off"}} {
		for _, id := range c.ids {
			named := linesNamed(lines, id)
			if named == nil && id != "all" {
				return done, invalid(fmt.Sprintf("no line has the id %q; graphiti-proxy memory pending --all lists them", id))
			}
			for _, l := range named {
				if !slices.ContainsFunc(changes, func(o change) bool { return o.l == l }) {
					changes = append(changes, change{l, c.what})
				}
			}
		}
	}
	for _, c := range changes {
		switch c.what {
		case "reject":
			err = sv.setLine(ctx, c.l, card.Rejected)
		case "off":
			err = sv.setLine(ctx, c.l, card.Ended)
		case "limit":
			err = sv.limit(ctx, c.l, in, &done.change)
		default:
			if card.IsFull(lines, &card.Line{Group: c.l.Group, ID: c.l.ID, State: card.Confirmed}) {
				return done, invalid(fmt.Sprintf("accept: the card has %d lines; take one off first, with graphiti-proxy memory pending --end", card.MaxLines))
			}
			err = sv.acceptLine(ctx, c.l, in.Text, &done.change)
		}
		if err != nil {
			return done, err
		}
		done.Lines = append(done.Lines, standingOf(c.l))
		part := done.change.in(c.l.Group)
		done.change.What, part.Lines = c.what, append(part.Lines, c.l.ID)
		if !slices.Contains(done.Groups, c.l.Group) {
			done.Groups = append(done.Groups, c.l.Group)
		}
	}
	return done, nil
}

// linesNamed returns the lines that an ID names, the newest last, so that it replaces the
// others: all that wait, or one. With one about the person go those of other places that say
// the same and are in the same state.
func linesNamed(lines []card.Line, id string) (named []*card.Line) {
	one := slices.IndexFunc(lines, func(l card.Line) bool { return l.ID == id })
	same := func(l *card.Line) bool {
		o := lines[one]
		return o.Personal && l.Personal && l.State == o.State && l.Kind == o.Kind && l.Group == o.Group && strings.EqualFold(l.Text, o.Text)
	}
	for i := range slices.Backward(lines) {
		if l := &lines[i]; l.ID == id || id == "all" && l.State == card.Pending || one >= 0 && same(l) {
			named = append(named, l)
		}
	}
	return named
}

// acceptLine stores a line's text as promoted for the person or the project, so that it
// applies in all their conversations, or is found in them.
func (sv *Service) acceptLine(ctx context.Context, l *card.Line, text string, c *Change) error {
	before := *l
	if text == "" {
		text = l.Text
	}
	if err := sv.checkText(text); err != nil {
		return err
	}
	switch {
	case l.Place == "" && text == l.Text: // a promoted text, which was taken off
		return sv.setLine(ctx, l, card.Confirmed)
	case l.Kind == card.KindForget:
		return sv.acceptForget(ctx, l, c)
	}
	t := ledger.Promoted(graphiti.Who{Workspace: l.Workspace}, graphiti.Target{Scope: l.Scope, Group: l.Group}, sv.o.State.Generations.Now(), l.PromotedKind(), text)
	t.Owner, t.SessionHash = l.Owner, l.Session
	l.Promoted, l.Edited, l.At = personsName(&t), "", t.Said.Unix()
	if text != l.Text {
		l.Edited = text
	}
	err := sv.setLine(ctx, l, card.Confirmed) // before its message, which has no line of its own
	if err == nil {
		err = sv.store(ctx, t)
	}
	if err != nil {
		*l = before
		return fmt.Errorf("store the accepted line: %w", errors.Join(err, sv.cards().Put(ctx, before, t.Generation)))
	}
	if before.Promoted != l.Promoted { // an edited line, accepted before
		return sv.unpromote(ctx, &before)
	}
	return nil
}

// acceptForget ends the statements of a line's group that say its text, with the other sides of
// their turns, and adds them to a change.
func (sv *Service) acceptForget(ctx context.Context, l *card.Line, c *Change) error {
	part, generation := c.in(l.Group), sv.o.State.Generations.Now()
	names := graphiti.TurnNames(l.Turn)
	err := sv.eachLine(ctx, []string{l.Group}, func(o *card.Line) error {
		if !o.Stands() || o.Kind == card.KindForget || !card.Says(o.Text, l.Text) {
			return nil
		}
		names, part.Lines = append(names, graphiti.TurnNames(o.Turn)...), append(part.Lines, o.ID)
		return sv.o.Standing.EndLine(ctx, o, generation)
	})
	if err != nil {
		return err
	}
	said, err := sv.o.Standing.Matches(ctx, l.Group, l.Text)
	if err != nil {
		return withRemedy(err)
	}
	for _, t := range said {
		names = append(names, t.Name)
		if turn, ok := graphiti.TurnOf(t.Name); ok {
			names = append(names, graphiti.TurnNames(turn)...)
		}
	}
	part.Ended = append(part.Ended, names...)
	if err := sv.o.Standing.End(ctx, l.Group, names, generation); err != nil {
		return err
	}
	return sv.setLine(ctx, l, card.Confirmed)
}

// limit promotes the text of a rule in a project, and ends the line with its promoted text.
func (sv *Service) limit(ctx context.Context, l *card.Line, in *SettleRequest, c *Change) error {
	p := Promotion{Kind: l.Kind, Scope: string(graphiti.ScopeWorkspace), Text: cmp.Or(in.Text, l.Shown())}
	if p.Kind == card.KindRule {
		p.Kind = "decision"
	}
	if l.Scope != graphiti.ScopeUser {
		return invalid("to: limits a line of all projects; this one has its own")
	}
	kept, err := sv.Promote(ctx, &PromoteRequest{Selector: Selector{User: in.User, Credential: in.Credential, Workspace: in.To}, Promotion: p})
	if err != nil {
		return InvalidError{fmt.Errorf("to: %w", err)}
	}
	c.Parts = kept.change.Parts
	if l.Place == "" { // a promoted text is a message, which a search finds
		part := c.in(l.Group)
		part.Ended = append(part.Ended, graphiti.EpisodeName(l.Turn, graphiti.RoleSystem))
		if err := sv.o.Standing.End(ctx, l.Group, part.Ended, sv.o.State.Generations.Now()); err != nil {
			return err
		}
	}
	return sv.setLine(ctx, l, card.Ended)
}

func (sv *Service) setLine(ctx context.Context, l *card.Line, state card.LineState) error {
	if state != card.Confirmed {
		if err := sv.unpromote(ctx, l); err != nil {
			return err
		}
	}
	l.Was, l.State = l.State, state
	return sv.cards().Put(ctx, *l, sv.o.State.Generations.Now())
}

// undoLine reverts the last decision on a line. A removed line is confirmed again; any other line
// gets its original state.
func (sv *Service) undoLine(ctx context.Context, l *card.Line) error {
	off := l.State == card.Ended || l.State == card.Rejected
	switch {
	case off && l.Place == "":
		return sv.setLine(ctx, l, card.Confirmed)
	case l.Place == "":
		return invalid("undo: a promoted text needs no confirmation; remove it with graphiti-proxy memory pending --end")
	case off && l.Was == card.Confirmed:
		return sv.acceptLine(ctx, l, l.Edited, new(Change))
	case l.Kind == card.KindForget && !off: // the change has the statements that it ended
		l.Applies = false
		return sv.setLine(ctx, l, card.Rejected)
	}
	l.Edited = ""
	if l.Applies && !l.Personal {
		return sv.setLine(ctx, l, card.Local)
	}
	return sv.setLine(ctx, l, card.Pending)
}

// unpromote forgets the message that confirming a line stored, unless it confirms another.
func (sv *Service) unpromote(ctx context.Context, l *card.Line) error {
	name := l.Promoted
	if l.Promoted = ""; name == "" {
		return nil
	}
	all, err := sv.cards().Lines(ctx, []graphiti.Target{{Scope: l.Scope, Group: l.Group}})
	if err != nil || slices.ContainsFunc(all, func(o card.Line) bool { return o.Promoted == name && o.ID != l.ID }) {
		return err
	}
	_, err = sv.forget(ctx, ledger.Part{Group: l.Group, Message: graphiti.MessageID(name)})
	return err
}

// Pending returns the waiting lines of whoever a selector means.
func (sv *Service) Pending(ctx context.Context, s Selector) (list []Standing, err error) {
	lines, _, err := sv.lines(ctx, s)
	for i := range lines {
		if lines[i].State == card.Pending {
			list = append(list, standingOf(&lines[i]))
		}
	}
	return list, err
}
