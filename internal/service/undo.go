package service

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

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
