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
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

// held is one message as a group holds it: a side of an episode.
type held struct {
	in      graphiti.Target
	owner   ledger.Owned
	episode graphiti.Episode
	side    graphiti.Side
}

// errManyMessages says that an id means more than one message of a group.
var errManyMessages = errors.New("message: several messages of one group have this id; name them by their conversation (session) or group")

// message finds the message with an id in the groups of whom a selector means: one
// may be in several, such as what a person says of themselves in a project.
func (sv *Service) message(ctx context.Context, s Selector, id string) (found []held, err error) {
	if s.Session != "" || s.Own || s.Card != "" {
		return nil, invalid("message: its id says which it is; leave out session, own and card")
	}
	groups, err := sv.withOwners(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, o := range groups {
		one, err := sv.messageIn(ctx, o, id)
		if err != nil {
			return nil, err
		}
		found = append(found, one...)
	}
	if len(found) == 0 {
		return nil, notTheirs(id)
	}
	return found, nil
}

func notTheirs(id string) error {
	return invalid(fmt.Sprintf("message: nothing of theirs has the id %q; graphiti-proxy memory show prints the ids", id))
}

// withOwners finds the groups of whom a selector means, with what is known of whose they
// are. Nobody named is the owner, where there is one.
func (sv *Service) withOwners(ctx context.Context, s Selector) ([]ledger.Owned, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s == (Selector{}) && !sv.o.Multi {
		s.User = sv.o.Owner
	}
	if s == (Selector{}) {
		return nil, InvalidError{errNobody}
	}
	groups, err := sv.groups(ctx, s)
	if err != nil {
		return nil, err
	}
	_, owner, err := sv.asked(s)
	if err != nil {
		return nil, err
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return nil, err
	}
	for i := range groups {
		if at := slices.IndexFunc(known, func(k ledger.Owned) bool { return k.Group == groups[i].Group }); at >= 0 && groups[i].Owner == "" {
			groups[i] = known[at]
		}
		o := &groups[i]
		o.Owner = cmp.Or(o.Owner, owner)
		if o.Scope == "" {
			scope, _ := graphiti.ScopeOf(o.Group)
			o.Scope = string(scope)
		}
	}
	return groups, nil
}

func (sv *Service) messageIn(ctx context.Context, o ledger.Owned, id string) (found []held, err error) {
	err = sv.o.Pipeline.Waiting(ctx, ledger.Part{Group: o.Group}, func(g graphiti.Message) error {
		if graphiti.MessageID(g.Name) == id {
			return errors.New("message: it waits for Graphiti, and can be forgotten when it has arrived there (graphiti-proxy queue list), or now with its conversation (session)")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	in := graphiti.Target{Scope: graphiti.Scope(o.Scope), Group: o.Group}
	err = sv.o.Memory.Seek(ctx, o.Group, graphiti.Sought{Message: id}, func(e graphiti.Episode) error {
		for _, side := range e.Sides() {
			if graphiti.MessageID(side.Name) == id {
				found = append(found, held{in, o, e, side})
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, withRemedy(err)
	case len(found) > 1:
		return nil, InvalidError{errManyMessages}
	}
	return found, nil
}

// forgetMessage deletes one message of a selector's from every group that holds it, and
// what was noted of it. Blocks that were sent with it stay in their conversations.
func (sv *Service) forgetMessage(ctx context.Context, s Selector) (f Forgotten, err error) {
	id := s.Message
	s.Message = ""
	found, err := sv.message(ctx, s, id)
	if err != nil {
		return f, err
	}
	return sv.forgetHeld(ctx, id, found)
}

func (sv *Service) forgetHeld(ctx context.Context, id string, found []held) (f Forgotten, err error) {
	f.Message = id
	for i := range found {
		h := &found[i]
		if err := sv.keepOtherSide(ctx, h); err != nil {
			return f, err
		}
		if err := sv.forgetNotes(ctx, h); err != nil {
			return f, err
		}
		if _, err := sv.forget(ctx, ledger.Part{Group: h.in.Group, Message: graphiti.MessageID(h.episode.Name)}); err != nil {
			return f, err
		}
		f.Groups = append(f.Groups, h.in.Group)
		f.NamesKept = f.NamesKept || sv.o.Memory.KeepsNames(ctx, h.in.Group)
	}
	f.Group = f.Groups[0]
	return f, nil
}

// keepOtherSide keeps what else is in the episode that holds a message: Graphiti
// deletes episodes, and one may hold both sides of a turn. It is kept under a name of
// its own, before anything is deleted, so that it is not lost on the way.
func (sv *Service) keepOtherSide(ctx context.Context, h *held) error {
	for _, side := range h.episode.Sides() {
		if side.Name == h.side.Name {
			continue
		}
		t := h.turn("beside", side)
		t.Generation = sv.o.State.Generations.Now()
		t.Said, t.Answered = h.episode.ValidAt, h.episode.ValidAt
		t.Restored = []ledger.Restored{{Name: graphiti.EpisodeName(t.ID, side.Role), Speaker: side.Speaker, Role: side.Role, Source: h.episode.SourceDescription}}
		if side.Role == graphiti.RoleAssistant {
			t.User, t.Assistant = "", side.Text
		}
		if err := sv.o.Pipeline.Add(ctx, t); err != nil {
			return fmt.Errorf("keep the other side of the turn: %w", err)
		}
	}
	return nil
}

// turn is a text that takes the place of one in the same group and conversation.
func (h *held) turn(why string, text graphiti.Side) ledger.Turn {
	t := ledger.Turn{
		ID: digest(why, h.in.Group, h.side.Name, text.Text), SessionHash: ledger.SessionOf(h.episode.SourceDescription),
		Owner: h.owner.Owner, Speaker: text.Speaker, User: text.Text, Client: "graphiti-proxy",
		Targets: []graphiti.Target{h.in}, Standalone: true,
	}
	if h.in.Scope == graphiti.ScopeWorkspace {
		t.Workspace = h.owner.Key
	}
	return t
}

// forgetNotes deletes what was noted of a message for cards, and its conversation's
// notes, which may repeat it.
func (sv *Service) forgetNotes(ctx context.Context, h *held) error {
	t := h.turn("forget", h.side)
	t.Said = h.episode.ValidAt
	if err := sv.forgetLines(ctx, h); err != nil {
		return err
	}
	session, owner := t.OfSession(), h.owner.Owner
	if session == "" {
		return nil
	}
	if h.owner.Shared { // it is not known who of them said it
		owner = ""
	}
	return sv.o.State.Snapshots.Drop(ctx, graphiti.SessionScopeOf(session, owner))
}

// forgetLines deletes the lines of a message, and what confirming them stored.
func (sv *Service) forgetLines(ctx context.Context, h *held) error {
	turn, ok := graphiti.TurnOf(h.side.Name)
	curated, promoted := graphiti.ParseCurated(h.side.Text)
	groups := []string{h.in.Group}
	if own, ok := sv.ownGroup(h.owner.Owner); ok && own != h.in.Group { // a personal line of a project
		groups = append(groups, own)
	}
	var confirmed []card.Line
	for _, group := range groups {
		lines, err := sv.cards().Lines(ctx, []graphiti.Target{{Group: group}})
		if err != nil {
			return err
		}
		for _, l := range lines {
			if ok && l.Turn == turn && l.Promoted != "" {
				confirmed = append(confirmed, l)
			}
		}
	}
	for i := range confirmed {
		if err := sv.unpromote(ctx, &confirmed[i]); err != nil {
			return err
		}
	}
	return sv.cards().Remove(ctx, groups, func(l *card.Line) bool {
		return ok && l.Turn == turn || promoted && l.Kind == curated.Kind && l.Says() != "" && strings.HasPrefix(curated.Text, strings.TrimSuffix(l.Text, "…"))
	})
}

// ownGroup returns the group of an owner's own memory; see graphiti.Who.Owner.
func (sv *Service) ownGroup(owner string) (string, bool) {
	who := graphiti.Who{User: owner}
	if rest, ok := strings.CutPrefix(owner, "sha256:"); ok {
		who.Tenant, who.User, _ = strings.Cut(rest, "|")
	} else if sv.o.Multi {
		who.SetPerson()
	}
	return sv.namer().Group(graphiti.ScopeUser, who)
}

// CorrectRequest names a message, and says what is true instead.
type CorrectRequest struct {
	Selector
	Text string `json:"text"`
}

// Corrected is what a message was replaced with.
type Corrected struct {
	Forgotten
	Kind string `json:"kind,omitempty"` // of a promoted text, which the new one is too
}

// Correct keeps a statement as said now in place of a message, which is forgotten.
var Correct = Operation[CorrectRequest, Corrected]{
	Spec: Spec{Name: "memory/correct", About: "Keep a statement, as said now, in place of one message, which is forgotten", Fails: OfMemory, Takes: ForgetTimeout},
	Run: func(ctx context.Context, h *Host, in *CorrectRequest) (Corrected, error) {
		return h.Memory.Correct(ctx, in.Selector, in.Text)
	},
	Audit: func(in *CorrectRequest, out *Corrected) Entry {
		return in.audit("correct", out.Groups, slog.String("message", in.Message))
	},
	Own: func(ctx context.Context, h *Host, in *CorrectRequest, own Selector) error {
		return ownMessage(ctx, h, &in.Selector, own)
	},
}

// Correct keeps a statement of the person in every group that holds a message, and
// forgets the message. The statement is kept first: what fails can be done again.
func (sv *Service) Correct(ctx context.Context, s Selector, text string) (c Corrected, err error) {
	id := s.Message
	switch n, most := utf8.RuneCountInString(strings.TrimSpace(text)), sv.settings().MaxChars; {
	case id == "":
		return c, invalid("message: say which message is to be corrected; graphiti-proxy memory show prints the ids")
	case n == 0:
		return c, invalid("text: is empty; write what is true instead, or forget the message")
	case n > most:
		return c, invalid(fmt.Sprintf("text: has %d characters, %d are the most; shorten it, or raise ingest.max_message_chars", n, most))
	case sv.o.Pipeline.HoldsSecret(text):
		return c, invalid("the text looks like it holds a credential; nothing was changed")
	}
	s.Message = ""
	found, err := sv.message(ctx, s, id)
	if err != nil {
		return c, err
	}
	if slices.ContainsFunc(found, func(h held) bool { return sv.o.State.Generations.Blocks(h.in.Group) }) {
		return c, errors.New("its group is being forgotten; try again when that has ended: graphiti-proxy status shows it")
	}
	var kept []ledger.Turn
	for i := range found {
		t, err := sv.keepInstead(ctx, &found[i], text)
		if err != nil {
			return c, err
		}
		kept, c.Kind = append(kept, t), t.Kind
	}
	c.Forgotten, err = sv.forgetHeld(ctx, id, found)
	for i := range kept { // after the old one is off the card: it may have the words of the new one
		if failed := sv.cards().Keep(&kept[i], []string{found[i].in.Group}); failed != nil {
			sv.o.Log.Warn("a correction cannot be put on the card now", "error", failed)
		}
	}
	return c, err
}

// keepInstead keeps a text in place of a message: a promoted one as a text of its kind.
func (sv *Service) keepInstead(ctx context.Context, h *held, text string) (ledger.Turn, error) {
	t := h.turn("correct", graphiti.Side{Speaker: h.side.Speaker, Text: text})
	if h.side.Role == graphiti.RoleAssistant {
		t.Speaker = "" // a person says now what is true
	}
	if c, ok := graphiti.ParseCurated(h.side.Text); ok && h.side.Role == graphiti.RoleSystem {
		t.Kind = c.Kind
	}
	t.Said = time.Now()
	t.Answered, t.Generation = t.Said, sv.o.State.Generations.Now()
	if err := sv.o.Pipeline.Add(ctx, t); err != nil {
		return t, fmt.Errorf("keep the correction: %w", err)
	}
	return t, nil
}
