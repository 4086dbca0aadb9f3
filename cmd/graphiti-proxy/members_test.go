package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestMembersWithoutMeaning checks that an empty, null or unknown member of a request, a message or
// a part changes neither the fate of a message nor its block, in each dialect and up to the stored
// message.
func TestMembersWithoutMeaning(t *testing.T) {
	t.Parallel()
	const question = "What is the code of the harbour gate, as I told you?"
	names := []string{"x_new", "tool_calls", "function_call", "name", "metadata", "cache_control", "annotations", "output_config"}
	values := []string{`null`, `[]`, `{}`, `""`}
	var members []string
	for _, name := range names {
		for _, value := range values {
			members = append(members, fmt.Sprintf("%q:%s,", name, value))
		}
	}
	members = append(members, `"x_new":{"role":"user","content":"x"},`, `"x_new":[{"type":"text","text":"x"}],`, `"x_new":5,`)
	for name, tc := range map[string]struct{ path, body, answer string }{
		"chat": {
			"/v1/chat/completions", `{%R"model":"m","messages":[{%M"role":"user","content":[{%P"type":"text","text":"Hello."}]},{%A"role":"assistant","content":"Hello."},{%M"role":"user","content":[{%P"type":"text","text":"` + question + `"}]}]}`,
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"It is 4711."}}]}`,
		},
		"responses": {"/v1/responses", `{%R"model":"m","input":[{%M"type":"message","role":"user","content":[{%P"type":"input_text","text":"` + question + `"}]}]}`, `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is 4711."}]}]}`},
		"messages": {
			"/v1/messages", `{%R"model":"m","max_tokens":9,"messages":[{%M"role":"user","content":[{%P"type":"text","text":"Hello."}]},{%A"role":"assistant","content":[{%P"type":"text","text":"Hello."}]},{%M"role":"user","content":[{%P"type":"text","text":"` + question + `"}]}]}`,
			`{"id":"msg","type":"message","role":"assistant","content":[{"type":"text","text":"It is 4711."}],"stop_reason":"end_turn"}`,
		},
		"gemini": {"/v1beta/models/m:generateContent", `{%R"contents":[{%M"role":"user","parts":[{%P"text":"` + question + `"}]}]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":"It is 4711."}]},"finishReason":"STOP"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, tc.answer)
			})
			w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL, "upstream.anthropic": up.URL, "upstream.gemini": up.URL})
			n := 0
			send := func(path, body string) (seen string) {
				n++
				req, err := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+path, strings.NewReader(body))
				must(t, err)
				req.Header.Set("X-Graphiti-Session", fmt.Sprint("s", n))
				resp, err := w.client.Do(req)
				must(t, err)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				var last graphiti.LoggedRequest
				waitUntil(t, "the settled message", func() bool {
					p, err := w.passes(service.Caller{Operator: true})
					if err != nil || len(p.Requests) == 0 {
						return false
					}
					last = p.Requests[len(p.Requests)-1]
					return last.Number >= n && last.Fate != "" && last.Fate != "open"
				})
				header := regexp.MustCompile(`ms=\d+`).ReplaceAllString(resp.Header.Get("X-Graphiti-Memory"), "")
				return header + "|" + last.Fate + " " + last.Cause + "|" + blockIn(up.got()[n-1])
			}
			told := strings.NewReplacer("%R", "", "%M", "", "%P", "", "%A", "", question, "The code of the harbour gate is 4711.").Replace(tc.body)
			send(tc.path, told)
			w.delivered(1)
			plain := strings.NewReplacer("%R", "", "%M", "", "%P", "", "%A", "").Replace(tc.body)
			want := send(tc.path, plain)
			if !strings.Contains(want, "4711") || !strings.Contains(want, "|stored |") {
				t.Fatalf("got %q, want a recalled fact and a stored message", want)
			}
			for _, at := range []string{"%R", "%M", "%P", "%A"} {
				if !strings.Contains(tc.body, at) {
					continue
				}
				for _, member := range members {
					body := strings.NewReplacer(at, member, "%R", "", "%M", "", "%P", "", "%A", "").Replace(tc.body)
					if got := send(tc.path, body); got != want {
						t.Errorf("%s at %s: got %q, want %q", member, at, got, want)
					}
				}
			}
		})
	}
}
