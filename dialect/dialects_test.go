package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/responses"
)

// dialectCase is a request, and what it is taken for. The block stands where
// the body has «».
type dialectCase struct {
	name, body string
	last       string // what the person said last; empty: nobody did
	kind       dialect.Kind
	round      bool // within a turn
}

var responsesCases = []dialectCase{
	{name: "a string", body: `{"model":"m","input":"«»hello","instructions":"Be brief."}`, last: "hello"},
	{name: "an item without a type", body: `{"input":[{"role":"user","content":"«»hello"}]}`, last: "hello"},
	{name: "parts", body: `{"input":[{"type":"message","role":"user","content":[«»{"type":"input_text","text":"hello"},{"type":"input_image","image_url":"x"}]}]}`, last: "hello"},
	{name: "Codex: instructions of files, the environment, the person", body: `{"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"}]},{"type":"message","role":"user","content":[«»{"type":"input_text","text":"hello"}]}]}`, last: "hello"},
	{name: "tool round", body: `{"input":[{"type":"message","role":"user","content":[«»{"type":"input_text","text":"hello"}]},{"type":"reasoning","encrypted_content":"x"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"[{\"role\":\"user\"}]"}]}`, last: "hello", round: true},
	{name: "compaction", body: `{"input":[{"role":"user","content":"«»hello"},{"type":"compaction_trigger"}]}`, last: "hello", kind: dialect.KindSummary},
	{name: "only outputs: the provider holds the rest", body: `{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"1","output":"x"}]}`},
	{name: "input is missing", body: `{"model":"m"}`, last: "-"},
	{name: "input twice", body: `{"input":"a","input":"b"}`, last: "-"},
	{name: "input is a number", body: `{"input":5}`, last: "-"},
}

var messagesCases = []dialectCase{
	{name: "a string", body: `{"model":"m","max_tokens":1,"system":"Be brief.","messages":[{"role":"user","content":"«»hello"}]}`, last: "hello"},
	{name: "blocks with a breakpoint", body: `{"messages":[{"role":"user","content":[«»{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}]}`, last: "hello"},
	{name: "Claude Code: reminders before the person's words", body: `{"system":[{"type":"text","text":"x"}],"messages":[{"role":"user","content":[«»{"type":"text","text":"<system-reminder>a</system-reminder>"},{"type":"text","text":"hello"}]}]}`, last: "hello"},
	{name: "Claude Code, after a compaction", body: `{"messages":[{"role":"user","content":[«»{"type":"text","text":"This session is being continued from a previous conversation. Summary: x"},{"type":"text","text":"hello"}]}]}`, last: "hello"},
	{name: "tool round", body: `{"messages":[{"role":"user","content":[«»{"type":"text","text":"hello"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"output"}]}]}]}`, last: "hello", round: true},
	{name: "tool round with a reminder", body: `{"messages":[{"role":"user","content":"«»hello"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"},{"type":"text","text":"<system-reminder>a</system-reminder>"}]}]}`, last: "hello", round: true},
	{name: "a person speaks behind a result", body: `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"},«»{"type":"text","text":"stop that"}]}]}`, last: "stop that"},
	{name: "a system message at the end", body: `{"messages":[{"role":"user","content":"«»hello"},{"role":"system","content":"- Primary working directory: /x"}]}`, last: "hello"},
	{name: "a prefill", body: `{"messages":[{"role":"user","content":"«»hello"},{"role":"assistant","content":"{"}]}`, last: "hello"},
	{name: "Claude Code's title", body: `{"system":[{"type":"text","text":"x-billing"},{"type":"text","text":"You are naming a coding session. Do it."}],"messages":[{"role":"user","content":"«»<session>hello</session>"}]}`, last: "<session>hello</session>", kind: dialect.KindTitle},
	{name: "a machine's event", body: `{"messages":[{"role":"user","content":"«»hello"},{"role":"assistant","content":"ok"},{"role":"user","content":"<task-notification>x</task-notification>"}]}`, last: "hello", kind: dialect.KindMachine, round: true},
	{name: "no messages", body: `{"model":"m"}`, last: "-"},
	{name: "messages are no list", body: `{"messages":{}}`, last: "-"},
}

// TestDialects: every case of every dialect is found, and the block stands in
// its place; taken out again, the body is what it was.
func TestDialects(t *testing.T) {
	const block = "<graphiti_memory>\nx\n</graphiti_memory>"
	for _, d := range []struct {
		name    string
		dialect dialect.Dialect
		part    string
		cases   []dialectCase
	}{{"responses", responses.Dialect{}, "input_text", responsesCases}, {"messages", messages.Dialect{}, "text", messagesCases}} {
		for _, tc := range d.cases {
			body := strings.Replace(tc.body, "«»", "", 1)
			var c dialect.Conversation
			ok := d.dialect.Parse([]byte(body), &c)
			if ok != (tc.last != "-") {
				t.Errorf("%s, %s: understood %v", d.name, tc.name, ok)
			}
			if !ok {
				continue
			}
			if tc.last == "" {
				if c.Last >= 0 {
					t.Errorf("%s, %s: %q is taken for a person's", d.name, tc.name, c.Text(c.Last))
				}
				continue
			}
			if c.Last < 0 {
				t.Errorf("%s, %s: no person was found", d.name, tc.name)
				continue
			}
			if got := string(c.Text(c.Last)); got != tc.last || c.Kind != tc.kind || c.Answered() != tc.round {
				t.Errorf("%s, %s: %q, kind %v, round %v", d.name, tc.name, got, c.Kind, c.Answered())
			}
			in := c.Insert(c.Last, block)
			at := strings.Index(tc.body, "«»")
			want := string(dialect.AppendJSON(nil, block)) + `\n\n`
			if tc.body[at-1] != '"' {
				want = `{"type":"` + d.part + `","text":"` + want + `"},`
			}
			got := string(dialect.Splice(nil, []byte(body), []dialect.Insert{in}))
			if diff := cmp.Diff(body[:at]+want+body[at:], got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", d.name, tc.name, diff)
			}
		}
	}
}

// TestAnswersInPieces: an answer of several messages is one in the chain, as
// it was when it was captured; what was said beside it is not in it.
func TestAnswersInPieces(t *testing.T) {
	var c dialect.Conversation
	body := `{"input":[{"role":"user","content":"a"},{"type":"reasoning"},{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"hm"}]},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]},{"type":"message","role":"assistant","content":"c"},{"role":"user","content":"d"}]}`
	if !(responses.Dialect{}).Parse([]byte(body), &c) {
		t.Fatal("not understood")
	}
	var h dialect.Hasher
	chain := h.Chain(&c, dialect.Root("", "p"), nil)
	want := dialect.Root("", "p").Link(dialect.RoleUser, []byte("a")).Link(dialect.RoleAssistant, []byte("b\nc")).Link(dialect.RoleUser, []byte("d"))
	if chain[len(chain)-1] != want {
		for i := range c.Messages {
			t.Logf("%v %q", c.Messages[i].Role, c.Text(i))
		}
		t.Error("the chain is another")
	}
}

// emptyContents are those in which nobody says anything.
var emptyContents = []string{`[]`, `[ ]`, `null`, `""`, `[{"type":"image_url","image_url":{"url":"x"}}]`, `[5]`, `[[]]`}

func FuzzDialects(f *testing.F) {
	for _, tc := range append(append([]dialectCase(nil), responsesCases...), messagesCases...) {
		f.Add([]byte(strings.Replace(tc.body, "«»", "", 1)))
	}
	for _, content := range emptyContents {
		f.Add([]byte(`{"messages":[{"role":"user","content":"a"},{"role":"user","content":` + content + `}]}`))
		f.Add([]byte(`{"input":[{"role":"user","content":"a"},{"role":"user","content":` + content + `},{"type":"compaction_trigger"}]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range []dialect.Dialect{chat.Dialect{}, responses.Dialect{}, messages.Dialect{}} {
			var c dialect.Conversation
			if !d.Parse(body, &c) {
				continue
			}
			for i, m := range c.Messages {
				if !m.Person && (i != c.Newest || m.Form == dialect.FormNone) {
					continue
				}
				in := c.Insert(i, "block")
				got := dialect.Splice(nil, body, []dialect.Insert{in})
				if string(append(append([]byte(nil), got[:in.At]...), got[in.At+len(in.Text):]...)) != string(body) {
					t.Error("the block cannot be taken out again")
				}
				if !json.Valid(got) {
					t.Errorf("not valid any more: %s", got)
				}
			}
			if c.Last < 0 {
				continue
			}
			c.Place(true)
			c.AnswerTo(c.Last)
			c.ToolsUsed(d)
		}
	})
}
