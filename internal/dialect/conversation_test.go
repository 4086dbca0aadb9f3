package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

func parse(t testing.TB, body string) (*dialect.Conversation, bool) {
	t.Helper()
	c := &dialect.Conversation{}
	ok := chat.Dialect{}.Parse([]byte(body), c)
	return c, ok
}

// genBody draws a request with members in any order, any white space and any text.
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

// TestSpliceIsTransparent checks that a body without its inserts is the client's, and that
// with them it is valid JSON in which the message begins with the block. The fixtures check
// the same for every dialect.
func TestSpliceIsTransparent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(genBody(t))
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse(body, &c) {
			t.Fatalf("not understood: %s", body)
		}
		var at []int
		for i, m := range c.Messages {
			if m.Person && rapid.Bool().Draw(t, "insert") {
				at = append(at, i)
			}
		}
		block := "<graphiti_memory>\n- " + strings.ToValidUTF8(rapid.String().Draw(t, "fact"), "?") + "\n</graphiti_memory>"
		checkSplice(t, chat.Dialect{}, body, at, block)
	})
}

func TestFingerprintsDoNotDependOnHowTextIsWritten(t *testing.T) {
	same := []string{
		`{"messages":[{"role":"system","content":"one"},{"role":"user","content":"né <b> \"x\"\n"},{"role":"assistant","content":"yes"},{"role":"user","content":"more"}]}`,
		`{"messages":[{"role":"system","content":"another day"},{"content":[{"type":"text","text":" n\u00e9 \u003cb\u003e \"x\""}],"role":"user"},{"role":"tool","content":"t"},{"role":"assistant","content":" yes\n"},{"role":"user","content":"more"}]}`,
		`{"messages":[{"role":"user","content":"<system-reminder>r</system-reminder>né <b> \"x\""},{"role":"assistant","content":"<think>hm</think>yes"},{"role":"user","content":"more"}]}`,
	}
	var want dialect.Fingerprint
	for i, body := range same {
		c, ok := parse(t, body)
		if !ok {
			t.Fatalf("not understood: %s", body)
		}
		chain := c.Chain(dialect.Root("t", "p"), nil)
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

// TestTextIsDecodedOnce checks that the text of the newest message, which may be large and
// has many readers, is decoded once and released by Reset.
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
		t.Errorf("message 0 says %q, want \"one\\ntwo\"", got)
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
			var out [][]byte
			var chain []dialect.Fingerprint
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if !(chat.Dialect{}).Parse(body, &c) {
					b.Fatal("not understood")
				}
				chain = c.Chain(dialect.Root("", "p"), chain[:0])
				out = dialect.Splice(out[:0], body, []dialect.Insert{c.Insert(c.Last, block)})
			}
		})
	}
}

func TestKeys_Bounds(t *testing.T) {
	t.Parallel()
	var k dialect.Keys
	k.Add(strings.Repeat("x", 1000))
	for i := range 100 {
		k.Add(fmt.Sprint("id", i/2))
	}
	if len(k) != 16 || k[0] != "id0" || k[1] != "id1" {
		t.Errorf("got %d keys, %q first; want 16 distinct short ones", len(k), k[:2])
	}
}

func TestNames(t *testing.T) {
	for product, want := range map[string]string{"claude-cli": "Claude Code", "OpenAI": "OpenAI SDK", "": dialect.Other, "x": dialect.Other} {
		if got := dialect.Named(product); got != want {
			t.Errorf("%q is named %q", product, got)
		}
	}
	seen := make(map[string]bool)
	for _, name := range dialect.Names() {
		if seen[name] {
			t.Errorf("%q is listed twice", name)
		}
		seen[name] = true
	}
}
