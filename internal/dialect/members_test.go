package dialect_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// knownMembers are names with a meaning in some API. Without a value they have none.
var knownMembers = []string{
	"annotations", "audio", "cache_control", "content", "contents", "conversation", "encrypted_content", "error", "fileData", "function_call", "functionCall",
	"function_response", "functionResponse", "generate", "id", "inlineData", "input", "instructions", "messages", "metadata", "model", "name", "parts", "phase",
	"previous_response_id", "prompt", "prompt_cache_key", "reasoning_details", "refusal", "response_format", "session_id", "status", "system", "systemInstruction",
	"system_instruction", "text", "thought", "thread", "tool_calls", "tools", "type", "user",
}

// members returns the members that have no meaning: known ones without a value, and unknown
// ones.
func members() (all []string) {
	for _, value := range []string{`null`, `[]`, `{ }`, `""`} {
		for _, name := range append(knownMembers, "x_new") {
			all = append(all, fmt.Sprintf("%q:%s", name, value))
		}
	}
	for _, value := range []string{`5`, `true`, `"x"`, `["x"]`, `[{"type":"text","text":"x"}]`, `{"role":"user","content":"x"}`} {
		all = append(all, `"x_new":`+value, `"internal_metadata":`+value, `"gr\u00f6\u00dfe":`+value)
	}
	return all
}

// facts are the parts of a request that memory uses.
type facts struct {
	Messages            []string
	Last, Newest        int
	Kind                dialect.Kind
	Tools, Held, Format bool
	Fields              []string
	Prefill             string
	Prompt              uint64
	Works, Round, Opens bool
	Place               dialect.Place
	Chain               []dialect.Fingerprint
	Block               string // the body with a block
}

func factsOf(t *testing.T, d dialect.Dialect, body string) (f facts) {
	t.Helper()
	var c dialect.Conversation
	if !d.Parse([]byte(body), &c) {
		t.Fatalf("not understood: %s", body)
	}
	f = facts{Last: c.Last, Newest: c.Newest, Kind: c.Kind, Tools: c.Tools, Held: c.HeldElsewhere(), Format: c.Format,
		Prefill: c.Prefill(), Prompt: c.PromptHash(), Works: c.UnknownTools(false), Round: c.Answered(), Opens: c.Opens(), Place: c.Place(""),
	}
	for i, m := range c.Messages {
		f.Messages = append(f.Messages, fmt.Sprint(m.Role, m.Person, m.System, m.Results, m.Calls, c.Typed(i), string(c.Text(i))))
	}
	for n := range dialect.FieldPreviousResponseID {
		f.Fields = append(f.Fields, string(c.Field(n+1)))
	}
	f.Chain = c.Chain(dialect.Root("", "p"), nil)
	if c.Last >= 0 {
		f.Block = string(bytes.Join(dialect.Splice(nil, []byte(body), []dialect.Insert{c.Insert(c.Last, testBlock)}), nil))
	}
	return f
}

// TestMembersWithoutMeaning checks in each API that a member without a value or with an
// unknown name, in the request, its messages or their parts, changes neither whose words the
// messages are nor the block.
func TestMembersWithoutMeaning(t *testing.T) {
	for name, s := range spellings {
		for _, in := range []struct {
			name string
			of   func(*spelling) *string
		}{
			{"request", func(s *spelling) *string { return &s.body }}, {"user message", func(s *spelling) *string { return &s.user }},
			{"answer", func(s *spelling) *string { return &s.answer }}, {"text", func(s *spelling) *string { return &s.text }},
			{"picture", func(s *spelling) *string { return &s.picture }}, {"call", func(s *spelling) *string { return &s.call }},
			{"result", func(s *spelling) *string { return &s.result }}, {"client's message", func(s *spelling) *string { return &s.system }},
		} {
			for _, member := range members() {
				with := s
				to := in.of(&with)
				if key, _, _ := strings.Cut(member, ":"); strings.Contains(*to, key+":") {
					continue
				}
				member += ","
				*to = "{" + member + (*to)[1:]
				plain, added := s.talks(), with.talks()
				for i := range plain {
					want, got := factsOf(t, s.d, plain[i]), factsOf(t, s.d, added[i])
					for _, f := range []*facts{&want, &got} {
						f.Block = strings.ReplaceAll(f.Block, member, "")
					}
					if !reflect.DeepEqual(want, got) {
						t.Errorf("%s: %s in a %s of talk %d (-want +got):\n%s", name, member, in.name, i, cmp.Diff(want, got))
					}
				}
			}
		}
	}
}

// TestByteOrderMark checks in each API that a mark before the body makes no difference.
func TestByteOrderMark(t *testing.T) {
	for name, s := range spellings {
		for i, body := range s.talks() {
			want, got := factsOf(t, s.d, body), factsOf(t, s.d, "\uFEFF"+body)
			if got.Block = strings.TrimPrefix(got.Block, "\uFEFF"); !reflect.DeepEqual(want, got) {
				t.Errorf("%s: talk %d (-want +got):\n%s", name, i, cmp.Diff(want, got))
			}
		}
	}
}

// TestMeant checks that a request of the Responses API at the path of Chat Completions is read
// as what it is, and its answer in the form of either API.
func TestMeant(t *testing.T) {
	meant := registry.Meant(chat.Dialect{})
	for _, tc := range []struct{ body, last, block string }{
		{`{"input":"Hello."}`, "Hello.", `{"input":"` + string(dialect.AppendJSON(nil, testBlock)) + `\n\nHello."}`},
		{`{"input":[{"role":"user","content":[{"type":"input_text","text":"Hello."}]}]}`, "Hello.", ""},
	} {
		var c dialect.Conversation
		if (chat.Dialect{}).Parse([]byte(tc.body), &c) || !meant.Parse([]byte(tc.body), &c) || c.Last < 0 || string(c.Text(c.Last)) != tc.last {
			t.Errorf("%s: not understood", tc.body)
		}
		if got := factsOf(t, meant, tc.body).Block; tc.block != "" && got != tc.block {
			t.Errorf("%s: got %s, want %s", tc.body, got, tc.block)
		}
	}
	for _, tc := range slices.Concat(ofSection(t, "events"), ofSection(t, "body")) {
		if name := tc.info.Name; name != "chat" && name != "responses" {
			continue
		}
		both, own := meant.NewReader(""), tc.d.NewReader("")
		if tc.section == "body" {
			both.Body([]byte(tc.text))
			own.Body([]byte(tc.text))
		} else {
			events := dialect.EventReader{Emit: func(name, data []byte) { both.Event(name, data); own.Event(name, data) }}
			events.Feed([]byte(tc.text))
			events.End()
		}
		if got, want := both.Answer(), own.Answer(); got.End != want.End || want.End != dialect.EndUnknown && got.Text != want.Text {
			t.Errorf("%s, %s: got %+v, want %+v", tc.info.Name, tc.name, got, want)
		}
	}
}

// TestInputTextInChat checks that a block before a part of type input_text has that type, too.
func TestInputTextInChat(t *testing.T) {
	body := `{"messages":[{"role":"user","content":[{"type":"input_text","text":"Hello."}]}]}`
	if got := factsOf(t, chat.Dialect{}, body); got.Last != 0 || !strings.Contains(got.Block, `[{"type":"input_text","text":"<graphiti_memory>`) {
		t.Errorf("got %+v", got)
	}
}

// talks returns requests with all kinds of messages.
func (s *spelling) talks() (bodies []string) {
	said := func(parts ...string) string { return fmt.Sprintf(s.user, strings.Join(parts, ",")) }
	text := func(words string) string { return fmt.Sprintf(s.text, words) }
	answer := fmt.Sprintf(s.answer, "Done.")
	for _, messages := range [][]string{
		{said(text("Hi."))},
		{s.system, said(text("<system-reminder>x</system-reminder>"), text(typedWords)), s.system},
		{said(text("Hi.")), answer, said(text(typedWords))},
		{said(text("Hi.")), s.call, s.result, answer, said(text(typedWords))},
		{said(text("Hi.")), s.call, s.result},
		{said(s.picture, text("What is this?"))},
	} {
		bodies = append(bodies, fmt.Sprintf(s.body, strings.Join(messages, ",")))
	}
	return bodies
}

// TestAnswerMembersWithoutMeaning checks with all fixtures that such members change no
// answer.
func TestAnswerMembersWithoutMeaning(t *testing.T) {
	for _, tc := range slices.Concat(ofSection(t, "events"), ofSection(t, "body")) {
		read := func(text string) dialect.Answer {
			if tc.section == "events" {
				return readEvents(tc.d, []byte(text), len(text)+1)
			}
			r := tc.d.NewReader("")
			r.Body([]byte(text))
			return r.Answer()
		}
		want := read(tc.text)
		for _, member := range members() {
			for _, at := range objects(tc.text, member) {
				text := tc.text[:at] + member + "," + tc.text[at:]
				got := read(text)
				if got.Text != want.Text || got.End != want.End || got.Usage != want.Usage || (got.Calls == nil) != (want.Calls == nil) {
					t.Fatalf("%s, %s: %s changes the answer to %+v: %s", tc.info.Name, tc.name, member, got, text)
				}
			}
		}
	}
}

// objects returns the offsets after the braces that open objects without such a member.
func objects(text, member string) (found []int) {
	name, _, _ := strings.Cut(member, ":")
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			inString = !inString
		case c == '{' && !inString && strings.TrimSpace(text[i+1:])[0] == '"':
			of := gjson.Parse(text[i:])
			if strings.Contains(of.Raw, name+":") {
				continue
			}
			found = append(found, i+1)
		}
	}
	return found
}
