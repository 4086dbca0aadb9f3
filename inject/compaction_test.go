package inject

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// emptyContents are those in which nobody says anything.
var emptyContents = []string{`[]`, `[ ]`, `null`, `""`, `[{"type":"image_url","image_url":{"url":"x"}}]`, `[5]`, `[[]]`}

// TestSummaryWithoutAnInstruction: a block goes where the newest message can
// hold one, and the request stays one that a provider can read.
func TestSummaryWithoutAnInstruction(t *testing.T) {
	for _, d := range []struct {
		name         string
		dialect      Dialect
		before, part string
		behind       string
	}{
		{"chat", Chat{}, `{"messages":[{"role":"system","content":"You are a context summarization agent."},{"role":"user","content":"one"},{"role":"user","content":`, "text", `}]}`},
		{"messages", Messages{}, `{"system":"You are a helpful AI assistant tasked with summarizing conversations.","messages":[{"role":"user","content":"one"},{"role":"user","content":`, "text", `}]}`},
		{"responses", Responses{}, `{"input":[{"role":"user","content":"one"},{"role":"user","content":`, "input_text", `},{"type":"compaction_trigger"}]}`},
	} {
		part := `{"type":"` + d.part + `","text":"` + string(appendJSON(nil, blockOf("cat Miso"))) + `\n\n"},`
		want := map[string]string{`[]`: `[]`, `[ ]`: `[ ]`, `null`: `null`, `""`: `"` + string(appendJSON(nil, blockOf("cat Miso"))) + `\n\n"`}
		for _, content := range emptyContents {
			body := d.before + content + d.behind
			var c Conversation
			if !d.dialect.Parse([]byte(body), &c) || c.Kind != KindSummary || c.Newest <= c.Last {
				t.Fatalf("%s, %s: kind %v, newest %d", d.name, content, c.Kind, c.Newest)
			}
			p := memory(t, always("cat Miso"), &fakeBlocks{}, &fakeFacts{}).Plan(&c, hasher.Chain(&c, Root("", "p"), nil), graphiti.Who{User: "user:p", Session: "session:1"}, false, both)
			got := string(Splice(nil, []byte(body), p.Inserts))
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
