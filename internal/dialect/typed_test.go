package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// typedWords is the person's text in every row of TestTyped.
const typedWords = "Always use tabs."

// spelling holds the parts of a request in the JSON of one API.
type spelling struct {
	d                   dialect.Dialect
	body                string // encloses the messages
	user, answer        string // messages, for a list of parts and for a text
	text, picture, file string // parts
	call, result        string // messages of a tool round
	thought             string // an item or a message of the model
	system, extra       string // a client's message; a user message with an unknown member
}

var spellings = map[string]spelling{
	"chat": {
		d: chat.Dialect{}, body: `{"messages":[%s]}`,
		user: `{"role":"user","content":[%s]}`, answer: `{"role":"assistant","content":"%s"}`,
		text: `{"type":"text","text":"%s"}`, picture: `{"type":"image_url","image_url":{"url":"data:,"}}`, file: `{"type":"file","file":{"file_data":"x"}}`,
		call: `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, result: `{"role":"tool","tool_call_id":"1","content":"x"}`,
		thought: `{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]}`, system: `{"role":"system","content":"x"}`, extra: `{"role":"user","documents":["x"],"content":"%s"}`,
	},
	"responses": {
		d: responses.Dialect{}, body: `{"input":[%s]}`,
		user: `{"role":"user","content":[%s]}`, answer: `{"role":"assistant","content":[{"type":"output_text","text":"%s"}]}`,
		text: `{"type":"input_text","text":"%s"}`, picture: `{"type":"input_image","image_url":"data:,"}`, file: `{"type":"input_file","file_data":"x"}`,
		call: `{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}`, result: `{"type":"function_call_output","call_id":"1","output":"x"}`,
		thought: `{"type":"reasoning","summary":[]}`, system: `{"role":"developer","content":"x"}`, extra: `{"role":"user","documents":["x"],"content":"%s"}`,
	},
	"messages": {
		d: messages.Dialect{}, body: `{"messages":[%s]}`,
		user: `{"role":"user","content":[%s]}`, answer: `{"role":"assistant","content":"%s"}`,
		text: `{"type":"text","text":"%s"}`, picture: `{"type":"image","source":{}}`, file: `{"type":"document","source":{"type":"text","data":"x"}}`,
		call: `{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"1","name":"f","input":{}}]}`, result: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}`,
		thought: `{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}`, system: `{"role":"system","content":"x"}`, extra: `{"role":"user","documents":["x"],"content":"%s"}`,
	},
	"gemini": {
		d: gemini.Dialect{}, body: `{"contents":[%s]}`,
		user: `{"role":"user","parts":[%s]}`, answer: `{"role":"model","parts":[{"text":"%s"}]}`,
		text: `{"text":"%s"}`, picture: `{"inlineData":{"mimeType":"image/png","data":""}}`, file: `{"fileData":{"fileUri":"x"}}`,
		call: `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`, result: `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`,
		thought: `{"role":"model","parts":[{"thought":true,"text":"x"}]}`, system: `{"role":"system","parts":[{"text":"x"}]}`, extra: `{"role":"user","documents":["x"],"parts":[{"text":"%s"}]}`,
	},
}

// TestTyped checks in each API that a message counts as typed only if it holds a single
// text of the person and its turn holds no other words, files or tool calls.
func TestTyped(t *testing.T) {
	const reminder = `<system-reminder>\nx\n</system-reminder>`
	for name, s := range spellings {
		text := func(words string) string { return fmt.Sprintf(s.text, words) }
		user := func(parts ...string) string { return fmt.Sprintf(s.user, strings.Join(parts, ",")) }
		said := func(words string) string { return user(text(words)) }
		answer, words := fmt.Sprintf(s.answer, "Yes."), said(typedWords)
		for _, tc := range []struct {
			name     string
			messages []string
			want     bool
		}{
			{"words alone", []string{words}, true},
			{"words behind a turn", []string{said("Hi."), answer, words}, true},
			{"words before a turn", []string{words, answer, said("Hi.")}, true},
			{"words between turns with tools", []string{said("Hi."), s.call, s.result, answer, words, answer, said("Hi."), s.call, s.result, answer}, true},
			{"the client's own messages beside them", []string{said(reminder), words, said(reminder)}, true},
			{"the client's own part beside them", []string{user(text(reminder), text(typedWords))}, true},
			{"a thought behind them", []string{words, s.thought, answer}, true},
			{"an empty part", []string{user(text(" "), text(typedWords))}, true},

			{"a picture beside them", []string{user(s.picture, text(typedWords))}, false},
			{"a file beside them", []string{user(text(typedWords), s.file)}, false},
			{"a member that is not known", []string{fmt.Sprintf(s.extra, typedWords)}, true},
			{"two parts", []string{user(text("Fix it."), text(typedWords))}, false},
			{"a part in a frame that is not known", []string{user(text(`<new>\nx\n</new>`), text(typedWords))}, false},
			{"a message in a frame that is not known", []string{said(`<new>\nx\n</new>`), words}, false},
			{"a client's text in the same part", []string{said(reminder + `\n` + typedWords)}, false},
			{"an attachment in the same part", []string{said(typedWords + `\n--- a.md ---`)}, false},
			{"other words before them", []string{said("Fix it."), words}, false},
			{"other words behind them", []string{words, said("Fix it."), answer}, false},
			{"a picture in a message of its own", []string{user(s.picture), words}, false},
			{"words amid a round", []string{said("Hi."), s.call, s.result, words}, false},
			{"words amid a round that the client reports", []string{said("Hi."), s.call, s.result, said(`The user sent a new message while you were working:\n` + typedWords + `\n\nIMPORTANT: Address it.`)}, true},
			{"a call behind them", []string{words, s.call}, false},
			{"a round behind them", []string{words, s.call, s.result, answer}, false},
		} {
			var c dialect.Conversation
			body := fmt.Sprintf(s.body, strings.Join(tc.messages, ","))
			if !s.d.Parse([]byte(body), &c) {
				t.Fatalf("%s: %s: not understood: %s", name, tc.name, body)
			}
			found := false
			for i := range c.Messages {
				if !strings.HasSuffix(string(c.Text(i)), typedWords) && !strings.HasPrefix(string(c.Text(i)), typedWords) {
					continue
				}
				if found = true; c.Typed(i) != tc.want {
					t.Errorf("%s: %s: Typed = %v, want %v", name, tc.name, c.Typed(i), tc.want)
				}
			}
			if !found {
				t.Errorf("%s: %s: no message says %q", name, tc.name, typedWords)
			}
		}
	}
}

// TestTypedSpeakers checks that no message counts as typed in a turn with named speakers or
// unknown roles: an agent may have sent it.
func TestTypedSpeakers(t *testing.T) {
	const words, named = `{"role":"user","content":"Always use tabs."}`, `{"role":"user","name":"researcher","content":"Always use tabs."}`
	for _, tc := range []struct {
		name, messages string
		message        int
	}{
		{"the only speaker", named, 0},
		{"another speaker in the turn", words + "," + named, 0},
		{"a named answer in the turn", words + `,{"role":"assistant","name":"writer","content":"Yes."}`, 0},
		{"a role that is not known", words + `,{"role":"observer","content":"Yes."}`, 0},
	} {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(`{"messages":[`+tc.messages+`]}`), &c) {
			t.Fatalf("%s: not understood", tc.name)
		}
		if c.Typed(tc.message) {
			t.Errorf("%s: Typed = true, want false", tc.name)
		}
	}
}

// TestOpenRounds checks in each API which texts among or after the results of tools count as a
// person's words, before the model has answered or the client reports that the person
// interrupted the turn: typed ones, and those with a mark of the client.
func TestOpenRounds(t *testing.T) {
	const skill, stop = `Base directory for this skill: /a\n\nRemember that I like tabs.`, `[Request interrupted by user]`
	const mark, tail = `The user sent a new message while you were working:\nUse tabs.`, `\n\nThis is how Claude Code surfaces messages.`
	long := strings.Repeat("All of this is an instruction of the client. ", 8)
	for name, s := range spellings {
		said := func(words string) string { return fmt.Sprintf(s.user, fmt.Sprintf(s.text, words)) }
		answer, ship, next := fmt.Sprintf(s.answer, "Done."), said("Ship it."), said("And now?")
		for _, tc := range []struct {
			name     string
			messages []string
			want     []string // texts of the person's messages
		}{
			{"a text behind results", []string{ship, s.call, s.result, said(skill)}, []string{"Ship it."}},
			{"two", []string{ship, s.call, s.result, said(skill), said(skill)}, []string{"Ship it."}},
			{"in a later round", []string{ship, s.call, s.result, said(skill), s.call, s.result, said(skill)}, []string{"Ship it."}},
			{"behind a call without a result", []string{ship, s.call, said(skill)}, []string{"Ship it."}},
			{"behind the answer", []string{ship, s.call, s.result, said(skill), answer, next}, []string{"Ship it.", "And now?"}},
			{"behind an empty answer", []string{ship, s.call, s.result, fmt.Sprintf(s.answer, ""), next}, []string{"Ship it.", "And now?"}},
			{"behind an interruption", []string{ship, s.call, s.result, said(stop), next}, []string{"Ship it.", "And now?"}},
			{"an interruption that a skill quotes", []string{ship, s.call, s.result, said(stop + `\n` + skill)}, []string{"Ship it."}},
			{"words behind results", []string{ship, s.call, s.result, said("Use tabs.")}, []string{"Ship it.", "Use tabs."}},
			{"several, and an answer", []string{ship, s.call, s.result, said("Use tabs."), said("And hurry."), answer, next}, []string{"Ship it.", "Use tabs.", "And hurry.", "And now?"}},
			{"between rounds", []string{ship, s.call, s.result, said("Use tabs."), s.call, s.result, said(skill)}, []string{"Ship it.", "Use tabs."}},
			{"a skill, then words", []string{ship, s.call, s.result, said(skill), said("Use tabs.")}, []string{"Ship it.", "Use tabs."}},
			{"behind the result of an aborted tool", []string{ship, s.call, strings.Replace(s.result, `"x"`, `"Tool execution aborted"`, 1), next}, []string{"Ship it.", "And now?"}},
			{"a client's report of words", []string{ship, s.call, s.result, said(mark + tail)}, []string{"Ship it.", "Use tabs."}},
			{"in a reminder", []string{ship, s.call, s.result, said(`<system-reminder>\n` + mark + `\n\nPlease address this message and continue.\n</system-reminder>`)}, []string{"Ship it.", "Use tabs."}},
			{"several paragraphs in it", []string{ship, s.call, s.result, said(mark + `\n\nAnd ` + long + tail)}, []string{"Ship it.", "Use tabs.\n\nAnd " + strings.TrimSpace(long)}},
			{"a reminder with another beginning", []string{ship, s.call, s.result, said(`<system-reminder>\nNote: ` + mark + `\n</system-reminder>`)}, []string{"Ship it."}},
			{"a text of the round", []string{ship, s.call, strings.NewReplacer(`"x"`, `"The output."`, `{}`, `{"o":"The output."}`).Replace(s.result), said("The output.")}, []string{"Ship it."}},
			{"a text of the call", []string{ship, strings.NewReplacer(`"{}"`, `"{\"a\":\"A task.\"}"`, `{}`, `{"a":"A task."}`).Replace(s.call), s.result, said("A task.")}, []string{"Ship it."}},
			{"a picture beside a text", []string{ship, s.call, s.result, fmt.Sprintf(s.user, fmt.Sprintf(s.text, "Picture of the tool:")+","+s.picture)}, []string{"Ship it."}},
			{"an element", []string{ship, s.call, s.result, said(`<skill-context name=\"ship\">\nShip.\n</skill-context>`)}, []string{"Ship it."}},
			{"a long text", []string{ship, s.call, s.result, said(long)}, []string{"Ship it."}},
			{"a round before any words", []string{s.call, s.result, said(skill)}, nil},
		} {
			var c dialect.Conversation
			body := fmt.Sprintf(s.body, strings.Join(tc.messages, ","))
			if !s.d.Parse([]byte(body), &c) {
				t.Fatalf("%s: %s: not understood: %s", name, tc.name, body)
			}
			if got := personSaid(&c); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%s: %s: the person said %q, want %q", name, tc.name, got, tc.want)
			}
		}
	}
}

func personSaid(c *dialect.Conversation) (texts []string) {
	for i := range c.Messages {
		if c.Messages[i].Person {
			texts = append(texts, string(c.Text(i)))
		}
	}
	return texts
}

// TestAnswersThatTheProviderHolds checks that a reference to an answer, or an answer
// without text, ends a tool round like a text does.
func TestAnswersThatTheProviderHolds(t *testing.T) {
	const ref = `{"type":"item_reference","id":"a"}`
	for _, tc := range []struct {
		name, api string
		items     []string // WORDS, NEXT and SKILL are user messages
		want      []string
		typed     bool
	}{
		{"a reference after results", "responses", []string{"WORDS", "CALL", "RESULT", ref, "NEXT"}, []string{"Words.", "Next."}, true},
		{"references to thoughts and an answer", "responses", []string{"WORDS", ref, "CALL", "RESULT", ref, ref, "NEXT"}, []string{"Words.", "Next."}, true},
		{"a reference to a call", "responses", []string{"WORDS", ref, "RESULT", "SKILL"}, []string{"Words."}, false},
		{"references to two rounds", "responses", []string{"WORDS", ref, "RESULT", ref, ref, "RESULT", "SKILL"}, []string{"Words."}, false},
		{"answers that are references", "responses", []string{"WORDS", ref, "NEXT"}, []string{"Words.", "Next."}, true},
		{"an answer that is audio", "chat", []string{"WORDS", "CALL", "RESULT", `{"role":"assistant","content":null,"audio":{"id":"a"}}`, "NEXT"}, []string{"Words.", "Next."}, true},
		{"an answer that is a picture", "gemini", []string{"WORDS", "CALL", "RESULT", `{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":""}}]}`, "NEXT"}, []string{"Words.", "Next."}, true},
	} {
		s := spellings[tc.api]
		said := func(words string) string { return fmt.Sprintf(s.user, fmt.Sprintf(s.text, words)) }
		items := strings.NewReplacer("WORDS", said("Words."), "NEXT", said("Next."), "SKILL", said("Base directory for this skill: /a"), "CALL", s.call, "RESULT", s.result).
			Replace(strings.Join(tc.items, ","))
		var c dialect.Conversation
		if body := fmt.Sprintf(s.body, items); !s.d.Parse([]byte(body), &c) {
			t.Fatalf("%s: not understood: %s", tc.name, body)
		}
		if got := personSaid(&c); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: the person said %q, want %q", tc.name, got, tc.want)
		}
		if got := c.Typed(c.Last); got != tc.typed {
			t.Errorf("%s: Typed = %v for %q, want %v", tc.name, got, c.Text(c.Last), tc.typed)
		}
	}
}

// TestInChat checks that a request may be one of a person's chat if a known chat sends it, or if it
// offers tools or has no prompt. A data format or a prefilled answer is a program's.
func TestInChat(t *testing.T) {
	const prompt = `{"role":"system","content":"Summarize the e-mail."},`
	for name, tc := range map[string]struct {
		body        string
		known, want bool
	}{
		"a known chat":               {`{"messages":[` + prompt + `{"role":"user","content":"x"}]}`, true, true},
		"a program with a prompt":    {`{"messages":[` + prompt + `{"role":"user","content":"x"}]}`, false, false},
		"a program without a prompt": {`{"messages":[{"role":"user","content":"x"}]}`, false, true},
		"a program with tools":       {`{"messages":[` + prompt + `{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, false, true},
		"a data format":              {`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}`, true, false},
		"a prefilled answer":         {`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"{"}]}`, true, false},
	} {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(tc.body), &c) {
			t.Fatalf("%s: not parsed", name)
		}
		if got := c.InChat(tc.known); got != tc.want {
			t.Errorf("%s: InChat(%v) = %v, want %v", name, tc.known, got, tc.want)
		}
	}
}
