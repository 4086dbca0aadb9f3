package inject

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// emptyContents are those in which nobody says anything.
var emptyContents = []string{`[]`, `[ ]`, `null`, `""`, `[{"type":"image_url","image_url":{"url":"x"}}]`, `[5]`, `[[]]`}

// TestSummaryWithoutAnInstruction: a block goes where the newest message can
// hold one, and the request stays one that a provider can read.
func TestSummaryWithoutAnInstruction(t *testing.T) {
	for _, d := range []struct {
		name         string
		dialect      dialect.Dialect
		before, part string
		behind       string
	}{
		{"chat", chat.Dialect{}, `{"messages":[{"role":"system","content":"You are a context summarization agent."},{"role":"user","content":"one"},{"role":"user","content":`, "text", `}]}`},
		{"messages", messages.Dialect{}, `{"system":"You are a helpful AI assistant tasked with summarizing conversations.","messages":[{"role":"user","content":"one"},{"role":"user","content":`, "text", `}]}`},
		{"responses", responses.Dialect{}, `{"input":[{"role":"user","content":"one"},{"role":"user","content":`, "input_text", `},{"type":"compaction_trigger"}]}`},
	} {
		part := `{"type":"` + d.part + `","text":"` + inJSON(blockOf("cat Miso")) + `\n\n"},`
		want := map[string]string{`[]`: `[]`, `[ ]`: `[ ]`, `null`: `null`, `""`: `"` + inJSON(blockOf("cat Miso")) + `\n\n"`}
		for _, content := range emptyContents {
			body := d.before + content + d.behind
			var c dialect.Conversation
			if !d.dialect.Parse([]byte(body), &c) || c.Kind != dialect.KindSummary || c.Newest <= c.Last {
				t.Fatalf("%s, %s: kind %v, newest %d", d.name, content, c.Kind, c.Newest)
			}
			p := memory(t, always("cat Miso"), &fakeDecisions{}, &fakeFacts{}).Plan(context.Background(), &c, hasher.Chain(&c, dialect.Root("", "p"), nil), graphiti.Who{User: "user:p", Session: "session:1"}, false, both)
			got := string(dialect.Splice(nil, []byte(body), p.Inserts))
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

// TestSummaryThatNobodyAsksForRepeatsAllBlocks: where the instruction is no
// person's message, what the person said last is a turn that was answered.
func TestSummaryThatNobodyAsksForRepeatsAllBlocks(t *testing.T) {
	body := strings.NewReplacer(`{"role":"user","content":"one"}`, `{"role":"system","content":"You are a context summarization agent."},{"role":"user","content":"one"}`,
		`"two"`, `"<system-reminder>Summarize.</system-reminder>"`).Replace(turn2)
	for name, tc := range map[string]struct {
		off    bool
		blocks map[string]string
	}{
		"with what is known":    {false, map[string]string{"one": blockOf("cat Miso"), "<system-reminder>Summarize.</system-reminder>": blockOf("dog Rex")}},
		"without what is known": {true, map[string]string{"one": blockOf("cat Miso")}},
	} {
		blocks := &fakeDecisions{}
		ask(t, memory(t, always("cat Miso"), blocks, &fakeFacts{}), turn1, both)
		m := memory(t, always("dog Rex"), blocks, &fakeFacts{})
		m.opts().Compaction = !tc.off
		got, p := ask(t, m, body, both)
		if want := withBlocks(body, tc.blocks); got != want || p.Outcome.Reason != ReasonSummary {
			t.Errorf("%s:\n got %s\nwant %s (%+v)", name, got, want, p.Outcome)
		}
	}
}

// TestSummaryOfATranscript is told first what the session was shown and the
// transcript lacks, and nothing that stands in the transcript.
func TestSummaryOfATranscript(t *testing.T) {
	const (
		asked = `{"messages":[{"role":"user","content":"What is the database called?"}]}`
		fact  = "The database is called Bluefin."
	)
	transcript := func(told string) string {
		return `{"messages":[{"role":"system","content":"You are a context summarization agent."},{"role":"user","content":"` +
			`<conversation>\n[User]: What is the database called?\n\n[Assistant]: ` + told + `\n</conversation>\n\nWrite a summary."}]}`
	}
	var query atomic.Pointer[string] // both groups are asked at once
	knows := func(texts ...string) searchFunc {
		return func(_ context.Context, _, q string) ([]graphiti.Fact, error) {
			query.Store(&q)
			return facts(texts...), nil
		}
	}
	for _, tc := range []struct {
		name  string
		body  string
		found []string
		since int64 // something was forgotten
		want  []string
	}{
		{"what is found repeats the question", transcript("I am not sure."), []string{"What is the database called?"}, 0, []string{fact}},
		{"what is found is new", transcript("I am not sure."), []string{"The port is 6543."}, 0, []string{fact, "The port is 6543."}},
		{"what was shown is found too", transcript("I am not sure."), []string{fact}, 0, []string{fact}},
		{"what was shown has been said", transcript("The database is called *Bluefin*."), []string{fact}, 0, nil},
		{"something was forgotten since", transcript("I am not sure."), nil, 1, nil},
	} {
		blocks := &fakeDecisions{}
		m := memory(t, knows(fact), blocks, &fakeFacts{})
		ask(t, m, asked, both)
		o := *m.opts()
		o.Search = knows(tc.found...)
		o.Facts = &fakeFacts{}
		m.Set(o.Groups, o.RecallSettings)
		mode := both
		mode.Generation = tc.since
		got, p := ask(t, m, tc.body, mode)
		want := tc.body
		if tc.want != nil {
			want = strings.Replace(want, `<conversation>`, inJSON(blockOf(tc.want...))+`\n\n<conversation>`, 1)
		}
		if got != want || p.Outcome.Reason != ReasonSummary || p.Outcome.Facts != len(tc.want) {
			t.Errorf("%s:\n got %s\nwant %s (%+v)", tc.name, got, want, p.Outcome)
		}
		if q := *query.Load(); q != "What is the database called?" {
			t.Errorf("%s: asked for %q", tc.name, q)
		}
	}
}
