package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Cost is the cost of requests and of memory, in US dollars.
type Cost struct {
	Total  float64 `json:"total,omitempty"`  // of requests and answers, including blocks
	Blocks float64 `json:"blocks,omitempty"` // of blocks in requests
	Distil float64 `json:"distil,omitempty"` // of the model that distils facts, at the price of its input
}

// price is the price of one token of a model.
type price struct {
	Input  float64  `json:"input_cost_per_token"`
	Output float64  `json:"output_cost_per_token"`
	Cached *float64 `json:"cache_read_input_token_cost"` // nil if it costs as much as other input
}

func (p *price) of(u *graphiti.Usage) Cost {
	cached, blocks := p.Input, u.CachedBlocks()
	if p.Cached != nil {
		cached = *p.Cached
	}
	return Cost{
		Total:  float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*cached + float64(u.Output)*p.Output,
		Blocks: (float64(u.New+u.Repeated)-blocks)*p.Input + blocks*cached,
	}
}

// readPrices returns the prices of models in a file, and the date of the file.
func readPrices(path string) (models map[string]price, at time.Time, err error) {
	info, err := os.Stat(path)
	text, unread := os.ReadFile(path) // #nosec G304 -- the operator names it
	if err = cmp.Or(err, unread); err != nil {
		return nil, at, fmt.Errorf("cost.prices: %w", err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, at, fmt.Errorf("cost.prices: read %s: %w; write {\"model\": {\"input_cost_per_token\": 0.000001, \"output_cost_per_token\": 0.00001}}", path, err)
	}
	models = make(map[string]price, len(entries))
	for name, entry := range entries {
		var one price
		if json.Unmarshal(entry, &one) == nil && one.Input > 0 { // LiteLLM's table has other entries, too
			models[name] = one
		}
	}
	return models, info.ModTime(), nil
}

// priced returns the price of a model, with or without its provider's name before it.
func priced(models map[string]price, name string) (p price, ok bool) {
	for !ok && name != "" {
		if p, ok = models[name]; !ok {
			_, name, _ = strings.Cut(name, "/")
		}
	}
	return p, ok
}

// bill adds the tokens and the cost of the week to its days, and describes memory's share.
func (sv *Service) bill(w *Week, counts []cache.Counts) (err error) {
	set := sv.settings()
	var models map[string]price
	if set.Prices != "" {
		var at time.Time
		if models, at, err = readPrices(set.Prices); err != nil {
			return err
		}
		w.Prices = at.UTC().Format(time.DateOnly)
	}
	unknown := make(map[string]bool)
	for i := range counts {
		day := &w.Days[i].Figures
		use := func(name string, u *graphiti.Usage) (c Cost) {
			p, ok := priced(models, name)
			if !ok {
				unknown[name] = models != nil
			}
			return p.of(u)
		}
		for name, u := range counts[i].Models {
			day.Usage.Add(u)
			c := use(name, u)
			day.Cost.Total, day.Cost.Blocks = day.Cost.Total+c.Total, day.Cost.Blocks+c.Blocks
		}
		if day.Distilled = counts[i].Distil.Tokens; day.Distilled > 0 {
			day.Cost.Distil = use(set.Distils, &graphiti.Usage{Input: int64(day.Distilled)}).Total
		}
		w.Week.Usage.Add(&day.Usage)
		w.Week.Distilled += day.Distilled
		w.Week.Cost.Total, w.Week.Cost.Blocks, w.Week.Cost.Distil = w.Week.Cost.Total+day.Cost.Total, w.Week.Cost.Blocks+day.Cost.Blocks, w.Week.Cost.Distil+day.Cost.Distil
	}
	w.Bill = w.sentence()
	maps.DeleteFunc(unknown, func(_ string, priced bool) bool { return !priced })
	if len(unknown) > 0 {
		return fmt.Errorf("cost.prices has no price for: %s", strings.Join(slices.Sorted(maps.Keys(unknown)), ", "))
	}
	return nil
}

// sentence describes memory's share of the bill, or to the tokens if there are no prices.
func (w *Week) sentence() string {
	u, c := &w.Week.Usage, &w.Week.Cost
	blocks := u.New + u.Repeated
	if u.Input <= blocks {
		return ""
	}
	said := fmt.Sprintf("memory added %.1f %% to your input tokens of seven days", 100*float64(blocks)/float64(u.Input-blocks))
	if rest := c.Total - c.Blocks; rest > 0 {
		said = fmt.Sprintf("memory added %.1f %% to your bill of seven days: $%.*f to $%.*f, at prices of %s", 100*(c.Blocks+c.Distil)/rest, cents(c.Blocks+c.Distil), c.Blocks+c.Distil, cents(rest), rest, w.Prices)
	}
	if u.Repeated > 0 {
		said += fmt.Sprintf("; repeated blocks read from cache: about %.0f %%", 100*u.CachedBlocks()/float64(u.Repeated))
	}
	return said
}

// cents returns the decimals to show of a cost.
func cents(cost float64) int {
	if cost < 1 {
		return 4
	}
	return 2
}

// Bill returns the sentence of the last seven days, of all people.
func (sv *Service) Bill(ctx context.Context) string {
	w := newWeek()
	counts, _, err := sv.o.State.Figures.Since(ctx, w.from, statsDays, "")
	if err == nil {
		err = sv.bill(&w, counts)
	}
	if err != nil && w.Bill == "" {
		return "unknown: " + err.Error()
	}
	return w.Bill
}
