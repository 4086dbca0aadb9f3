package inject

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// TestCompactionTrigger checks that a request for a compaction by the provider repeats the
// blocks of its messages and gets no other block, byte for byte as the requests before.
func TestCompactionTrigger(t *testing.T) {
	plan := func(m *Planner, items string) (string, Plan) {
		body := `{"input":[` + items + `]}`
		var c dialect.Conversation
		if !(responses.Dialect{}).Parse([]byte(body), &c) {
			t.Fatalf("not understood: %s", body)
		}
		p := m.Plan(context.Background(), &c, c.Chain(dialect.Root("", "p"), nil), graphiti.Who{User: "user:p", Session: "session:1"}, false, both)
		return strings.TrimSuffix(string(bytes.Join(dialect.Splice(nil, []byte(body), p.Inserts), nil)), `]}`), p
	}
	const asked = `{"role":"user","content":"What is my cat called?"}`
	for name, rest := range map[string]string{
		"an answered turn": `,{"role":"assistant","content":[{"type":"output_text","text":"Miso."}]}`,
		"a tool round":     `,{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}`,
		"an open question": ``,
	} {
		blocks := &fakeDecisions{}
		before, _ := plan(memory(t, always("cat Miso"), blocks), asked)
		got, p := plan(noted(t, blocks, snapshot{Asked: "x"}), asked+rest+`,{"type":"compaction_trigger"}`)
		if want := before + rest + `,{"type":"compaction_trigger"}`; got != want || !strings.Contains(got, "cat Miso") || p.Outcome.Reason != ReasonSummary {
			t.Errorf("%s:\n got %s\nwant %s (%+v)", name, got, want, p.Outcome)
		}
	}
}

// noted returns a Planner with notes about the session. A search fails the test.
func noted(t testing.TB, blocks *fakeDecisions, s snapshot) *Planner {
	m := memory(t, func(context.Context, string, string) ([]graphiti.Fact, error) {
		t.Error("got a search, want none for a summary")
		return nil, nil
	}, blocks)
	body, err := json.Marshal(s)
	must(t, err)
	m.opts().Snapshots = fakeSnapshots{snapshotKey(graphiti.Who{User: "user:p", Session: "session:1"}): body}
	return m
}

// TestResume checks that the block with the notes after a compaction within a turn is
// decided once, and that later requests repeat it before the summary.
func TestResume(t *testing.T) {
	const (
		at, wanted, now = "It was long", "Create a", "And now?"
		call            = `,{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"x"}`
		next            = `,{"role":"assistant","content":"done"},{"role":"user","content":"` + now + `"}`
		one, two        = openTask + "TypeError: x", openTask + "ValueError: y"
	)
	wish := `,{"role":"user","content":"` + wanted + ` handoff summary of this conversation.` + strings.Repeat(" Be brief.", 30) + `"}`
	replaced := func(summary, rest string) string {
		return `{"messages":[{"role":"user","content":"` + at + `:\n<summary>\n` + summary + `\n</summary>"}` + rest + `]}`
	}
	const what = "What did we do so far?"
	asked := func(summary string) string {
		return `{"messages":[{"role":"system","content":"You are opencode."},{"role":"user","content":"` + what + `"},{"role":"assistant","content":"` + summary + `"},{"role":"user","content":"Continue if you have next steps, or stop and ask for clarification."}]}`
	}
	noRecall := both
	noRecall.Recall = false
	notes := func(open ...string) (s snapshot) {
		for _, text := range open {
			s.Work.Tasks = append(s.Work.Tasks, dialect.Task{Text: text})
		}
		return s
	}
	type step struct {
		body   string
		notes  snapshot
		mode   Mode
		want   map[string]string // line of the block before a text
		status Status
	}
	for name, steps := range map[string][]step{
		"a turn goes on": {
			{replaced("a", ""), notes("TypeError: x"), both, map[string]string{at: one}, StatusRecalled},
			{replaced("a", call), notes("ValueError: y"), both, map[string]string{at: one}, StatusRecalled},
			{replaced("a", call+next), notes("TypeError: x"), both, map[string]string{at: one}, StatusEmpty},
			{replaced("a", call), notes(), noRecall, map[string]string{at: one}, StatusRecalled},
		},
		"a person speaks with other notes": {{replaced("a", ""), notes("TypeError: x"), both, map[string]string{at: one}, StatusRecalled}, {replaced("a", call+next), notes("ValueError: y"), both, map[string]string{at: one, now: two}, StatusRecalled}},
		"more compactions in the turn": {
			{replaced("a", ""), notes("TypeError: x"), both, map[string]string{at: one}, StatusRecalled},
			{replaced("a", call+wish), notes("ValueError: y"), both, map[string]string{at: one, wanted: two}, StatusRecalled},
			{replaced("b", call), notes("ValueError: y"), both, map[string]string{at: two}, StatusRecalled},
			{replaced("b", call+wish), notes("TypeError: x"), both, map[string]string{at: two, wanted: one}, StatusRecalled},
		},
		"no notes at first":              {{replaced("a", ""), notes(), both, nil, StatusEmpty}, {replaced("a", call), notes("TypeError: x"), both, nil, StatusEmpty}, {replaced("a", call+next), notes("TypeError: x"), both, map[string]string{now: one}, StatusRecalled}},
		"the summary answers a question": {{asked("a"), notes("TypeError: x"), both, map[string]string{what: one}, StatusRecalled}, {asked("b"), notes("ValueError: y"), both, map[string]string{what: two}, StatusRecalled}},
		"the summary has the note":       {{replaced("TypeError: x", ""), notes("TypeError: x"), both, nil, StatusEmpty}},
		"without recall":                 {{replaced("a", ""), notes("TypeError: x"), noRecall, nil, StatusEmpty}},
	} {
		blocks := &fakeDecisions{}
		for i, s := range steps {
			m := noted(t, blocks, s.notes)
			if strings.Contains(s.body, now) {
				o := *m.opts()
				o.Search = searchFunc(func(context.Context, string, string) ([]graphiti.Fact, error) { return nil, nil })
				m.o.Store(&o)
			}
			want := s.body
			for text, line := range s.want {
				block := blockOf(line)
				if text == now && len(s.want) > 1 {
					block = laterBlockOf(line)
				}
				want = strings.Replace(want, text, inJSON(block)+`\n\n`+text, 1)
			}
			if got, p := ask(t, m, s.body, s.mode); got != want || p.Outcome.Status != s.status {
				t.Errorf("%s, step %d:\n got %s\nwant %s (%+v)", name, i, got, want, p.Outcome)
			}
		}
	}
}
