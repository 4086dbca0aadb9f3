package inject

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/responses"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
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
			p := memory(t, always("cat Miso"), &fakeDecisions{}, &fakeFacts{}).Plan(&c, hasher.Chain(&c, dialect.Root("", "p"), nil), graphiti.Who{User: "user:p", Session: "session:1"}, false, both)
			got := string(dialect.Splice(nil, []byte(body), p.Inserts))
			with, ok := want[content]
			if !ok {
				with = strings.Replace(content, "[", "["+part, 1)
			}
			if got != d.before+with+d.behind || !json.Valid([]byte(got)) {
				t.Errorf("%s, %s: %s", d.name, content, got)
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
