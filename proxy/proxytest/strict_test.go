package proxytest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRefusals checks that the provider refuses the requests that the real APIs refuse, so
// that a misplaced insertion fails a test.
func TestRefusals(t *testing.T) {
	const (
		chat      = "/v1/chat/completions"
		responses = "/v1/responses"
		messages  = "/v1/messages"
		gemini    = "/v1beta/models/m:generateContent"
		callOf    = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`
		resultOf  = `{"functionResponse":{"name":"f","response":{"x":1}}}`
		call      = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	)
	for _, c := range []struct{ name, path, body, says string }{
		{"a turn", chat, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, ""},
		{"unknown member", chat, `{"model":"m","messages":[{"role":"user","content":"hi"}],"memory":1}`, "memory"},
		{"unknown role", chat, `{"model":"m","messages":[{"role":"memory","content":"hi"}]}`, "role"},
		{"part of another API", chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]}`, "part type"},
		{"between call and result", chat, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"1"}]}`, "tool_call_id"},

		{"a turn", responses, `{"model":"m","input":"hi"}`, ""},
		{"a stored turn", responses, `{"model":"m","input":"more","previous_response_id":"resp_1"}`, ""},
		{"unknown answer", responses, `{"model":"m","input":"hi","previous_response_id":"resp_999"}`, "not found"},
		{"two histories", responses, `{"model":"m","input":"hi","previous_response_id":"resp_1","conversation":"c"}`, "exclusive"},
		{"part of another API", responses, `{"model":"m","input":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, "part type"},
		{"unknown item", responses, `{"model":"m","input":[{"type":"memory","text":"x"}]}`, "memory"},
		{"unknown member of an item", responses, `{"model":"m","input":[{"role":"user","content":"x","memory":"y"}]}`, "memory"},
		{"output without call", responses, `{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":"1"}]}`, "No tool call"},
		{"call without output", responses, `{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"role":"user","content":"x"}]}`, "No tool output"},
		{"changed before a thought", responses, `{"model":"m","input":[{"role":"user","content":"x"},{"type":"reasoning","id":"r","summary":[],"encrypted_content":"00"}]}`, "prefix_mismatch"},

		{"a turn", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`, ""},
		{"a round", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"},` + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"and"}]}]}`, ""},
		{"text before a result", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"},` + call + `,{"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"a","content":"1"}]}]}`, "must come first"},
		{"no result", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"},` + call + `,{"role":"user","content":"and"}]}`, "without `tool_result`"},
		{"empty text", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`, "non-empty"},
		{"no limit", messages, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "max_tokens"},
		{"changed before a thought", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"00"}]},{"role":"user","content":"x"}]}`, "bound to a different"},
		{"five breakpoints", messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5), ",") + `]}]}`, "Found 5"},

		{"a turn", gemini, `{"contents":[{"parts":[{"text":"hi"}]}]}`, ""},
		{"one value for a list", gemini, `{"contents":{"parts":{"text":"hi"}},"system_instruction":{"parts":{"text":"s"}}}`, ""},
		{"snake case", gemini, `{"contents":[{"role":"user","parts":[{"text":"hi"},{"inline_data":{"mime_type":"image/png","data":"AA=="}}]}],"generation_config":{"max_output_tokens":1}}`, ""},
		{"a round", gemini, `{"contents":[{"parts":[{"text":"hi"}]},` + callOf + `,{"role":"user","parts":[` + resultOf + `,{"text":"and"}]}]}`, ""},
		{"a round, the role of a function", gemini, `{"contents":[{"parts":[{"text":"hi"}]},` + callOf + `,{"role":"function","parts":[` + resultOf + `]}]}`, ""},
		{"an answer in pieces", gemini, `{"contents":[{"parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"parts":[{"text":"x"}]}]}`, ""},
		{"unknown member", gemini, `{"contents":[{"parts":[{"text":"hi"}]}],"memory":1}`, "memory"},
		{"unknown member of a part", gemini, `{"contents":[{"parts":[{"type":"text","text":"hi"}]}]}`, "type"},
		{"unknown member of the configuration", gemini, `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"max_tokens":1}}`, "max_tokens"},
		{"unknown role", gemini, `{"contents":[{"role":"assistant","parts":[{"text":"hi"}]}]}`, "valid role"},
		{"no parts", gemini, `{"contents":[{"role":"user","parts":[]}]}`, "must not be empty"},
		{"no data", gemini, `{"contents":[{"parts":[{"thought":true}]}]}`, "oneof"},
		{"data twice", gemini, `{"contents":[{"parts":[{"text":"a","fileData":{"fileUri":"x"}}]}]}`, "oneof"},
		{"ends with the model", gemini, `{"contents":[{"parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"a"}]}]}`, "end with a user role"},
		{"between call and result", gemini, `{"contents":[{"parts":[{"text":"hi"}]},` + callOf + `,{"parts":[{"text":"x"}]},{"parts":[` + resultOf + `]}]}`, "function response turn"},
		{"result without call", gemini, `{"contents":[{"parts":[` + resultOf + `]}]}`, "function response turn"},
		{"two results", gemini, `{"contents":[{"parts":[{"text":"hi"}]},` + callOf + `,{"parts":[` + resultOf + `,` + resultOf + `]}]}`, "number of function response parts"},
		{"call first", gemini, `{"contents":[` + callOf + `,{"parts":[` + resultOf + `]}]}`, "function call turn comes"},
		{"changed before a thought", gemini, `{"contents":[{"parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"a","thoughtSignature":"00"}]},{"parts":[{"text":"y"}]}]}`, "thought signature"},
	} {
		t.Run(c.path+" "+c.name, func(t *testing.T) {
			p := provider(t)
			if c.path == responses {
				post(t, p, responses, `{"model":"m","input":"first"}`) // creates resp_1
			}
			status, answer := post(t, p, c.path, c.body)
			if c.says == "" && status != http.StatusOK || c.says != "" && (status != http.StatusBadRequest || !strings.Contains(answer, c.says)) {
				t.Errorf("%d %s, want %q", status, answer, c.says)
			}
		})
	}
}

// TestGeminiStreams checks that a streamed answer has the same text as events and as an
// array, and that a failure has the format of the API.
func TestGeminiStreams(t *testing.T) {
	type answer struct {
		Candidates []struct {
			Content      struct{ Parts []struct{ Text string } }
			FinishReason string
		}
		Error *struct{ Status string }
	}
	for _, tc := range []struct {
		name, query string
		fails       bool
	}{{"events", "?alt=sse", false}, {"an array", "", false}, {"events that fail", "?alt=sse", true}, {"an array that fails", "", true}} {
		t.Run(tc.name, func(t *testing.T) {
			p := provider(t)
			p.SetAnswer(func(Input) Reply { return Reply{Text: "one two three"} })
			if tc.fails {
				p.SetFaults(Faults{FailAfter: 1})
			}
			body := `{"contents":[{"parts":[{"text":"hi"}]}]}`
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL()+"/v1/models/m:streamGenerateContent"+tc.query, strings.NewReader(body))
			req.Header.Set("X-Goog-Api-Key", "k-test")
			resp, err := http.DefaultClient.Do(req)
			must(t, err)
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body) // an error if the stream fails
			var list []answer
			if tc.query == "" {
				err = json.Unmarshal(b, &list)
			} else {
				for line := range strings.FieldsFuncSeq(string(b), func(r rune) bool { return r == '\n' }) {
					var a answer
					err = errors.Join(err, json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &a))
					list = append(list, a)
				}
			}
			if err != nil {
				t.Fatalf("%s is not a stream's JSON: %v", b, err)
			}
			text, end := "", ""
			for _, a := range list {
				for _, c := range a.Candidates {
					text, end = text+c.Content.Parts[0].Text, c.FinishReason
				}
			}
			last := list[len(list)-1]
			if tc.fails && (last.Error == nil || last.Error.Status != "INTERNAL") || !tc.fails && (text != "one two three" || end != "STOP") {
				t.Errorf("got %s, want a failure %v, and otherwise the text \"one two three\" and STOP", b, tc.fails)
			}
		})
	}
}

// TestGeminiAnswersInASchema checks that an answer fits the schema of its request.
func TestGeminiAnswersInASchema(t *testing.T) {
	p := provider(t)
	_, body := post(t, p, "/v1beta/models/m:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"responseMimeType":"application/json",`+
		`"responseJsonSchema":{"type":"OBJECT","properties":{"n":{"type":"INTEGER"},"who":{"type":"string","enum":["user","model"]}}}}}`)
	if !strings.Contains(body, `{\"n\":1,\"who\":\"user\"}`) {
		t.Errorf("got %s, want an example that fits the schema", body)
	}
}

func provider(t *testing.T) *Provider {
	t.Helper()
	p, err := Start()
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func post(t *testing.T, p *Provider, path, body string) (int, string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL()+path, strings.NewReader(body))
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Goog-Api-Key", "k-test")
	resp, err := http.DefaultClient.Do(req)
	b := helptest.Body(t, resp, err)
	return resp.StatusCode, string(b)
}
