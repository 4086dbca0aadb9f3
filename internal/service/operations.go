package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
)

// Operations returns all operations.
func Operations() []Mountable {
	return []Mountable{Status, Health, Counts, Turns, Retry, Drop, Send, Groups, Show, SettleHeld, List, Search, Promote, Suggest, Import, ImportTurns, Forget, Correct, ChangeMany, History, Undo, Pending, Settle, Stats, Retention, MakeLink, Accept, Export,
		TurnsOf, ListPeople, Requests}
}

// StatusRequest is the input of Status.
type StatusRequest struct {
	Fresh bool `json:"fresh,omitempty"`
}

// Status returns the proxy's status.
var Status = Operation[StatusRequest, health.Status]{
	Spec: Spec{Name: "status", About: "The proxy's state; fresh=true asks the memory now instead of reporting its last answer", Metadata: true, Reads: true, WithoutMemory: true},
	Run: func(ctx context.Context, h *Host, in *StatusRequest) (health.Status, error) {
		st := h.Status(ctx, in.Fresh)
		if h.Memory != nil && !h.Memory.Multi() { // several people see their own lines only
			waiting, _ := h.Memory.Pending(ctx, Selector{}) // a failure is Memory's fault
			st.PendingLines = len(waiting)
		}
		return st, nil
	},
}

// Health returns the state of the memory, without its address.
var Health = Operation[struct{}, health.MemoryStatus]{
	Spec: Spec{Name: "memory/state", About: "The state of the memory", Reads: true, WithoutMemory: true},
	Run: func(ctx context.Context, h *Host, _ *struct{}) (health.MemoryStatus, error) {
		return h.Status(ctx, false).Memory.Public(), nil
	},
	Own: func(context.Context, *Host, *struct{}, Selector) error { return nil },
}

// Counts counts the turns of the queue.
var Counts = Operation[struct{}, capture.QueueStatus]{
	Spec: Spec{Name: "queue", About: "Counts of the queue", Metadata: true, Reads: true, WithoutMemory: true, Fails: OfFiles},
	Run:  func(ctx context.Context, h *Host, _ *struct{}) (capture.QueueStatus, error) { return h.Counts(ctx) },
}

// TurnsRequest selects turns, as ledger.ListOptions does.
type TurnsRequest struct {
	Condition ledger.Condition `json:"state" help:"only turns that are waiting, under-way or dead"`
	Group     string           `json:"group" help:"only turns for this group"`
	Limit     int              `json:"limit" help:"list at most this many turns"`
	Text      bool             `json:"text" flag:"show-text" help:"also print the messages"`
}

// Turns lists undelivered turns, oldest first.
var Turns = Operation[TurnsRequest, Listed]{
	Spec:    Spec{Name: "queue/turns", About: "Undelivered turns", Reads: true, Fails: OfFiles},
	Default: TurnsRequest{Limit: 50},
	Run: func(ctx context.Context, h *Host, in *TurnsRequest) (l Listed, err error) {
		if err := in.check(); err != nil {
			return l, err
		}
		l.Turns, l.All, err = h.Queue.Turns(ctx, ledger.ListOptions(*in))
		return l, err
	},
	Audit: func(in *TurnsRequest, out *Listed) Entry {
		if !in.Text { // the answer contains no text
			return Entry{}
		}
		var groups []string
		for i := range out.Turns {
			if group := out.Turns[i].Group; !slices.Contains(groups, group) {
				groups = append(groups, group)
			}
		}
		return Entry{"show queued turns", theQueue, groups, []slog.Attr{slog.Int("turns", len(out.Turns))}}
	},
}

// Retry delivers dead turns again.
var Retry = change(Spec{Name: "queue/retry", About: "Deliver dead letters again", Fails: OfFiles}, "retry turns", Spool.Retry)

// Drop deletes dead turns.
var Drop = change(Spec{Name: "queue/drop", About: "Delete dead letters permanently", Fails: OfFiles}, "drop turns", Spool.Drop)

// Send copies earlier turns to a Graphiti that was connected later.
var Send = Operation[SendRequest, Affected]{
	Spec: Spec{Name: "memory/send", About: "Copy earlier turns to Graphiti", Fails: OfFiles},
	Run: func(_ context.Context, h *Host, in *SendRequest) (Affected, error) {
		since, err := time.ParseInLocation(time.DateOnly, in.Since, time.Local)
		if err != nil {
			return Affected{}, invalid("since: write the date of the first turn to send, such as 2026-01-31")
		}
		n, err := h.Queue.Send(since)
		return Affected{n}, err
	},
	Audit: func(_ *SendRequest, out *Affected) Entry {
		return Entry{"send earlier turns", theQueue, nil, []slog.Attr{slog.Int("turns", out.Turns)}}
	},
}

func change(s Spec, what string, do func(Spool, []int64) (int, error)) Operation[Selection, Affected] {
	return Operation[Selection, Affected]{
		Spec: s,
		Run: func(_ context.Context, h *Host, in *Selection) (Affected, error) {
			if err := in.check(); err != nil {
				return Affected{}, err
			}
			n, err := do(h.Queue, in.Numbers)
			return Affected{n}, err
		},
		Audit: func(_ *Selection, out *Affected) Entry {
			return Entry{what, theQueue, nil, []slog.Attr{slog.Int("turns", out.Turns)}}
		},
	}
}

// Groups returns the groups of a selector.
var Groups = Operation[Selector, Meant]{
	Spec:  Spec{Name: "memory/groups", About: "The groups of a person's memory", People: true, Takes: ForgetTimeout},
	Run:   func(ctx context.Context, h *Host, in *Selector) (Meant, error) { return h.Memory.Find(ctx, *in) },
	Audit: func(in *Selector, out *Meant) Entry { return in.audit("list groups", out.All()) },
}

// ShowRequest is the input of Show.
type ShowRequest struct {
	Selector
	Last   int    `json:"last,omitempty" help:"how many messages"`
	Before string `json:"before,omitempty"` // time limit in RFC 3339, or "" for now
}

// Show returns the last messages.
var Show = Operation[ShowRequest, Shown]{
	Spec:    Spec{Name: "memory/show", About: "The last stored messages, or the last ones before a time", People: true},
	Default: ShowRequest{Last: 50},
	Run:     withMemory((*Service).Show),
	Audit:   func(in *ShowRequest, out *Shown) Entry { return in.audit("show", out.Groups) },
}

// ListRequest is the input of List.
type ListRequest struct {
	Selector
	Limit  int    `json:"limit,omitempty" help:"how many memories, and how many conversations"`
	Before string `json:"before,omitempty"` // only conversations whose last message is earlier, in RFC 3339
}

// List lists memories and conversations.
var List = Operation[ListRequest, Catalog]{
	Spec:    Spec{Name: "memory/list", About: "A person's memories: their own, projects and conversations, with counts", People: true},
	Default: ListRequest{Limit: 50},
	Run:     withMemory((*Service).Catalog),
	Audit:   func(in *ListRequest, out *Catalog) Entry { return in.audit("list", out.Groups) },
}

// Search returns the best matches of a query, or with a filter everything stored that it selects.
var Search = Operation[SearchRequest, Searched]{
	Spec:    Spec{Name: "memory/search", About: "The facts that match a text best, and why a message would not recall them; with a filter, everything stored", People: true},
	Default: SearchRequest{Limit: 50},
	Run:     withMemory((*Service).Search),
	Audit:   func(in *SearchRequest, out *Searched) Entry { return in.audit("search", out.Groups) },
	Own: func(ctx context.Context, h *Host, in *SearchRequest, own Selector) error {
		in.unshared = true
		return h.Memory.narrow(ctx, &in.Selector, own)
	},
}

// PromoteRequest is the input of Promote.
type PromoteRequest struct {
	Selector
	Promotion
}

// Promote stores a text verbatim.
var Promote = Operation[PromoteRequest, Promoted]{
	Spec: Spec{Name: "memory/promote", About: "Store a text verbatim", People: true},
	Run:  withMemory((*Service).Promote),
	Audit: func(in *PromoteRequest, out *Promoted) Entry {
		return in.audit("promote", out.Groups, slog.String("kind", in.Kind))
	},
}

// ImportRequest is the input of Import.
type ImportRequest struct {
	Selector
	Lines  []Line `json:"lines"`
	Distil bool   `json:"distil,omitempty" help:"distil facts from the conversations (costs tokens)"`
	Import string `json:"import,omitempty"` // name of the import, for its undo; the default is none

	notes int // number of omitted session notes
}

// narrow narrows each line to the caller's memory. It omits session notes, because their names do
// not reveal their owner.
func (r *ImportRequest) narrow(ctx context.Context, h *Host, own Selector) error {
	t, err := h.Memory.belongings(ctx, own)
	if err == nil {
		err = t.narrow(&r.Selector)
	}
	for i := range r.Lines {
		if err != nil {
			return err
		}
		l := &r.Lines[i]
		of := r.of(l)
		err = t.narrow(&of)
		l.User = ""
	}
	all := len(r.Lines)
	r.Lines = slices.DeleteFunc(r.Lines, func(l Line) bool { return l.Where == notes })
	r.notes = all - len(r.Lines)
	return err
}

// Import stores each line once, in order. FileImport calls it for a file.
var Import = Operation[ImportRequest, Imported]{
	Spec: Spec{Name: "memory/import", About: "Import lines, each once", Size: 16 << 20, Takes: ForgetTimeout},
	Run:  withMemory((*Service).Import),
	Audit: func(in *ImportRequest, out *Imported) Entry {
		return in.audit("import", out.Groups, slog.Int("kept", out.Kept))
	},
	Own: func(ctx context.Context, h *Host, in *ImportRequest, own Selector) error {
		return in.narrow(ctx, h, own)
	},
}

// ForgetRequest is a Selector without empty fields. It rejects empty fields, such as those from
// unset variables, because the request would forget too much.
type ForgetRequest struct {
	Selector
	Wait     bool `json:"wait,omitempty"`     // for the deletion in Graphiti, up to ForgetTimeout
	Undoable bool `json:"undoable,omitempty"` // keep a copy for thirty days, which memory/undo restores
}

func (f *ForgetRequest) UnmarshalJSON(b []byte) error {
	type plain ForgetRequest // without this method
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var fields map[string]any
	if err := errors.Join(d.Decode((*plain)(f)), json.Unmarshal(b, &fields)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] == "" {
			return fmt.Errorf("%s is empty: remove it, or give it a value", name)
		}
	}
	return nil
}

// Forget empties a group, deletes a session's messages in it, or deletes one message.
var Forget = Operation[ForgetRequest, Forgotten]{
	Spec: Spec{Name: "memory/forget", About: "Empty a group everywhere, or delete one session's messages in it, or one message", Fails: OfMemory, Takes: ForgetTimeout},
	Run:  withMemory((*Service).Forget),
	Audit: func(in *ForgetRequest, out *Forgotten) Entry {
		if in.Message != "" {
			return in.audit("forget", out.Groups, slog.String("message", in.Message))
		}
		return in.audit("forget", []string{in.Group})
	},
	Own: func(ctx context.Context, h *Host, in *ForgetRequest, own Selector) error {
		return h.Memory.narrowPart(ctx, &in.Selector, own)
	},
}

// Accept confirms a registered person's memory.
var Accept = Operation[Acceptance, Accepted]{
	Spec: Spec{Name: "registry/accept", About: "Confirm that a registered person owns their memory", Fails: OfMemory, Takes: ForgetTimeout},
	Run:  withMemory((*Service).Accept),
	Audit: func(in *Acceptance, _ *Accepted) Entry {
		return Entry{What: "accept a person", Who: "user=" + in.ID, More: []slog.Attr{slog.Bool("keep", in.Keep)}}
	},
}

// Export returns all records of a group, or of a session of a person in it.
var Export = Operation[Selector, Record]{
	Spec: Spec{Name: "memory/export", About: "All stored data of a group, or of a session in it, as JSON Lines of Record", Reads: true, Without: []string{"agent", "workspace", "own", "message"}},
	Each: func(ctx context.Context, h *Host, in *Selector, f func(Record) error) error {
		return h.Memory.Export(ctx, *in, f)
	},
	Audit: func(in *Selector, _ *Record) Entry { return in.audit("export", []string{in.Group}) },
	Own: func(ctx context.Context, h *Host, in *Selector, own Selector) error {
		return h.Memory.narrowPart(ctx, in, own)
	},
}
