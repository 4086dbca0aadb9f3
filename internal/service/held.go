package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// HeldMessage is a message on disk that is not stored yet, because its session has not shown
// whether a person wrote it.
type HeldMessage struct {
	ID     string `json:"id"`
	Time   string `json:"time"`
	Until  string `json:"until"` // it is stored then, or deleted for the reason history
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// HeldRequest decides about held messages, by their IDs.
type HeldRequest struct {
	Selector
	Keep []string `json:"keep,omitempty" help:"store these held messages"`
	Drop []string `json:"drop,omitempty" help:"delete these held messages"`
}

// HeldSettled are the messages that a request has stored or deleted.
type HeldSettled struct {
	Kept    []HeldMessage `json:"kept"`
	Dropped []HeldMessage `json:"dropped"`
	Groups  []string      `json:"-"`
}

// SettleHeld stores or deletes held messages.
var SettleHeld = Operation[HeldRequest, HeldSettled]{
	Spec: Spec{Name: "memory/held", About: "Store or delete held messages, which memory/show lists", People: true, Fails: OfMemory},
	Run:  withMemory((*Service).SettleHeld),
	Audit: func(in *HeldRequest, out *HeldSettled) Entry {
		return in.audit("settle held messages", out.Groups, slog.Int("kept", len(out.Kept)), slog.Int("dropped", len(out.Dropped)))
	},
}

// SettleHeld implements the operation.
func (sv *Service) SettleHeld(ctx context.Context, in *HeldRequest) (out HeldSettled, err error) {
	out.Kept, out.Dropped = []HeldMessage{}, []HeldMessage{}
	_, owner, err := sv.asked(in.Selector)
	if err != nil {
		return out, err
	}
	places, err := sv.shownPlaces(ctx, in.Selector)
	if err != nil {
		return out, err
	}
	held, err := sv.heldIn(places)
	if err != nil {
		return out, err
	}
	for _, id := range append(slices.Clone(in.Keep), in.Drop...) {
		i := slices.IndexFunc(held, func(h ledger.Held) bool { return heldID(&h) == id && (owner == "" || h.Turn.Owner == owner) })
		if i < 0 {
			return out, invalid(fmt.Sprintf("%q: no held message has this id; memory show lists them", id))
		}
		keep, list := slices.Contains(in.Keep, id), &out.Dropped
		if keep {
			list = &out.Kept
		}
		if !keep { // its client may show it in a history
			err = sv.o.Pipeline.CutOff(ctx, held[i].Turn)
		}
		if err := errors.Join(err, sv.o.Pipeline.Settle(&held[i], keep)); err != nil {
			return out, err
		}
		*list = append(*list, heldMessage(&held[i]))
		for _, t := range held[i].Turn.Targets {
			out.Groups = append(out.Groups, t.Group)
		}
	}
	return out, nil
}

// heldIn returns the held turns of some places, each once.
func (sv *Service) heldIn(places []ledger.Owned) (list []ledger.Held, err error) {
	for _, o := range places {
		held, err := sv.o.Pipeline.Held(ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner})
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			if !slices.ContainsFunc(list, func(o ledger.Held) bool { return o.Key == h.Key }) {
				list = append(list, h)
			}
		}
	}
	return list, nil
}

func heldMessage(h *ledger.Held) HeldMessage {
	return HeldMessage{heldID(h), momentOf(h.Turn.Said), momentOf(capture.HeldUntil(h)), h.Reason, h.Turn.User}
}

func heldID(h *ledger.Held) string { return h.Turn.ID[:min(len(h.Turn.ID), 12)] }
