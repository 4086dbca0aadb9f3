package inject

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// emptyContents are contents without text.
var emptyContents = []string{`[]`, `[ ]`, `null`, `""`, `[{"type":"image_url","image_url":{"url":"x"}}]`, `[5]`, `[[]]`}

// TestSummaryWithoutAnInstruction checks that the newest message gets a block if it can
// hold one, and that the request stays valid.
func TestSummaryWithoutAnInstruction(t *testing.T) {
	for _, d := range []struct {
		name         string
		dialect      dialect.Dialect
		before, part string
		behind       string
	}{
		{"chat", chat.Dialect{}, `{"messages":[{"role":"system","content":"You are a context summarization agent."},{"role":"user","content":"one"},{"role":"user","content":`, "text", `}]}`},
		{"messages", messages.Dialect{}, `{"system":"You are a helpful AI assistant tasked with summarizing conversations.","messages":[{"role":"user","content":"one"},{"role":"user","content":`, "text", `}]}`},
	} {
		part := `{"type":"` + d.part + `","text":"` + inJSON(blockOf(resumes+"x")) + `\n\n"},`
		want := map[string]string{`[]`: `[]`, `[ ]`: `[ ]`, `null`: `null`, `""`: `"` + inJSON(blockOf(resumes+"x")) + `\n\n"`}
		for _, content := range emptyContents {
			body := d.before + content + d.behind
			var c dialect.Conversation
			if !d.dialect.Parse([]byte(body), &c) || c.Kind != dialect.KindSummary || c.Newest <= c.Last {
				t.Fatalf("%s, %s: kind %v, newest %d", d.name, content, c.Kind, c.Newest)
			}
			p := noted(t, &fakeDecisions{}, snapshot{Asked: "x"}).Plan(context.Background(), &c, c.Chain(dialect.Root("", "p"), nil), graphiti.Who{User: "user:p", Session: "session:1"}, false, both)
			got := plain(string(bytes.Join(dialect.Splice(nil, []byte(body), p.Inserts), nil)))
			with, ok := want[content]
			if !ok {
				with = strings.Replace(content, "[", "["+part, 1)
			}
			if got != d.before+with+d.behind || !json.Valid([]byte(got)) {
				t.Errorf("%s, %s: got %s, want %s", d.name, content, got, d.before+with+d.behind)
			}
		}
	}
}

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
	if err != nil {
		t.Fatal(err)
	}
	m.opts().Snapshots = fakeSnapshots{snapshotKey(graphiti.Who{User: "user:p", Session: "session:1"}): body}
	return m
}

// TestSummary_WithoutPersonsInstruction checks that the newest person's message, whose turn
// is answered, keeps its block if the instruction is not a person's message.
func TestSummary_WithoutPersonsInstruction(t *testing.T) {
	body := strings.NewReplacer(`{"role":"user","content":"one"}`, `{"role":"system","content":"You are a context summarization agent."},{"role":"user","content":"one"}`,
		`"two"`, `"<system-reminder>Summarize.</system-reminder>"`).Replace(turn2)
	for name, tc := range map[string]struct {
		off    bool
		blocks map[string]string
	}{
		"with notes":    {false, map[string]string{"one": blockOf("cat Miso"), "<system-reminder>Summarize.</system-reminder>": blockOf(resumes + "x")}},
		"without notes": {true, map[string]string{"one": blockOf("cat Miso")}},
	} {
		blocks := &fakeDecisions{}
		ask(t, memory(t, always("cat Miso"), blocks), turn1, both)
		m := noted(t, blocks, snapshot{Asked: "x"})
		m.opts().Compaction = !tc.off
		got, p := ask(t, m, body, both)
		if want := withBlocks(body, tc.blocks); got != want || p.Outcome.Reason != ReasonSummary {
			t.Errorf("%s:\n got %s\nwant %s (%+v)", name, got, want, p.Outcome)
		}
	}
}

// TestSummary_Block checks that, in each form of the request, the block has the session's
// notes, followed by the lines of earlier blocks that the request lacks.
func TestSummary_Block(t *testing.T) {
	const (
		asked = "What is the database called?"
		fact  = "The database is called Bluefin."
		last  = resumes + "Now the tests."
		open  = openTask + "write the docs"
		files = filesTouched + "src/cart.py"
	)
	notes := snapshot{Asked: "Now the tests.", Decided: []string{"We moved to Postgres."}, Files: []string{"src/cart.py"}, Work: tasks{Tasks: []dialect.Task{{Text: "write the docs"}, {Text: "parse", Done: true}}}}
	all := []string{last, decisionMade + "We moved to Postgres.", open, files}
	transcript := func(answer string) string {
		return `{"messages":[{"role":"system","content":"You are a context summarization agent."},{"role":"user","content":"` +
			`<conversation>\n[User]: ` + asked + `\n\n[Assistant]: ` + answer + `\n</conversation>\n\nWrite a summary."}]}`
	}
	history := func(system, rest string) string {
		return `{"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + asked + `"},{"role":"assistant","content":"I am not sure."},{"role":"user","content":"Create a handoff summary of this conversation.` + strings.Repeat(" Be brief.", 30) + `"}]` + rest + `}`
	}
	for name, tc := range map[string]struct {
		body   string
		notes  snapshot
		before string
		want   []string
	}{
		"a transcript":              {transcript("I am not sure."), notes, `<conversation>`, all},
		"without notes":             {transcript("I am not sure."), snapshot{}, `<conversation>`, nil},
		"a note repeats a fact":     {transcript("I am not sure."), snapshot{Asked: "x", Decided: []string{"The database is called Bluefin!"}}, `<conversation>`, []string{resumes + "x", decisionMade + "The database is called Bluefin!"}},
		"the last question is said": {transcript("Now the tests."), notes, `<conversation>`, all[1:]},
		"history, without tools":    {history("You are kind.", ""), notes, `Create a`, all},
		"history, with tools":       {history("You are kind.", `,"tools":[{"type":"function","function":{"name":"bash"}}]`), notes, `Create a`, all},
		"history, another prompt":   {history("You are the component that summarizes ", ""), notes, `Create a`, all},
	} {
		blocks := &fakeDecisions{}
		m := memory(t, always(fact), blocks)
		ask(t, m, `{"messages":[{"role":"user","content":"`+asked+`"}]}`, both)
		m = noted(t, blocks, tc.notes)
		got, p := ask(t, m, tc.body, both)
		want := tc.body
		if tc.want != nil {
			want = strings.Replace(want, tc.before, inJSON(blockOf(tc.want...))+`\n\n`+tc.before, 1)
		}
		if !strings.HasPrefix(tc.before, "<") { // the history's block is repeated
			want = strings.Replace(want, `"`+asked, `"`+inJSON(blockOf(fact))+`\n\n`+asked, 1)
		}
		if got != want || p.Outcome.Reason != ReasonSummary || p.Outcome.Facts != len(tc.want) {
			t.Errorf("%s:\n got %s\nwant %s (%+v)", name, got, want, p.Outcome)
		}
	}
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
		"a person speaks with other notes": {
			{replaced("a", ""), notes("TypeError: x"), both, map[string]string{at: one}, StatusRecalled},
			{replaced("a", call+next), notes("ValueError: y"), both, map[string]string{at: one, now: two}, StatusRecalled},
		},
		"more compactions in the turn": {
			{replaced("a", ""), notes("TypeError: x"), both, map[string]string{at: one}, StatusRecalled},
			{replaced("a", call+wish), notes("ValueError: y"), both, map[string]string{at: one, wanted: two}, StatusRecalled},
			{replaced("b", call), notes("ValueError: y"), both, map[string]string{at: two}, StatusRecalled},
			{replaced("b", call+wish), notes("TypeError: x"), both, map[string]string{at: two, wanted: one}, StatusRecalled},
		},
		"no notes at first": {
			{replaced("a", ""), notes(), both, nil, StatusEmpty},
			{replaced("a", call), notes("TypeError: x"), both, nil, StatusEmpty},
			{replaced("a", call+next), notes("TypeError: x"), both, map[string]string{now: one}, StatusRecalled},
		},
		"the summary answers a question": {
			{asked("a"), notes("TypeError: x"), both, map[string]string{what: one}, StatusRecalled},
			{asked("b"), notes("ValueError: y"), both, map[string]string{what: two}, StatusRecalled},
		},
		"the summary has the note": {{replaced("TypeError: x", ""), notes("TypeError: x"), both, nil, StatusEmpty}},
		"without recall":           {{replaced("a", ""), notes("TypeError: x"), noRecall, nil, StatusEmpty}},
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
