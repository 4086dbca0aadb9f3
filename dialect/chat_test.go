package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/chat"
)

var hasher dialect.Hasher

func parse(t testing.TB, body string) (*dialect.Conversation, bool) {
	t.Helper()
	c := &dialect.Conversation{}
	ok := chat.Dialect{}.Parse([]byte(body), c)
	return c, ok
}

func TestChatFindsWhatThePersonWrote(t *testing.T) {
	for _, tc := range []struct {
		name string
		body string
		last string // text of the newest person's message; empty: there is none
		kind dialect.Kind
	}{
		{"string content", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "hi", dialect.KindTurn},
		{"any order of keys", `{"messages":[{"content":"hi","role":"user"}],"stream":true,"model":"m"}`, "hi", dialect.KindTurn},
		{"parts", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"a"},{"text":"b","type":"text"}]}]}`, "a\nb", dialect.KindTurn},
		{"audio and files alone say nothing", `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"x","format":"wav"}},{"type":"file","file":{"file_id":"f"}}]}]}`, "", dialect.KindTurn},
		{"tool round", `{"messages":[{"role":"user","content":"weather?"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1","content":"rain"}]}`, "weather?", dialect.KindTurn},
		{"trailing system message", `{"messages":[{"role":"user","content":"hi"},{"role":"system","content":"be brief"}]}`, "hi", dialect.KindTurn},
		{"prefill", `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"{"}]}`, "hi", dialect.KindTurn},
		{"names", `{"messages":[{"role":"user","name":"ada","content":"hi"}]}`, "hi", dialect.KindTurn},
		{"escapes and surrogates", `{"messages":[{"role":"user","content":"\u00e9\n\ud83d\ude00\"\\\/"}]}`, "é\n😀\"\\/", dialect.KindTurn},
		{"half a surrogate", `{"messages":[{"role":"user","content":"a\ud83db"}]}`, "a\ufffdb", dialect.KindTurn},
		{"white space around", "{\n \"messages\" : [ { \"role\" : \"user\" , \"content\" : \"  hi \\n\" } ] }\n", "hi", dialect.KindTurn},
		{"empty content", `{"messages":[{"role":"user","content":" \n "}]}`, "", dialect.KindTurn},
		{"null content", `{"messages":[{"role":"user","content":null}]}`, "", dialect.KindTurn},
		{"only system", `{"messages":[{"role":"system","content":"x"}]}`, "", dialect.KindTurn},
		{"harness beside the person", `{"messages":[{"role":"user","content":"<system-reminder>be good</system-reminder>\nhi"}]}`, "hi", dialect.KindTurn},
		{"harness in escapes", `{"messages":[{"role":"user","content":"\u003csystem-reminder\u003ebe good\u003c/system-reminder\u003ehi"}]}`, "hi", dialect.KindTurn},
		{"tag of a longer name is the person's", `{"messages":[{"role":"user","content":"<system-reminders>x</system-reminders>"}]}`, "<system-reminders>x</system-reminders>", dialect.KindTurn},
		{"tag that is not closed is the person's", `{"messages":[{"role":"user","content":"what is <system-reminder>?"}]}`, "what is <system-reminder>?", dialect.KindTurn},
		{"our own block, sent back", `{"messages":[{"role":"user","content":"<graphiti_memory>\n- x\n</graphiti_memory>\n\nhi"}]}`, "hi", dialect.KindTurn},
		{"machine text as newest", `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},{"role":"user","content":"<task-notification>done</task-notification>"}]}`, "hi", dialect.KindMachine},
		{"opencode's title", `{"messages":[{"role":"system","content":"You are a title generator. You output"},{"role":"user","content":"Generate a title"}]}`, "Generate a title", dialect.KindTitle},
		{"a person who quotes a title prompt", `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What does You are a title generator. mean?"}]}`, "What does You are a title generator. mean?", dialect.KindTurn},
		{"Open WebUI's tags", `{"messages":[{"role":"user","content":"### Task:\nGenerate 1-3 broad tags categorizing"}]}`, "### Task:\nGenerate 1-3 broad tags categorizing", dialect.KindTitle},
		{"Open WebUI's question with documents", `{"messages":[{"role":"user","content":"### Task:\nRespond to the user query using the provided context"}]}`, "### Task:\nRespond to the user query using the provided context", dialect.KindTurn},
		{"aider's rules behind the person's words", `{"messages":[{"role":"user","content":"Which team?\n\n# *SEARCH/REPLACE block* Rules:\n\nEvery block must"}]}`, "Which team?", dialect.KindTurn},
		{"aider's rules alone", `{"messages":[{"role":"user","content":"# *SEARCH/REPLACE block* Rules:\n\nEvery"}]}`, "", dialect.KindTurn},
		{"a person who asks about aider's rules", `{"messages":[{"role":"user","content":"What is # *SEARCH/REPLACE block* Rules: for?"}]}`, "What is # *SEARCH/REPLACE block* Rules: for?", dialect.KindTurn},
		{"aider's example", `{"messages":[{"role":"user","content":"Refactor hello() into its own file."},{"role":"assistant","content":"Ok."},{"role":"user","content":"hi"}]}`, "hi", dialect.KindTurn},
		{"aider's summary", `{"messages":[{"role":"system","content":"*Briefly* summarize this partial conversation about programming."},{"role":"user","content":"# USER hi"}]}`, "# USER hi", dialect.KindSummary},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, ok := parse(t, tc.body)
			if !ok {
				t.Fatal("not understood")
			}
			got := ""
			if c.Last >= 0 {
				got = string(c.Text(c.Last))
			}
			if got != tc.last || c.Kind != tc.kind {
				t.Errorf("newest %q, kind %d; want %q, %d", got, c.Kind, tc.last, tc.kind)
			}
		})
	}
}

func TestChatLeavesAloneWhatIsNotClear(t *testing.T) {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for _, tc := range []struct{ name, body string }{
		{"nothing", ``},
		{"no object", `[]`},
		{"no messages", `{"model":"m"}`},
		{"cut off", `{"messages":[{"role":"user","content":"hi"}]`},
		{"something behind", `{"messages":[{"role":"user","content":"hi"}]} x`},
		{"two lists of messages", `{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}`},
		{"two contents", `{"messages":[{"role":"user","content":"a","content":"b"}]}`},
		{"two roles", `{"messages":[{"role":"user","role":"assistant","content":"b"}]}`},
		{"no role", `{"messages":[{"content":"b"}]}`},
		{"a key in disguise", `{"messages":[{"role":"user","\u0063ontent":"a","content":"b"}]}`},
		{"line feed in a string", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\nb\"}]}"},
		{"bad escape", `{"messages":[{"role":"user","content":"a\x"}]}`},
		{"bad number", `{"n":01,"messages":[{"role":"user","content":"a"}]}`},
		{"comma at the end", `{"messages":[{"role":"user","content":"a"},]}`},
		{"too deep", `{"x":` + deep + `,"messages":[{"role":"user","content":"a"}]}`},
		{"message that is no object", `{"messages":["hi"]}`},
	} {
		if _, ok := parse(t, tc.body); ok {
			t.Errorf("%s: understood", tc.name)
		}
	}
}

// genBody draws a request in any order, with any white space and any text.
func genBody(t *rapid.T) string {
	ws := func() string { return rapid.SampledFrom([]string{"", " ", "\n", "\t \r\n"}).Draw(t, "ws") }
	text := func() string {
		s := rapid.String().Draw(t, "text")
		if rapid.Bool().Draw(t, "ascii") {
			var b strings.Builder
			for _, r := range s {
				if r > 0xffff {
					r = '\ufffd'
				}
				fmt.Fprintf(&b, `\u%04x`, r)
			}
			return `"` + b.String() + `"`
		}
		b, _ := json.Marshal(s)
		return string(b)
	}
	content := func() string {
		switch rapid.IntRange(0, 3).Draw(t, "content") {
		case 0:
			return "null"
		case 1:
			return "[" + ws() + `{"type":"text",` + ws() + `"text":` + text() + "}" + ws() + `,{"type":"image_url","image_url":{"url":"data:,"}}]`
		}
		return text()
	}
	var messages []string
	for range rapid.IntRange(1, 5).Draw(t, "messages") {
		role := rapid.SampledFrom([]string{"user", "user", "assistant", "system", "tool", "developer"}).Draw(t, "role")
		pairs := []string{`"role":` + ws() + `"` + role + `"`, `"content"` + ws() + ":" + content(), `"name":"n"`}
		pairs = rapid.Permutation(pairs).Draw(t, "order")
		messages = append(messages, "{"+ws()+strings.Join(pairs, ws()+","+ws())+ws()+"}")
	}
	pairs := []string{`"messages":` + ws() + "[" + strings.Join(messages, ","+ws()) + "]", `"model":"m"`, `"x":{"messages":[1.5e3,null,true]}`, `"x":2`}
	return ws() + "{" + strings.Join(rapid.Permutation(pairs).Draw(t, "members"), ws()+",") + "}" + ws()
}

// TestSpliceIsTransparent: the inserted bytes taken out again, the body is the
// client's; and with them it is valid JSON in which the message begins with
// the block.
func TestSpliceIsTransparent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := genBody(t)
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(body), &c) {
			t.Fatalf("not understood: %s", body)
		}
		block := "<graphiti_memory>\n- " + strings.ToValidUTF8(rapid.String().Draw(t, "fact"), "?") + "\n</graphiti_memory>"
		var inserts []dialect.Insert
		for i, m := range c.Messages {
			if m.Person && rapid.Bool().Draw(t, "insert") {
				inserts = append(inserts, c.Insert(i, block))
			}
		}
		checkSplice(t, body, &c, inserts, block)
	})
}

func checkSplice(t interface{ Fatalf(string, ...any) }, body string, c *dialect.Conversation, inserts []dialect.Insert, block string) {
	out := dialect.Splice(nil, []byte(body), inserts)
	rest := append([]byte(nil), out...)
	for n := len(inserts) - 1; n >= 0; n-- {
		at := inserts[n].At
		for _, before := range inserts[:n] {
			at += len(before.Text)
		}
		if !bytes.HasPrefix(rest[at:], inserts[n].Text) {
			t.Fatalf("insert %d is not where it belongs", n)
		}
		rest = append(rest[:at:at], rest[at+len(inserts[n].Text):]...)
	}
	if string(rest) != body {
		t.Fatalf("something else changed:\n%q\n%q", body, rest)
	}
	if !json.Valid(out) {
		t.Fatalf("not valid any more: %s", out)
	}
	if len(inserts) == 0 {
		return
	}
	var again dialect.Conversation
	if !(chat.Dialect{}).Parse(out, &again) {
		t.Fatalf("not understood any more: %s", out)
	}
	n := 0
	for i := range again.Messages {
		if n < len(inserts) && c.Messages[i].At == inserts[n].At {
			if got := again.Joined(i); !strings.HasPrefix(got, block+"\n\n") {
				t.Fatalf("message %d begins with %q", i, got)
			}
			n++
		}
		if diff := cmp.Diff(string(c.Text(i)), string(again.Text(i))); diff != "" {
			t.Fatalf("the text of message %d changed: %s", i, diff)
		}
	}
}

// TestScannerAgreesWithTheStandardLibrary about what is JSON.
func FuzzChatParse(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"hi"}]}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"\ud83d\ude00"}]}],"a":[1,-2.5e+3,{"b":null}]}`))
	f.Add([]byte("{\"messages\":[{\"role\":\"user\",\"content\":\"\x00\"}]}"))
	f.Add([]byte(`{"messages":[{"role":"user","content":"\\"}],"x":""}`))
	for _, content := range emptyContents {
		f.Add([]byte(`{"messages":[{"role":"user","content":"a"},{"role":"user","content":` + content + `}]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse(body, &c) {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("understood what is not JSON: %q", body)
		}
		chain := hasher.Chain(&c, dialect.Root("", "p"), nil)
		if len(chain) != len(c.Messages) {
			t.Fatal("a message has no fingerprint")
		}
		var inserts []dialect.Insert
		for i, m := range c.Messages {
			if m.Person || i == c.Newest && m.Form != dialect.FormNone {
				inserts = append(inserts, c.Insert(i, "<graphiti_memory>\n</graphiti_memory>"))
			}
		}
		if len(inserts) > 0 {
			checkSplice(t, string(body), &c, inserts, "<graphiti_memory>\n</graphiti_memory>")
		}
	})
}

func TestFingerprintsDoNotDependOnHowTextIsWritten(t *testing.T) {
	same := []string{
		`{"messages":[{"role":"system","content":"one"},{"role":"user","content":"né <b> \"x\"\n"},{"role":"assistant","content":"yes"},{"role":"user","content":"more"}]}`,
		`{"messages":[{"role":"system","content":"another day"},{"content":[{"type":"text","text":" n\u00e9 \u003cb\u003e \"x\""}],"role":"user"},{"role":"assistant","content":" yes\n"},{"role":"tool","content":"t"},{"role":"user","content":"more"}]}`,
		`{"messages":[{"role":"user","content":"<system-reminder>r</system-reminder>né <b> \"x\""},{"role":"assistant","content":"<think>hm</think>yes"},{"role":"user","content":"more"}]}`,
	}
	var want dialect.Fingerprint
	for i, body := range same {
		c, ok := parse(t, body)
		if !ok {
			t.Fatal(body)
		}
		chain := hasher.Chain(c, dialect.Root("t", "p"), nil)
		got := chain[len(chain)-1]
		if i == 0 {
			want = got
		}
		if got != want {
			t.Errorf("body %d has another fingerprint", i)
		}
	}
	linked := dialect.Root("t", "p").Link(dialect.RoleUser, []byte("né <b> \"x\"")).Link(dialect.RoleAssistant, []byte("yes\n")).Link(dialect.RoleUser, []byte("more"))
	if linked != want {
		t.Error("linking text by text gives another fingerprint")
	}
	for _, other := range []dialect.Fingerprint{
		dialect.Root("t", "q").Link(dialect.RoleUser, []byte("né <b> \"x\"")).Link(dialect.RoleAssistant, []byte("yes")).Link(dialect.RoleUser, []byte("more")),
		dialect.Root("u", "p").Link(dialect.RoleUser, []byte("né <b> \"x\"")).Link(dialect.RoleAssistant, []byte("yes")).Link(dialect.RoleUser, []byte("more")),
		dialect.Root("t", "p").Link(dialect.RoleUser, []byte("né <b> \"x\"")).Link(dialect.RoleUser, []byte("yes")).Link(dialect.RoleUser, []byte("more")),
		dialect.Root("t", "p").Link(dialect.RoleUser, []byte("né <b> \"x\"yes")).Link(dialect.RoleUser, []byte("more")),
	} {
		if other == want {
			t.Error("something else has the same fingerprint")
		}
	}
}

// TestTextIsDecodedOnce: what the person said last is asked for by many, and
// may be large.
func TestTextIsDecodedOnce(t *testing.T) {
	c, ok := parse(t, `{"messages":[{"role":"user","content":"one\ntwo"},{"role":"user","content":" three\n\"four\" "}]}`)
	if !ok {
		t.Fatal("not understood")
	}
	first, again := c.Text(c.Last), c.Text(c.Last)
	if string(first) != "three\n\"four\"" || &first[0] != &again[0] {
		t.Errorf("%q, and again %q", first, again)
	}
	if got := string(c.Text(0)); got != "one\ntwo" {
		t.Errorf("%q", got)
	}
	c.Reset()
	if all := c.Messages[:2]; all[1].Holds() {
		t.Error("the text is held for longer")
	}
}

// history is a realistic conversation of about size bytes.
func history(size int) []byte {
	var messages []string
	para, _ := json.Marshal(strings.Repeat("The quick brown fox \"jumps\" over\nthe lazy dog, again and again.\n", 12))
	for n := 0; n < size; n += 2 * len(para) {
		messages = append(messages, `{"role":"user","content":`+string(para)+`},{"role":"assistant","content":`+string(para)+`}`)
	}
	messages = append(messages, `{"role":"user","content":"What is my cat called?"}`)
	return []byte(`{"model":"gpt","stream":true,"messages":[{"role":"system","content":"You are kind."},` + strings.Join(messages, ",") + `]}`)
}

func BenchmarkParseAndSplice(b *testing.B) {
	block := "<graphiti_memory>\nRecalled.\n" + strings.Repeat("- a fact about something that was said before\n", 8) + "</graphiti_memory>"
	for _, size := range []int{2 << 10, 64 << 10, 512 << 10, 1 << 20} {
		body := history(size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			var c dialect.Conversation
			var out []byte
			var chain []dialect.Fingerprint
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if !(chat.Dialect{}).Parse(body, &c) {
					b.Fatal("not understood")
				}
				chain = hasher.Chain(&c, dialect.Root("", "p"), chain[:0])
				out = dialect.Splice(out[:0], body, []dialect.Insert{c.Insert(c.Last, block)})
			}
		})
	}
}
