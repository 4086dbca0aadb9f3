package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestStatsCountTheWeek: turns and conversations by when they were said, each once;
// blocks by what was decided, silence by its reason, and promoted texts not as turns.
func TestStatsCountTheWeek(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Memory, settle func()) {
		now := time.Now().UTC()
		for i, at := range []time.Time{now.Add(-time.Minute), now, now, now.AddDate(0, 0, -30)} {
			one := turn(strings.Repeat(string(rune('a'+i)), 32), []string{"s1", "s1", "s2", "s3"}[i], "My cat is called Miso, number "+string(rune('0'+i)), "I see.")
			if i == 3 && strings.HasSuffix(t.Name(), "mcp") { // which dates a message by its arrival
				continue
			}
			one.Said, one.Answered = at, at
			add(t, m, settle, one)
		}
		run(t, m, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "decision", Text: "Tabs"}})
		settle()
		for i, d := range []inject.Decision{{Block: "Größe", Facts: 1}, {Block: "ab", Facts: 2}, {Reason: "weak"}, {Reason: "weak"}, {}} {
			d.Generation = m.State.Generations.Now()
			if _, err := m.State.Decisions.Keep(t.Context(), [16]byte{byte(i)}, d, []string{"other", servicetest.OwnersGroup}[i%2]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.State.Decisions.Forget(t.Context(), servicetest.OwnersGroup); err != nil {
			t.Fatal(err)
		}
		w := run(t, m, service.Stats, service.Selector{})
		if want := (service.Figures{Conversations: 2, Turns: 3, Blocks: 2, Chars: 5, Silent: 3, Gone: 1}); w.Week != want {
			t.Errorf("week: %+v, want %+v", w.Week, want)
		}
		var turns, blocks int
		for _, d := range w.Days {
			turns, blocks = turns+d.Turns, blocks+d.Blocks
		}
		if len(w.Days) != 7 || w.Days[6].Date < now.Format(time.DateOnly) || turns != 3 || blocks != 2 {
			t.Errorf("days: %+v", w.Days)
		}
		if len(w.Silent) != 2 || w.Silent["weak"] != 2 || w.Silent["timeout or error"] != 1 {
			t.Errorf("silent: %v", w.Silent)
		}
		if theirs := run(t, m, service.Stats, service.Selector{User: "ann"}); theirs.Week.Turns != 0 {
			t.Errorf("another's: %+v", theirs.Week)
		}
		if _, _, err := call(t, m, "memory/stats", `{"workspace":"w"}`); err == nil || !strings.Contains(err.Error(), "only a person's") {
			t.Errorf("of a project: %v", err)
		}
	})
}
