package service

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

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
