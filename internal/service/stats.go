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
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
)

// statsDays is the number of counted days, including today.
const statsDays = 7

// Figures are counts of memory use. The memory counts stored turns, so forgotten turns do not
// count. Everything else was counted when it happened.
type Figures struct {
	Conversations int `json:"conversations"` // conversations with stored turns
	Turns         int `json:"turns"`         // stored turns

	Blocks int `json:"blocks"`     // shown blocks, each counted once
	Chars  int `json:"characters"` // characters of memory in blocks
	Tokens int `json:"tokens"`     // estimate of inject.Tokens
	Silent int `json:"silent"`     // turns without a block

	Input    int     `json:"input_tokens"`  // as providers reported
	Cached   int     `json:"cached_tokens"` // input tokens from prompt caches
	Requests int     `json:"requests"`      // requests with possible memory; a turn has several
	WaitedMs float64 `json:"waited_ms"`     // total wait of the requests for memory

	Usage     graphiti.Usage `json:"usage,omitzero"`             // tokens of requests with a model's name
	Distilled int            `json:"distilled_tokens,omitempty"` // of the model that distils facts
	Cost      Cost           `json:"cost_usd,omitzero"`
}

// Day is one day's figures, in UTC.
type Day struct {
	Date string `json:"date"`
	Figures
}

// Week is the figures of seven days, and of the process.
type Week struct {
	Days   []Day          `json:"days"` // oldest first
	Week   Figures        `json:"week"`
	Silent map[string]int `json:"silent_by_reason"`
	Lost   map[string]int `json:"lost_by_reason,omitempty"` // answers that were not stored

	// Shortened counts the texts since the start that exceeded ingest.max_message_chars.
	Shortened int `json:"shortened_since_start,omitempty"`

	Bill   string `json:"bill,omitempty"`      // memory's share, in words
	Prices string `json:"prices_of,omitempty"` // date of the prices

	Proof *proof.Report `json:"proof,omitempty"` // of all people; nil without proof mode

	Notes  []string `json:"notes,omitempty"` // limits of the counts
	from   time.Time
	Groups []string `json:"-"`
}

// Stats counts the memory use of the last seven days.
var Stats = Operation[Selector, Week]{
	Spec: Spec{Name: "memory/stats", About: "The work of memory in the last seven days: conversations, turns, blocks, silence by reason, characters, tokens, waiting time; of all people without user or credential", People: true},
	Run: func(ctx context.Context, h *Host, in *Selector) (Week, error) {
		w, err := h.Memory.Stats(ctx, *in)
		if err == nil && h.Status != nil && *in == (Selector{}) { // the proxy is running
			w.Shortened = h.Status(ctx, false).Queue.Shortened
		}
		return w, err
	},
	Audit: func(in *Selector, out *Week) Entry { return in.audit("count", out.Groups) },
}

// Stats counts the last seven days of a person, or of all people.
func (sv *Service) Stats(ctx context.Context, s Selector) (w Week, err error) {
	groups, owner, err := sv.counted(ctx, s)
	if err != nil {
		return w, err
	}
	w = newWeek()
	var counts []cache.Counts
	together := false
	if owner != "" || s == (Selector{}) {
		counts, together, err = sv.o.State.Figures.Since(ctx, w.from, statsDays, owner)
	} else {
		err = errors.New("the owner of this group is unknown")
	}
	for i := range counts {
		w.add(&w.Days[i].Figures, &counts[i])
	}
	if err := sv.bill(&w, counts); err != nil {
		w.Notes = append(w.Notes, err.Error())
	}
	switch {
	case err != nil:
		w.Notes = append(w.Notes, fmt.Sprintf("only stored messages are counted: %v", err))
	case together && owner != "":
		w.Notes = append(w.Notes, "one day had too many people, so the statistics of some are combined, and missing from their own")
	}
	if full := sv.full(owner); full != nil {
		w.Notes = append(w.Notes, full.Error())
	}
	if s == (Selector{}) {
		if w.Proof, err = sv.o.Proof.Report(ctx); err != nil {
			w.Notes = append(w.Notes, fmt.Sprintf("proof mode: %v", err))
		}
	}
	k := kept{from: w.from, turns: make(map[graphiti.TurnID]bool), talks: make(map[talkOn]bool)}
	for _, o := range groups {
		w.Groups = append(w.Groups, o.Group)
		if err := sv.headings(ctx, o.Group, func(r *graphiti.Row) { k.add(&w, r) }); err != nil {
			return w, err
		}
	}
	return w, nil
}

// Arms counts the conversations of proof mode, by arm.
func (sv *Service) Arms(ctx context.Context) map[string]int {
	if r, err := sv.o.Proof.Report(ctx); err == nil && r != nil {
		return r.Arms
	}
	return nil // status reports the fault
}

// newWeek returns the week that ends today, without counts.
func newWeek() (w Week) {
	w.from = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-statsDays)
	w.Days, w.Silent, w.Lost = make([]Day, statsDays), make(map[string]int), make(map[string]int)
	for i := range w.Days {
		w.Days[i].Date = w.from.AddDate(0, 0, i).Format(time.DateOnly)
	}
	return w
}

// counted returns the groups to count, and the owner of the other figures. An empty owner is
// everyone.
func (sv *Service) counted(ctx context.Context, s Selector) (groups []ledger.Owned, owner string, err error) {
	if s != (Selector{}) || !sv.o.Multi { // other clients may have written to empty groups
		if groups, owner, err = sv.theirs(ctx, s); err != nil {
			return nil, "", err
		}
	}
	if s != (Selector{}) {
		return groups, cmp.Or(owner, groups[0].Owner), nil
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	for _, o := range known {
		if !slices.ContainsFunc(groups, func(g ledger.Owned) bool { return g.Group == o.Group }) {
			groups = append(groups, o)
		}
	}
	return groups, "", err
}

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

// kept counts each turn and conversation once, across groups and days.
type kept struct {
	from  time.Time
	turns map[graphiti.TurnID]bool
	talks map[talkOn]bool
}

// talkOn is a conversation on a day, or in the week if day is -1.
type talkOn struct {
	talk string
	day  int
}

func (k *kept) add(w *Week, r *graphiti.Row) {
	i := int(r.Said.Sub(k.from) / (24 * time.Hour))
	if r.Said.Before(k.from) || i >= statsDays || r.Turn == (graphiti.TurnID{}) || r.Role == graphiti.RoleSystem { // promoted texts are not turns
		return
	}
	day := &w.Days[i]
	if !k.turns[r.Turn] {
		k.turns[r.Turn] = true
		day.Turns++
		w.Week.Turns++
	}
	if r.Session == "" {
		return
	}
	if on := (talkOn{r.Session, i}); !k.talks[on] {
		k.talks[on] = true
		day.Conversations++
	}
	if on := (talkOn{r.Session, -1}); !k.talks[on] {
		k.talks[on] = true
		w.Week.Conversations++
	}
}
