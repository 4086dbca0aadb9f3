package inject

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestSilence checks that a block appears only if a fact is strong enough or the memory
// does not weigh its facts, and if the message asks for something.
func TestSilence(t *testing.T) {
	fact := func(strength float64, weighed bool) graphiti.Fact {
		return graphiti.Fact{Text: "Ann grows beans", Strength: strength, Weighed: weighed}
	}
	for _, tc := range []struct {
		name  string
		least float64
		said  string
		found []graphiti.Fact
		want  Outcome
	}{
		{"strong", 0.25, "beans?", []graphiti.Fact{{Text: "weak one", Weighed: true}, fact(0.25, true)}, Outcome{Status: StatusRecalled, Facts: 2}},
		{"weak", 0.25, "beans?", []graphiti.Fact{fact(0.24, true)}, Outcome{Status: StatusEmpty, Reason: ReasonWeak}},
		{"not weighed", 0.25, "beans?", []graphiti.Fact{fact(0, false)}, Outcome{Status: StatusRecalled, Facts: 1}},
		{"any is good enough", 0, "beans?", []graphiti.Fact{fact(0, true)}, Outcome{Status: StatusRecalled, Facts: 1}},
		{"all is outdated", 0.25, "beans?", []graphiti.Fact{{Text: "Ann grows beans", InvalidAt: time.Unix(1, 0)}}, Outcome{Status: StatusEmpty, Reason: ReasonOutdated}},
		{"nothing found", 0.25, "beans?", nil, Outcome{Status: StatusEmpty, Reason: ReasonNothing}},
		{"says nothing, whatever is found", 0.25, "ok, go on", []graphiti.Fact{fact(1, false)}, Outcome{Status: StatusEmpty, Reason: ReasonRoutine}},
		{"asks about the person", 0.25, "who am I?", []graphiti.Fact{fact(0, false)}, Outcome{Status: StatusRecalled, Facts: 1}},
		{"the strongest has expired", 0.25, "beans?", []graphiti.Fact{fact(0.1, true), {Text: "x", Strength: 1, Weighed: true, ExpiredAt: time.Unix(1, 0)}}, Outcome{Status: StatusEmpty, Reason: ReasonWeak}},
	} {
		m := memory(t, func(_ context.Context, group, _ string) ([]graphiti.Fact, error) {
			if group == "u" {
				return tc.found, nil
			}
			return nil, nil
		}, &fakeDecisions{})
		o := *m.opts()
		o.MinScore = tc.least
		m.Set(o.Groups, o.RecallSettings)
		body := `{"messages":[{"role":"user","content":"` + tc.said + `"}]}`
		got, p := ask(t, m, body, both)
		if p.Outcome.Status != tc.want.Status || p.Outcome.Reason != tc.want.Reason || p.Outcome.Facts != tc.want.Facts {
			t.Errorf("%s: got %+v, want %+v", tc.name, p.Outcome, tc.want)
		}
		if strings.Contains(got, "graphiti_memory") != (tc.want.Facts > 0) {
			t.Errorf("%s: the upstream gets %s", tc.name, got)
		}
		// The decision is final, even with another threshold.
		o.MinScore = 1 - tc.least
		m.Set(o.Groups, o.RecallSettings)
		if again, _ := ask(t, m, body, both); again != got {
			t.Errorf("%s: another decision for the same turn: %s", tc.name, again)
		}
	}
}
