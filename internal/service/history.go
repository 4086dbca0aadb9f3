package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
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

// Texts returns the texts before and after a change, each once: copies are in several memories.
func (c *Change) Texts() (before, after []string) {
	for _, p := range c.Parts {
		before, after = append(before, p.Old...), append(after, p.New...)
	}
	slices.Sort(before)
	slices.Sort(after)
	return slices.Compact(before), slices.Compact(after)
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
