package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// held is a message in a group.
type held struct {
	in    graphiti.Target
	owner ledger.Owned
	row   graphiti.Row
	entry []graphiti.Row // all rows of its stored entry
}

// errManyMessages means that an ID selects several messages of a group.
var errManyMessages = errors.New("message: several messages of one group have this id; name them by their conversation (session) or group")

// message returns the messages with IDs in the groups of a selector. A personal statement in a
// project is in two groups.
func (sv *Service) message(ctx context.Context, s Selector, ids ...string) (found []held, err error) {
	if s.Session != "" || s.Own {
		return nil, invalid("message: its id already selects it; remove session and own")
	}
	groups, _, err := sv.owned(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, o := range groups {
		some, err := sv.messagesIn(ctx, o, ids)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	there := make(map[string]bool, len(found))
	for i := range found {
		there[found[i].row.ID.String()] = true
	}
	for _, id := range ids {
		if !there[id] {
			return nil, notTheirs(id)
		}
	}
	return found, nil
}

func notTheirs(id string) error {
	return invalid(fmt.Sprintf("message: the person has no message with the id %q; graphiti-proxy memory show prints the ids", id))
}

func (sv *Service) messagesIn(ctx context.Context, o ledger.Owned, messages []string) (found []held, err error) {
	var ids []graphiti.ID
	for _, message := range messages {
		if id, ok := graphiti.ParseID(message); ok {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var keys []string
	seen := make(map[graphiti.ID]bool)
	for r, err := range sv.rows(ctx, ledger.Part{Group: o.Group}, graphiti.Filter{IDs: ids, Text: true}) {
		switch {
		case err != nil:
			return nil, err
		case seen[r.ID]:
			return nil, InvalidError{errManyMessages}
		}
		seen[r.ID], keys = true, append(keys, r.Key)
		found = append(found, held{in: graphiti.Target{Scope: graphiti.Scope(o.Scope), Group: o.Group}, owner: o, row: r})
	}
	if len(found) == 0 {
		return nil, nil
	}
	entries := make(map[string][]graphiti.Row)
	for r, err := range sv.rows(ctx, ledger.Part{Group: o.Group}, graphiti.Filter{Keys: keys, Text: true}) {
		if err != nil {
			return nil, err
		}
		entries[r.Key] = append(entries[r.Key], r)
	}
	for i := range found {
		found[i].entry = entries[found[i].row.Key]
	}
	return slices.DeleteFunc(found, func(h held) bool { return len(h.entry) == 0 }), nil // deleted meanwhile
}

// withCopies returns messages, found in their groups, and then their copies there, and the number of
// other conversations that have one. among selects messages that may be copies.
func (sv *Service) withCopies(ctx context.Context, found []held, among graphiti.Filter) (all []held, talks int, err error) {
	seen := make(map[string]bool) // sessions
	known := make(map[string]bool)
	texts := make(map[string]map[string]bool) // by group
	owners := make(map[string]ledger.Owned)
	for _, h := range found {
		group := h.in.Group
		if len(seen) > 0 && !seen[h.row.Session] && words.Key(h.row.Text) == words.Key(found[0].row.Text) {
			talks++ // a copy in another memory
		}
		seen[h.row.Session], known[group+h.row.Name] = true, true
		same := sameWords(h.row.Text)
		if same == "" || h.owner.Shared { // not the statements of other people
			continue
		}
		if owners[group] = h.owner; texts[group] == nil {
			texts[group] = make(map[string]bool)
		}
		texts[group][same] = true
	}
	all = slices.Clone(found)
	for _, group := range slices.Sorted(maps.Keys(texts)) {
		var copies []string
		for r, err := range sv.rows(ctx, ledger.Part{Group: group}, among) {
			if err != nil {
				return nil, 0, err
			}
			if known[group+r.Name] || !texts[group][words.Key(r.Text)] {
				continue
			}
			if copies = append(copies, r.ID.String()); !seen[r.Session] {
				seen[r.Session], talks = true, talks+1
			}
		}
		some, err := sv.messagesIn(ctx, owners[group], copies)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, some...)
	}
	return all, talks, nil
}

// forgetHeld deletes a message and its copies.
func (sv *Service) forgetHeld(ctx context.Context, s *Selector, undoable bool, id string, found []held, also int) (f Forgotten, err error) {
	f.Message, f.Also, f.change.What = id, also, whatForget
	for i := range found {
		f.change.in(found[i].in.Group)
	}
	if undoable {
		err = sv.copyFor(ctx, s, &f.change, func(add func(Record) error) error { return sv.recordsOf(ctx, found, add) })
	}
	for i := range found {
		h := &found[i]
		if !undoable {
			err = cmp.Or(err, sv.dropCopies(ctx, copyScope+h.in.Group, func(r *Record) bool { return r.Name == h.row.Name || words.Key(r.Text) == words.Key(h.row.Text) }))
		}
		if err != nil {
			return f, err
		}
		if err := sv.keepOtherSide(ctx, h); err != nil {
			return f, err
		}
		if err := cmp.Or(sv.forgetLines(ctx, h), sv.dropNotes(ctx, h)); err != nil {
			return f, err
		}
		if _, err := sv.forget(ctx, ledger.Part{Group: h.in.Group, Message: h.entry[0].ID.String()}); err != nil {
			return f, err
		}
		if !slices.Contains(f.Groups, h.in.Group) {
			f.Groups = append(f.Groups, h.in.Group)
		}
	}
	f.Group = f.Groups[0]
	return f, nil
}

// keepOtherSide stores the other side of a deleted entry under a new name. It does so before the
// deletion, to lose nothing.
func (sv *Service) keepOtherSide(ctx context.Context, h *held) error {
	for _, r := range h.entry {
		if r.Name == h.row.Name {
			continue
		}
		t := h.moved("beside", &r, sv.o.State.Generations.Now())
		if err := sv.o.Pipeline.Add(ctx, t); err != nil {
			return fmt.Errorf("store the other side of the turn: %w", err)
		}
	}
	return nil
}

// turn returns a turn with a text for the group and conversation of a message.
func (h *held) turn(why string, text *graphiti.Row) ledger.Turn {
	t := ledger.Turn{
		ID: ledger.DerivedID(why, h.in.Group, h.row.Name, text.Text), SessionHash: h.row.Session,
		Owner: h.owner.Owner, Speaker: text.Speaker, User: text.Text, Client: "graphiti-proxy",
		Targets: []graphiti.Target{h.in}, Standalone: true,
	}
	if h.in.Scope == graphiti.ScopeWorkspace {
		t.Workspace = h.owner.Key
	}
	return t
}

// moved returns a turn with a row under a new name.
func (h *held) moved(why string, r *graphiti.Row, generation int64) ledger.Turn {
	t := h.turn(why, r)
	t.Said, t.Answered, t.Generation = r.Said, r.Said, generation
	t.Restored = []ledger.Restored{{Name: graphiti.EpisodeName(t.ID, r.Role), Speaker: r.Speaker, Role: r.Role, Source: r.Source}}
	if r.Role == graphiti.RoleAssistant {
		t.User, t.Assistant = "", r.Text
	}
	return t
}

// dropNotes deletes the notes of a message's session, which may repeat it.
func (sv *Service) dropNotes(ctx context.Context, h *held) error {
	t := h.turn("forget", &h.row)
	session, owner := t.OfSession(), h.owner.Owner
	if session == "" {
		return nil
	}
	if h.owner.Shared { // the message's owner is unknown
		owner = ""
	}
	return sv.o.State.Snapshots.Drop(ctx, graphiti.SessionScopeOf(session, owner))
}

// cardGroups returns the groups with card lines of a message. A project's personal lines are in the
// person's own group.
func (sv *Service) cardGroups(h *held) []string {
	if own, ok := sv.ownGroup(h.owner.Owner); ok && own != h.in.Group {
		return []string{h.in.Group, own}
	}
	return []string{h.in.Group}
}

// forgetLines deletes the card lines of a message, and the texts that their confirmation stored.
func (sv *Service) forgetLines(ctx context.Context, h *held) error {
	turn, ok := graphiti.TurnOf(h.row.Name)
	groups := sv.cardGroups(h)
	err := sv.eachLine(ctx, groups, func(l *card.Line) error {
		if !ok || l.Turn != turn {
			return nil
		}
		return sv.unpromote(ctx, l)
	})
	if err != nil {
		return err
	}
	return sv.cards().Remove(ctx, groups, h.has)
}

// has reports whether a line of the card is from a message, is stored as it, or repeats it.
func (h *held) has(l *card.Line) bool {
	turn, ok := graphiti.TurnOf(h.row.Name)
	curated, promoted := graphiti.ParseCurated(h.row.Text)
	return ok && l.Turn == turn || l.Promoted == h.row.Name && l.Promoted != "" || l.Kind == card.KindForget && card.Says(h.row.Text, l.Text) || promoted && l.Kind == curated.Kind && l.Says() != "" && strings.HasPrefix(curated.Text, strings.TrimSuffix(l.Text, "…"))
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

// CorrectRequest names a message and its replacement.
type CorrectRequest struct {
	Selector
	Text string `json:"text"`
	Now  bool   `json:"now,omitempty" help:"delete the old statement now, for good; otherwise it is ended, and memory undo restores it"`
}

// Corrected describes the replacement of a message.
type Corrected struct {
	Forgotten
	Kind string `json:"kind,omitempty"` // kind of the promoted text and of its replacement
}

// Correct replaces a message with a new statement.
var Correct = Operation[CorrectRequest, Corrected]{
	Spec: Spec{Name: "memory/correct", About: "Store a corrected statement in place of one message, which is ended, or with now=true deleted", People: true, Fails: OfMemory, Takes: ForgetTimeout},
	Run:  withMemory((*Service).Correct),
	Audit: func(in *CorrectRequest, out *Corrected) Entry {
		return in.audit("correct", out.Groups, slog.String("message", in.Message))
	},
}

// Correct stores a statement in every group of a message, and then ends or forgets the message. It
// can be repeated after a failure.
func (sv *Service) Correct(ctx context.Context, in *CorrectRequest) (c Corrected, err error) {
	s, id, text := in.Selector, in.Message, in.Text
	if id == "" {
		return c, invalid("message: name the message to correct by its id; graphiti-proxy memory show prints the ids")
	}
	if err := sv.checkText(text); err != nil {
		return c, err
	}
	s.Message = ""
	found, err := sv.message(ctx, s, strings.Fields(id)...)
	if err != nil {
		return c, err
	}
	if slices.ContainsFunc(found, func(h held) bool { return sv.o.State.Generations.Blocks(h.in.Group) }) {
		return c, errors.New("its group is being forgotten; try again after the deletion: graphiti-proxy status shows its state")
	}
	all, also, err := sv.withCopies(ctx, found, graphiti.Filter{Text: true}) // without the replacement
	if err != nil {
		return c, err
	}
	var kept []ledger.Turn
	made := Change{What: "correct"}
	for i := range found {
		t, err := sv.keepInstead(ctx, &found[i], text)
		if err != nil {
			return c, err
		}
		part := made.in(found[i].in.Group)
		kept, c.Kind, part.Added = append(kept, t), t.Kind, append(part.Added, personsName(&t))
	}
	if !in.Now {
		err = sv.endHeld(ctx, all, &made)
		c.Forgotten = changed(id, also, made)
	} else if c.Forgotten, err = sv.forgetHeld(ctx, &s, false, id, all, also); err == nil {
		sv.lookAt(ctx, &c.Forgotten, false)
	}
	for i := range kept { // the card may first have to drop an old line with the same words
		if failed := sv.cards().Keep(&kept[i], []string{found[i].in.Group}); failed != nil {
			sv.o.Log.Warn("put a correction on the card failed", "error", failed)
		}
	}
	return c, err
}

// keepInstead stores the replacement of a message. A promoted text keeps its kind.
func (sv *Service) keepInstead(ctx context.Context, h *held, text string) (ledger.Turn, error) {
	t := h.turn("correct", &graphiti.Row{Speaker: h.row.Speaker, Text: text})
	if h.row.Role == graphiti.RoleAssistant {
		t.Speaker = "" // the person corrects the model
	}
	if c, ok := graphiti.ParseCurated(h.row.Text); ok && h.row.Role == graphiti.RoleSystem {
		t.Kind = c.Kind
	}
	t.Said = time.Now()
	t.Answered, t.Generation = t.Said, sv.o.State.Generations.Now()
	if err := sv.o.Pipeline.Add(ctx, t); err != nil {
		return t, fmt.Errorf("keep the correction: %w", err)
	}
	return t, sv.o.Standing.Restore(ctx, h.in.Group, personsName(&t)) // an undo of the same correction has ended it
}
