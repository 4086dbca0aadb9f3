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
