package service_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestCostOfWeek checks the cost of requests and of memory, and its sentence, for tables of prices.
func TestCostOfWeek(t *testing.T) {
	usage := graphiti.Usage{Input: 11_000, Cached: 5_000, Output: 1_000, New: 1_000, Repeated: 1_000}
	for _, tc := range []struct {
		name, prices, model string
		total, blocks       float64
		bill, note          string
	}{
		{"a table", `{"gpt-5": {"input_cost_per_token": 0.001, "cache_read_input_token_cost": 0.0001, "output_cost_per_token": 0.01}, "sample_spec": {"input_cost_per_token": "a text"}}`, "gpt-5", 16.5, 1.55, "memory added 10.4 % to your bill of seven days: $1.55 to $14.95, at prices of 2026-11-20; repeated blocks read from cache: about 50 %", ""},
		{"without a price of cached tokens", `{"gpt-5": {"input_cost_per_token": 0.001}}`, "openai/gpt-5", 11, 2, "memory added 22.2 % to your bill", ""},
		{"an unknown model", `{"gpt-5": {"input_cost_per_token": 0.001}}`, "mine", 0, 0, "memory added 22.2 % to your input tokens", "cost.prices has no price for: mine"},
		{"no table", "", "gpt-5", 0, 0, "memory added 22.2 % to your input tokens of seven days; repeated blocks read from cache: about 50 %", ""},
		{"a damaged table", "{", "gpt-5", 0, 0, "", "cost.prices: read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
			defer m.Close()
			set := service.Settings{Namer: graphiti.Namer{Raw: true}, MaxChars: 8000, Timeout: time.Second}
			if tc.prices != "" {
				set.Prices = filepath.Join(t.TempDir(), "prices.json")
				must(t, os.WriteFile(set.Prices, []byte(tc.prices), 0o600))
				must(t, os.Chtimes(set.Prices, time.Time{}, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
			}
			m.Memory.Set(set)
			m.State.Figures.Used(graphiti.Who{User: servicetest.Owner}, tc.model, &usage)
			w := run(t, m, service.Stats, service.Selector{})
			near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
			if c := w.Week.Cost; !near(c.Total, tc.total) || !near(c.Blocks, tc.blocks) || w.Days[6].Cost != c && w.Days[5].Cost != c {
				t.Errorf("cost %+v, want %v and %v", c, tc.total, tc.blocks)
			}
			if w.Bill != tc.bill && (tc.bill == "" || !strings.HasPrefix(w.Bill, tc.bill)) {
				t.Errorf("got %q, want %q", w.Bill, tc.bill)
			}
			if notes := strings.Join(w.Notes, ";"); !strings.Contains(notes, tc.note) || tc.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, tc.note)
			}
		})
	}
}
