package proxytest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestRefusals: the stand-in refuses what the real APIs would, so that an
// insertion in the wrong place fails a test here.
func TestRefusals(t *testing.T) {
	const (
		chat      = "/v1/chat/completions"
		responses = "/v1/responses"
		messages  = "/v1/messages"
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
	} {
		t.Run(c.path+" "+c.name, func(t *testing.T) {
			p := provider(t)
			if c.path == responses {
				post(t, p, responses, `{"model":"m","input":"first"}`) // is resp_1
			}
			status, answer := post(t, p, c.path, c.body)
			if c.says == "" && status != http.StatusOK || c.says != "" && (status != http.StatusBadRequest || !strings.Contains(answer, c.says)) {
				t.Errorf("%d %s, want %q", status, answer, c.says)
			}
		})
	}
}

func provider(t *testing.T) *Provider {
	t.Helper()
	p, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func post(t *testing.T, p *Provider, path, body string) (int, string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL()+path, strings.NewReader(body))
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
