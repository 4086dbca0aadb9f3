package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestStatsCountTheWeek checks that turns and conversations of the week are counted once,
// without promoted texts, and that blocks, silence and tokens are counted for all people
// and for each one.
func TestStatsCountTheWeek(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		now := time.Now().UTC()
		for i, at := range []time.Time{now.Add(-time.Minute), now, now, now.AddDate(0, 0, -30)} {
			one := turn(strings.Repeat(string(rune('a'+i)), 32), []string{"s1", "s1", "s2", "s3"}[i], "My cat is called Miso, number "+string(rune('0'+i)), "I see.")
			if i == 3 && strings.HasSuffix(t.Name(), "mcp") { // MCP dates a message by its arrival
				continue
			}
			one.Said, one.Answered = at, at
			add(t, m, settle, one)
		}
		run(t, m, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "decision", Text: "Tabs"}})
		settle()
		josh, ann := graphiti.Who{User: servicetest.Owner}, graphiti.Who{User: "user:ann"}
		for _, p := range []inject.Plan{
			{Decided: true, Block: "Größe", Outcome: inject.Outcome{Status: inject.StatusRecalled, Chars: 5, Took: time.Millisecond}},
			{Block: "Größe", Outcome: inject.Outcome{Status: inject.StatusRecalled, Chars: 5, Took: time.Millisecond}},
			{Decided: true, Outcome: inject.Outcome{Status: inject.StatusEmpty, Reason: inject.ReasonWeak}},
		} {
			m.State.Figures.Asked(josh, p)
		}
		m.State.Figures.Used(josh, "gpt-5", &graphiti.Usage{Input: 1000, Cached: 600, Output: 50, New: 10, Repeated: 30})
		m.State.Figures.Asked(ann, inject.Plan{Decided: true, Outcome: inject.Outcome{Status: inject.StatusTimeout}})
		used := graphiti.Usage{Input: 1000, Cached: 600, Output: 50, New: 10, Repeated: 30}
		w := run(t, m, service.Stats, service.Selector{})
		if want := (service.Figures{Conversations: 2, Turns: 3, Blocks: 1, Chars: 5, Tokens: 2, Silent: 2, Input: 1000, Cached: 600, Requests: 4, WaitedMs: 2, Usage: used}); w.Week != want {
			t.Errorf("week: %+v, want %+v", w.Week, want)
		}
		var turns, blocks int
		for _, d := range w.Days {
			turns, blocks = turns+d.Turns, blocks+d.Blocks
		}
		if len(w.Days) != 7 || w.Days[6].Date < now.Format(time.DateOnly) || turns != 3 || blocks != 1 {
			t.Errorf("days: %+v", w.Days)
		}
		if len(w.Silent) != 2 || w.Silent["weak"] != 1 || w.Silent["timeout"] != 1 {
			t.Errorf("silent: %v", w.Silent)
		}
		for user, want := range map[string]service.Figures{
			"ann": {Silent: 1, Requests: 1},
			"me":  {Conversations: 2, Turns: 3, Blocks: 1, Chars: 5, Tokens: 2, Silent: 1, Input: 1000, Cached: 600, Requests: 3, WaitedMs: 2, Usage: used},
		} {
			if theirs := run(t, m, service.Stats, service.Selector{User: user}); theirs.Week != want {
				t.Errorf("of %s: %+v, want %+v", user, theirs.Week, want)
			}
		}
		if _, _, err := call(t, m, "memory/stats", `{"workspace":"w"}`); err == nil || !strings.Contains(err.Error(), "only a person's") {
			t.Errorf("of a project: %v", err)
		}
	})
}
