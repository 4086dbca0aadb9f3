package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// statsDays is how many days are counted, today's included.
const statsDays = 7

// Figures are what memory did. What was kept is counted in the memory, so that what was
// forgotten is not counted; all else was counted when it happened.
type Figures struct {
	Conversations int `json:"conversations"` // in which something was kept
	Turns         int `json:"turns"`         // that were kept

	Blocks int `json:"blocks"`     // that were shown, each counted once
	Chars  int `json:"characters"` // of memory in them
	Tokens int `json:"tokens"`     // that those are about, as inject.Tokens estimates it
	Silent int `json:"silent"`     // turns without a block

	Input    int     `json:"input_tokens"`  // of requests, as providers said it
	Cached   int     `json:"cached_tokens"` // of those, read from prompt caches, as providers said it
	Requests int     `json:"requests"`      // that may have had memory; a turn has several
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
	Lost   map[string]int `json:"lost_by_reason,omitempty"` // answers that were not stored

	// Since the proxy started: its requests by what memory did. A turn has several.
	Started  string           `json:"started,omitempty"`
	Outcomes map[string]int64 `json:"outcomes_since_start,omitempty"`

	// Shortened counts the texts since the start whose middle was left out, because they
	// are longer than ingest.max_message_chars.
	Shortened int `json:"shortened_since_start,omitempty"`

	Notes  []string `json:"notes,omitempty"` // what is not counted
	Groups []string `json:"-"`
}

// Stats counts what memory did in the last seven days.
var Stats = Operation[Selector, Week]{
	Spec: Spec{Name: "memory/stats", About: "The work of memory in the last seven days: conversations, turns, blocks, silence by reason, characters, tokens, waiting time; of all people without user or credential"},
	Run: func(ctx context.Context, h *Host, in *Selector) (Week, error) {
		w, err := h.Memory.Stats(ctx, *in)
		if err == nil && h.Status != nil && *in == (Selector{}) { // a proxy runs
			s := h.Status(ctx, false)
			w.Started, w.Outcomes, w.Shortened = dateOf(s.Started), s.Memory.Outcomes, s.Queue.Shortened
		}
		return w, err
	},
	Audit: func(in *Selector, out *Week) Entry { return in.audit("count", out.Groups) },
	Own: func(ctx context.Context, h *Host, in *Selector, own Selector) error {
		return ownSelector(ctx, h, in, own)
	},
}

// Stats counts what memory did in the last seven days for a person, or for everybody.
func (sv *Service) Stats(ctx context.Context, s Selector) (w Week, err error) {
	groups, owner, err := sv.counted(ctx, s)
	if err != nil {
		return w, err
	}
	from := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-statsDays)
	w.Days, w.Silent = make([]Day, statsDays), make(map[string]int)
	w.Lost = make(map[string]int)
	for i := range w.Days {
		w.Days[i].Date = from.AddDate(0, 0, i).Format(time.DateOnly)
	}
	var counts []cache.Counts
	together := false
	if owner != "" || s == (Selector{}) {
		counts, together, err = sv.o.State.Figures.Since(ctx, from, statsDays, owner)
	} else {
		err = errors.New("the owner of this group is unknown")
	}
	for i := range counts {
		w.add(&w.Days[i].Figures, &counts[i])
	}
	switch {
	case err != nil:
		w.Notes = append(w.Notes, fmt.Sprintf("only stored messages are counted: %v", err))
	case together && owner != "":
		w.Notes = append(w.Notes, "one day had too many people, so the statistics of some are combined, and missing from their own")
	}
	if sv.o.Remote {
		w.Notes = append(w.Notes, notAllGroups)
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	k := kept{from: from, turns: make(map[uint64]bool), talks: make(map[talkOn]bool)}
	for _, o := range groups {
		w.Groups = append(w.Groups, o.Group)
		if err := sv.headings(ctx, o.Group, func(h *graphiti.Heading, _ string) { k.add(&w, h) }); err != nil {
			w.Notes = append(w.Notes, fmt.Sprintf("not counted: %s: %v", cmp.Or(shortWorkspace(o.Key), o.Group), err))
		}
	}
	return w, nil
}

// counted returns the groups in which is counted what was kept of whom a selector means,
// and the owner of the other figures; empty: everybody.
func (sv *Service) counted(ctx context.Context, s Selector) (groups []ledger.Owned, owner string, err error) {
	if s != (Selector{}) {
		if groups, err = sv.theirs(ctx, s); err == nil {
			_, owner, err = sv.asked(s)
		}
		if err == nil && owner == "" && s.Group != "" {
			owner = groups[0].Owner
		}
		return groups, owner, err
	}
	if !sv.o.Multi { // also where they have written nothing so far: other clients may have
		if groups, err = sv.theirs(ctx, s); err != nil {
			return nil, "", err
		}
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	for _, o := range known {
		if !slices.ContainsFunc(groups, func(g ledger.Owned) bool { return g.Group == o.Group }) {
			groups = append(groups, o)
		}
	}
	return groups, "", err
}

// add adds what was counted on a day.
func (w *Week) add(day *Figures, c *cache.Counts) {
	for _, f := range []*Figures{day, &w.Week} {
		f.Blocks += int(c.Blocks)
		f.Chars += int(c.Chars)
		f.Tokens += int(c.Tokens)
		f.Input += int(c.Input)
		f.Cached += int(c.Cached)
		f.Requests += int(c.Requests)
		f.WaitedMs += float64(c.Waited.Microseconds()) / 1000
		for _, n := range c.Silent {
			f.Silent += int(n)
		}
	}
	for why, n := range c.Silent {
		w.Silent[why] += int(n)
	}
	for why, n := range c.Lost {
		w.Lost[why] += int(n)
	}
}

// kept counts turns and conversations, each once: one may be in several groups, and a
// conversation goes on for days.
type kept struct {
	from  time.Time
	turns map[uint64]bool
	talks map[talkOn]bool
}

// talkOn is a conversation on a day; -1: in the week.
type talkOn struct {
	talk string
	day  int
}

func (k *kept) add(w *Week, h *graphiti.Heading) {
	i := int(h.Said.Sub(k.from) / (24 * time.Hour))
	if h.Said.Before(k.from) || i >= statsDays || h.Turn == 0 || h.Role == graphiti.RoleSystem { // not said, but promoted
		return
	}
	day := &w.Days[i]
	if !k.turns[h.Turn] {
		k.turns[h.Turn] = true
		day.Turns++
		w.Week.Turns++
	}
	if h.Talk == "" {
		return
	}
	if on := (talkOn{h.Talk, i}); !k.talks[on] {
		k.talks[on] = true
		day.Conversations++
	}
	if on := (talkOn{h.Talk, -1}); !k.talks[on] {
		k.talks[on] = true
		w.Week.Conversations++
	}
}
