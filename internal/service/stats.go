package service

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// statsDays is how many days are counted, today's included.
const statsDays = 7

// Figures are what memory did. What was kept is a person's; what was shown is
// everybody's, because a decision does not say whose it is.
type Figures struct {
	Conversations int `json:"conversations"` // in which something was kept
	Turns         int `json:"turns"`         // that were kept

	Blocks int `json:"blocks"`          // that were shown
	Chars  int `json:"characters"`      // of memory in them, each counted once
	Silent int `json:"silent"`          // turns without a block
	Gone   int `json:"forgotten_since"` // blocks that were shown, and emptied since

	Tokens   int     `json:"tokens"`        // that the characters are about
	Input    int     `json:"input_tokens"`  // of requests, as providers said it
	Cached   int     `json:"cached_tokens"` // of those, read from prompt caches, as providers said it
	Requests int     `json:"requests"`      // that may have had memory
	WaitedMs float64 `json:"waited_ms"`     // that they waited for memory, all together
}

// Day is one day's figures, in UTC.
type Day struct {
	Date string `json:"date"`
	Figures
}

// Week is the figures of the last seven days, and of the process.
type Week struct {
	Days   []Day          `json:"days"` // the first of them first
	Week   Figures        `json:"week"`
	Silent map[string]int `json:"silent_by_reason"`

	// Since the proxy started: its requests by what memory did. A turn has several.
	Started  string           `json:"started,omitempty"`
	Outcomes map[string]int64 `json:"outcomes_since_start,omitempty"`

	Notes  []string `json:"notes,omitempty"` // what is not counted
	Groups []string `json:"-"`
}

// Stats counts what memory did in the last seven days.
var Stats = Operation[Selector, Week]{
	Spec: Spec{Name: "memory/stats", About: "What memory did in the last seven days: conversations, turns, blocks, silence by reason, characters"},
	Run: func(ctx context.Context, h *Host, in *Selector) (Week, error) {
		w, err := h.Memory.Stats(ctx, *in)
		if err == nil && h.Status != nil { // a proxy runs
			s := h.Status(ctx, false)
			w.Started, w.Outcomes = dateOf(s.Started), s.Memory.Outcomes
		}
		return w, err
	},
	Audit: func(in *Selector, out *Week) Entry { return in.audit("count", out.Groups) },
}

// noReason is the reason of a turn for which nothing was found in time, or at all.
const noReason = "timeout or error"

// Stats counts what was kept of a person's in the last seven days, and what was shown.
func (sv *Service) Stats(ctx context.Context, s Selector) (w Week, err error) {
	groups, err := sv.theirs(ctx, s)
	if err != nil {
		return w, err
	}
	now := time.Now().UTC()
	from := now.Truncate(24*time.Hour).AddDate(0, 0, 1-statsDays)
	w.Days, w.Silent = make([]Day, statsDays), make(map[string]int)
	for i := range w.Days {
		w.Days[i].Date = from.AddDate(0, 0, i).Format(time.DateOnly)
	}
	on := func(at time.Time) *Day {
		i := int(at.Sub(from) / (24 * time.Hour))
		if at.Before(from) || i >= statsDays {
			return nil
		}
		return &w.Days[i]
	}
	counted, err := sv.o.State.Decisions.Since(ctx, from, func(at time.Time, d *inject.Decision) {
		if day := on(at); day != nil {
			w.shown(day, d)
		}
	})
	if err != nil {
		return w, err
	}
	if !counted {
		w.Notes = append(w.Notes, "blocks and silence are not counted by day: replicas share them in Redis, which has no list of them; see the metrics")
	}
	if sv.o.Remote {
		w.Notes = append(w.Notes, notAllGroups)
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	k := kept{seen: make(map[string]bool)}
	for _, o := range groups {
		w.Groups = append(w.Groups, o.Group)
		if err := sv.countKept(ctx, o.Group, func(name, source string, at time.Time) { k.add(&w, on(at), name, source) }); err != nil {
			w.Notes = append(w.Notes, fmt.Sprintf("not counted: %s: %v", cmp.Or(shortWorkspace(o.Key), o.Group), err))
		}
	}
	return w, nil
}

// shown counts a decision.
func (w *Week) shown(day *Day, d *inject.Decision) {
	for _, f := range []*Figures{&day.Figures, &w.Week} {
		switch {
		case d.Block != "":
			f.Blocks++
			f.Chars += utf8.RuneCountInString(d.Block)
		case d.Facts > 0:
			f.Blocks++
			f.Gone++
		default:
			f.Silent++
		}
	}
	if d.Block == "" && d.Facts == 0 {
		w.Silent[cmp.Or(d.Reason, noReason)]++
	}
}

// countKept calls f for each message that a group holds, or that waits for it.
func (sv *Service) countKept(ctx context.Context, group string, f func(name, source string, at time.Time)) error {
	if sv.o.State.Generations.Blocks(group) {
		return errForgetting
	}
	err := sv.o.Pipeline.Waiting(ctx, ledger.Part{Group: group}, func(g graphiti.Message) error {
		f(g.Name, g.SourceDescription, g.Timestamp)
		return nil
	})
	if err != nil {
		return err
	}
	listed := false
	err = sv.o.Memory.Export(ctx, group, func(e graphiti.Episode) error {
		listed = true
		f(e.Name, e.SourceDescription, e.ValidAt)
		return nil
	})
	if err != nil {
		return withRemedy(err)
	}
	if listed {
		return nil
	}
	return sv.emptyOrUnlisted(ctx, group)
}

// kept counts turns and conversations, each once: one may be in several groups, and a
// conversation goes on for days.
type kept struct{ seen map[string]bool }

func (k kept) first(what ...string) bool {
	key := strings.Join(what, "\n")
	if k.seen[key] {
		return false
	}
	k.seen[key] = true
	return true
}

func (k kept) add(w *Week, day *Day, name, source string) {
	turn, ours := graphiti.TurnOf(name)
	if day == nil || !ours || name == graphiti.EpisodeName(turn, graphiti.RoleSystem) { // a text that was promoted, and not said
		return
	}
	if k.first("turn", turn) {
		day.Turns++
		w.Week.Turns++
	}
	session := ledger.SessionOf(source)
	if session == "" {
		return
	}
	if k.first("day", day.Date, session) {
		day.Conversations++
	}
	if k.first("week", session) {
		w.Week.Conversations++
	}
}
