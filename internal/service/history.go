package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

// undoFor is how long the history lists a change, and how long it can be undone.
const undoFor = 30 * 24 * time.Hour

// Change is a change of a memory in its person's history. Only answers have its texts.
type Change struct {
	ID     string        `json:"id"`
	Time   string        `json:"time"`
	What   string        `json:"what"` // correct, end, restore, move, pin, accept, limit, reject, edit, off for the card, import, forget, or remove for a forget with a copy
	By     string        `json:"by,omitempty"`
	Parts  []ChangedPart `json:"parts,omitempty"`
	Import string        `json:"import,omitempty"` // name of an import, whose session memory/forget deletes

	Of      string `json:"of,omitempty"`      // the memory of a forget with a copy, in words
	Records int    `json:"records,omitempty"` // in its copy

	Undone string `json:"undone,omitempty"` // time of its undo
	Until  string `json:"until,omitempty"`  // it can be undone until then; "" if it cannot

	history string   // its list, or "" for the caller's
	scopes  []string // those whose forgetting deletes it, or nil for its groups
}

// ChangedPart is the part of a change in one group.
type ChangedPart struct {
	Group string   `json:"group"`
	Ended []string `json:"ended,omitempty"` // names of messages that are not recalled anymore
	Added []string `json:"added,omitempty"` // names of messages that are stored, or valid again
	Lines []string `json:"lines,omitempty"` // IDs of card lines

	Old []string `json:"old,omitempty"` // beginnings of texts of Ended; forgotten ones are missing
	New []string `json:"new,omitempty"` // texts of Added and Lines
}

// A part has up to textsOfChange texts before and after, of maxChanged characters.
const textsOfChange, maxChanged = 5, 400

// whatForget is the change that deletes, and so cannot be undone; whatRemove leaves a copy.
const whatForget, whatRemove = "forget", "remove"

// noted is the part of an answer with the change that its operation made.
type noted struct {
	Undo   string `json:"undo,omitempty"` // ID of the change for memory/undo; "" if it cannot be undone
	change Change
}

// UndoID returns the ID of the change, or "".
func (n *noted) UndoID() string { return n.Undo }

func (n *noted) made() *noted { return n }

// Reverts reports whether a change can be undone while it is listed.
func (c *Change) Reverts() bool { return c.Undone == "" && c.What != whatForget }

// in returns the part of a change in a group.
func (c *Change) in(group string) *ChangedPart {
	i := slices.IndexFunc(c.Parts, func(p ChangedPart) bool { return p.Group == group })
	if i < 0 {
		i, c.Parts = len(c.Parts), append(c.Parts, ChangedPart{Group: group})
	}
	return &c.Parts[i]
}

func (c *Change) groups() (list []string) {
	for _, p := range c.Parts {
		list = append(list, p.Group)
	}
	return list
}

// note adds a change to a history. All calls of one import are one change.
func (sv *Service) note(ctx context.Context, history, by string, c *Change) {
	c.Time, c.By = momentOf(time.Now()), by
	c.ID = cmp.Or(c.ID, changeID(c.What+cmp.Or(c.Import, time.Now().String())))
	if err := sv.keepChange(context.WithoutCancel(ctx), cmp.Or(c.history, history), c); err != nil {
		sv.o.Log.Warn("store a change for its undo failed", "error", err)
	}
}

// NoteEnded adds the end of statements by a message to the history of their owner, and returns the
// ID of the change.
func (sv *Service) NoteEnded(ctx context.Context, owner, program string, e standing.Ending) string {
	c := Change{What: "end", Parts: []ChangedPart{{Group: e.Group, Ended: e.Names, Lines: e.Lines}}}
	sv.note(ctx, historyOfOwner(owner), cmp.Or(program, "a chat"), &c)
	return c.ID
}

func changeID(of string) string {
	sum := graphiti.Digest("change", of)
	return hex.EncodeToString(sum[:6])
}

// keepChange stores a state of a change. Forgetting one of its groups deletes it.
func (sv *Service) keepChange(ctx context.Context, history string, c *Change) error {
	body, _ := json.Marshal(c) // strings and numbers only
	scopes := c.scopes
	if scopes == nil {
		scopes = c.groups()
	}
	return sv.o.State.Snapshots.Add(ctx, history, body, sv.o.State.Generations.Now(), scopes...)
}

// historyOf returns the list with the changes of a selector's person, or with those of operators.
func (sv *Service) historyOf(s *Selector) string {
	_, owner, _ := sv.asked(Selector{User: s.User, Credential: s.Credential}) // the operation has checked it
	if owner == "" && !sv.o.Multi {
		owner = sv.o.Owner
	}
	return historyOfOwner(owner)
}

func historyOfOwner(owner string) string { return "changes:" + owner }

// HistoryRequest is the input of History.
type HistoryRequest struct {
	Selector
	Limit int `json:"limit,omitempty" help:"how many changes"`
}

// Changes are the newest changes of a person's memory.
type Changes struct {
	Changes []Change `json:"changes"`
	All     int      `json:"all"` // listed or not
	Groups  []string `json:"-"`
}

// notOfHistory are the fields of a selector that select no change.
var notOfHistory = []string{"agent", "workspace", "session", "own", "message"}

// History lists the changes of the last thirty days, the newest first.
var History = Operation[HistoryRequest, Changes]{
	Spec:    Spec{Name: "memory/history", About: "The changes of a person's memory in the last thirty days, with their texts", People: true, Without: notOfHistory},
	Default: HistoryRequest{Limit: 50},
	Run: func(ctx context.Context, h *Host, in *HistoryRequest) (out Changes, err error) {
		if err := cmp.Or(CheckLimit(in.Limit), in.check()); err != nil {
			return out, err
		}
		list, err := h.Memory.changes(ctx, &in.Selector)
		out.All, out.Changes = len(list), append([]Change{}, list[:min(in.Limit, len(list))]...)
		for _, c := range out.Changes {
			out.Groups = append(out.Groups, c.groups()...)
			for i := range c.Parts {
				if err == nil {
					err = h.Memory.withTexts(ctx, &c.Parts[i])
				}
			}
		}
		return out, err
	},
	Audit: func(in *HistoryRequest, out *Changes) Entry { return in.audit("list changes", out.Groups) },
}

// changes returns the changes of a selector's person, or those in its group, the newest first.
func (sv *Service) changes(ctx context.Context, s *Selector) (list []Change, err error) {
	seen, oldest := make(map[string]bool), momentOf(time.Now().Add(-undoFor))
	err = sv.o.State.Snapshots.Entries(ctx, func(_ string, body []byte) { // the newest state of each first
		var c Change
		if json.Unmarshal(body, &c) != nil || seen[c.ID] || c.Time < oldest {
			return
		}
		seen[c.ID] = true
		if c.Until = ""; c.Reverts() {
			at, _ := momentIn(c.Time) // note has written it
			c.Until = momentOf(at.Add(min(undoFor, sv.o.State.Keeps())))
		}
		if s.Group == "" || slices.ContainsFunc(c.Parts, func(p ChangedPart) bool { return p.Group == s.Group }) {
			list = append(list, c)
		}
	}, sv.historyOf(s))
	slices.SortStableFunc(list, func(a, b Change) int { return cmp.Compare(b.Time, a.Time) })
	return list, err
}

// withTexts adds the texts of a part.
func (sv *Service) withTexts(ctx context.Context, p *ChangedPart) error {
	if len(p.Ended)+len(p.Added) > 0 && !sv.o.State.Generations.Blocks(p.Group) {
		for r, err := range sv.rows(ctx, ledger.Part{Group: p.Group}, graphiti.Filter{Names: append(slices.Clone(p.Ended), p.Added...), Text: true}) {
			if err != nil {
				return err
			}
			to := &p.New
			if slices.Contains(p.Ended, r.Name) {
				to = &p.Old
			}
			if text := graphiti.OneLine(r.Plain(), maxChanged); !slices.Contains(*to, text) && len(*to) < textsOfChange { // copies
				*to = append(*to, text)
			}
		}
	}
	lines, err := sv.cards().Lines(ctx, []graphiti.Target{{Group: p.Group}})
	for i := range lines {
		if l := &lines[i]; slices.Contains(p.Lines, l.ID) && !slices.Contains(p.Old, l.Text) && !slices.Contains(p.New, l.Text) {
			p.New = append(p.New, l.Shown())
		}
	}
	return err
}

// UndoRequest names a change of the history.
type UndoRequest struct {
	Selector
	ID     string `json:"id"`
	Delete bool   `json:"delete,omitempty"` // delete the copy for the undo now, for good, and undo nothing
}

// Undo undoes a change of the last thirty days.
var Undo = Operation[UndoRequest, Change]{
	Spec: Spec{Name: "memory/undo", About: "Undo a change of the last thirty days, which memory/history lists", People: true, Without: notOfHistory, Fails: OfMemory, Takes: ForgetTimeout},
	Run:  withMemory((*Service).Undo),
	Audit: func(in *UndoRequest, out *Change) Entry {
		return in.audit("undo", out.groups(), slog.String("change", in.ID))
	},
}

// Undo reverts a change: a correction, an end, a move, an import, a forget with a copy, or a decision.
func (sv *Service) Undo(ctx context.Context, in *UndoRequest) (c Change, err error) {
	list, err := sv.changes(ctx, &in.Selector)
	if err != nil {
		return c, err
	}
	i := slices.IndexFunc(list, func(c Change) bool { return c.ID == in.ID })
	switch {
	case i < 0:
		return c, invalid(fmt.Sprintf("id: the last thirty days have no change %.20q; graphiti-proxy memory undo lists them", in.ID))
	case list[i].Undone != "":
		return c, invalid("id: this change is undone already")
	case in.Delete && list[i].What != whatRemove:
		return c, invalid("delete: this change has no copy for its undo")
	case !list[i].Reverts():
		return c, invalid("id: this change deleted messages for good; it cannot be undone")
	}
	c = list[i]
	switch {
	case in.Delete:
		return c, sv.dropCopies(ctx, copyScope+c.ID, nil)
	case c.What == whatRemove:
		err = sv.restoreCopy(ctx, &in.Selector, &c)
	case c.Import != "":
		err = sv.undoImport(ctx, &in.Selector, c.Import)
	default:
		for i := range c.Parts {
			if err == nil {
				err = sv.undoPart(ctx, &c.Parts[i], c.What == "move")
			}
		}
	}
	if err != nil {
		return c, err
	}
	c.Undone, c.Until = momentOf(time.Now()), ""
	return c, sv.keepChange(context.WithoutCancel(ctx), sv.historyOf(&in.Selector), &c)
}

// undoImport deletes the additions of an import.
func (sv *Service) undoImport(ctx context.Context, s *Selector, name string) error {
	_, owner, _ := sv.asked(Selector{User: s.User, Credential: s.Credential}) // historyOf has read it
	session, _ := graphiti.NamedSession(name)                                 // the import has checked it
	groups, err := sv.o.Pipeline.SessionGroups(ctx, session)
	for _, o := range groups {
		if err == nil && (owner == "" || o.Owner == owner) {
			_, err = sv.forget(ctx, ledger.Part{Group: o.Group, Session: session, Owner: o.Owner})
		}
	}
	return err
}

func (sv *Service) undoPart(ctx context.Context, p *ChangedPart, moved bool) error {
	for _, name := range p.Added {
		if moved {
			if _, err := sv.forget(ctx, ledger.Part{Group: p.Group, Message: graphiti.MessageID(name)}); err != nil {
				return err
			}
			continue
		}
		if turn, ok := graphiti.TurnOf(name); ok {
			if err := sv.endLines(ctx, turn, new(Change), p.Group); err != nil {
				return err
			}
		}
	}
	if !moved {
		if err := sv.o.Standing.End(ctx, p.Group, p.Added, sv.o.State.Generations.Now()); err != nil {
			return err
		}
	}
	if err := sv.o.Standing.Restore(ctx, p.Group, p.Ended...); err != nil {
		return err
	}
	lines, err := sv.cards().Lines(ctx, []graphiti.Target{{Group: p.Group}})
	for i := range lines {
		if err == nil && slices.Contains(p.Lines, lines[i].ID) {
			err = sv.undoLine(ctx, &lines[i])
		}
	}
	return err
}

// ManyRequest changes several messages, with their copies.
type ManyRequest struct {
	Selector
	Do       string   `json:"do"`       // one of Deeds
	Messages []string `json:"messages"` // IDs
	To       string   `json:"to,omitempty" help:"the project to move them to"`
}

// Many are the changed messages.
type Many struct {
	Forgotten
	Messages int `json:"messages"` // with copies
}

// Deeds are the changes of ChangeMany: end stops the recall of messages, and remove forgets them with
// a copy.
var Deeds = []string{"end", whatForget, "move", whatRemove, "restore"}

// maxEnded bounds the ended messages of a group: the store keeps the newest 10,000.
const maxEnded = 9000

// ChangeMany ends, forgets, moves or restores messages.
var ChangeMany = Operation[ManyRequest, Many]{
	Spec: Spec{Name: "memory/change", About: "End, forget, move or restore messages by their ids, with their copies", People: true, Without: []string{"session", "own", "message"}, Fails: OfMemory, Takes: ForgetTimeout},
	Run: func(ctx context.Context, h *Host, in *ManyRequest) (Many, error) {
		out, err := h.Memory.Change(ctx, in)
		if err == nil && in.deletes() {
			h.Memory.lookAt(ctx, &out.Forgotten, false)
		}
		return out, err
	},
	Own: func(ctx context.Context, h *Host, in *ManyRequest, own Selector) error {
		in.unshared = true
		return h.Memory.narrow(ctx, &in.Selector, own)
	},
	Audit: func(in *ManyRequest, out *Many) Entry {
		return in.audit(in.Do+" messages", out.Groups, slog.Int("messages", out.Messages))
	},
}

func (in *ManyRequest) deletes() bool { return in.Do == whatForget || in.Do == whatRemove }

// Change implements ChangeMany.
func (sv *Service) Change(ctx context.Context, in *ManyRequest) (out Many, err error) {
	in.Messages = strings.Fields(strings.Join(in.Messages, " "))
	switch {
	case !slices.Contains(Deeds, in.Do):
		return out, invalid(fmt.Sprintf("do: unknown value %q; write one of %s", in.Do, strings.Join(Deeds, ", ")))
	case len(in.Messages) == 0 || len(in.Messages) > MaxListed:
		return out, invalid(fmt.Sprintf("messages: write 1 to %d ids", MaxListed))
	case (in.Do == "move") != (in.To != ""):
		return out, invalid("to: names the project to move messages to, and nothing else")
	}
	if in.deletes() && len(in.Messages) == 1 {
		if f, ok, err := sv.forgetFact(ctx, in); ok || err != nil {
			return Many{f, 1}, err
		}
	}
	found, err := sv.message(ctx, in.Selector, in.Messages...)
	if err != nil {
		return out, err
	}
	found, also, err := sv.withCopies(ctx, found, graphiti.Filter{Text: true})
	if err != nil {
		return out, err
	}
	if out.Messages = len(found); in.deletes() {
		out.Forgotten, err = sv.forgetHeld(ctx, &in.Selector, in.Do == whatRemove, in.Messages[0], found, also)
		return out, err
	}
	c := Change{What: in.Do}
	switch in.Do {
	case "move":
		if found, err = sv.move(ctx, in, found, &c); err != nil {
			return out, err
		}
		fallthrough
	case "end":
		err = sv.endHeld(ctx, found, &c)
	default:
		err = sv.restoreHeld(ctx, found, &c)
	}
	out.Forgotten = changed(in.Messages[0], also, c)
	return out, err
}

// changed describes a change of a message and its copies that deleted nothing.
func changed(id string, also int, c Change) (f Forgotten) {
	f.Message, f.Also, f.change, f.Groups = id, also, c, c.groups()
	if len(f.Groups) > 0 {
		f.Group = f.Groups[0]
	}
	return f
}

// move stores messages in a project, under names of their own, and returns those of other memories.
func (sv *Service) move(ctx context.Context, in *ManyRequest, found []held, c *Change) ([]held, error) {
	to, who, err := sv.target(Selector{User: in.User, Credential: in.Credential, Workspace: in.To}, string(graphiti.ScopeWorkspace))
	if err != nil {
		return nil, InvalidError{err}
	}
	found = slices.DeleteFunc(found, func(h held) bool { return h.in.Group == to.Group })
	part := c.in(to.Group)
	for i := range found {
		t := found[i].moved("move to "+to.Group+time.Now().String(), &found[i].row, sv.o.State.Generations.Now()) // it may have been moved there before
		t.Targets, t.Workspace = []graphiti.Target{to}, who.Workspace
		if err := sv.o.Pipeline.Add(ctx, t); err != nil {
			return nil, fmt.Errorf("move a message: %w", err)
		}
		part.Added = append(part.Added, t.Restored[0].Name)
	}
	return found, nil
}

// endHeld ends messages and their card lines. Notes of their sessions may repeat them.
func (sv *Service) endHeld(ctx context.Context, found []held, c *Change) error {
	for i := range found {
		h := &found[i]
		part := c.in(h.in.Group)
		part.Ended = append(part.Ended, h.row.Name)
		if turn, ok := graphiti.TurnOf(h.row.Name); ok && h.row.Role != graphiti.RoleAssistant {
			if err := sv.endLines(ctx, turn, c, sv.cardGroups(h)...); err != nil {
				return err
			}
		}
		if err := sv.dropNotes(ctx, h); err != nil {
			return err
		}
	}
	for _, p := range c.Parts {
		ended, err := sv.o.State.Ended.In(ctx, p.Group)
		if err == nil && len(ended)+len(p.Ended) > maxEnded {
			err = invalid("this memory has too many ended messages; forget some")
		}
		if err == nil {
			err = sv.o.Standing.End(ctx, p.Group, p.Ended, sv.o.State.Generations.Now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endLines ends the card lines of a turn, and adds them to a change.
func (sv *Service) endLines(ctx context.Context, turn string, c *Change, groups ...string) error {
	return sv.eachLine(ctx, groups, func(l *card.Line) error {
		if stored, ok := graphiti.TurnOf(l.Promoted); l.Turn != turn && (!ok || stored != turn) || !l.Stands() {
			return nil
		}
		part := c.in(l.Group)
		part.Lines = append(part.Lines, l.ID)
		return sv.setLine(ctx, l, card.Ended)
	})
}

// restoreHeld makes both sides of the turns of messages valid again, with the lines that ended with
// them.
func (sv *Service) restoreHeld(ctx context.Context, found []held, c *Change) error {
	for i := range found {
		h := &found[i]
		names := []string{h.row.Name}
		turn, ok := graphiti.TurnOf(h.row.Name)
		if ok {
			names = graphiti.TurnNames(turn)
		}
		if err := sv.o.Standing.Restore(ctx, h.in.Group, names...); err != nil {
			return err
		}
		part := c.in(h.in.Group)
		part.Added = append(part.Added, h.row.Name)
		err := sv.eachLine(ctx, sv.cardGroups(h), func(l *card.Line) error {
			if l.State != card.Ended || !ok || l.Turn != turn {
				return nil
			}
			return sv.undoLine(ctx, l)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
