package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// provider is an upstream of the Responses and the Messages API, streamed or not. It
// answers with the result of answer, and records the bodies of requests.
type provider struct {
	*httptest.Server
	mu     sync.Mutex // guards the fields below
	bodies []string
	n      int
	answer func(n int) (text string, tool bool)
}

func newProvider(t *testing.T) *provider {
	p := &provider{answer: func(int) (string, bool) { return "Noted.", false }}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.bodies = append(p.bodies, string(b))
	p.n++
	n := p.n
	text, tool := p.answer(n)
	p.mu.Unlock()
	var req struct{ Stream bool }
	_ = json.Unmarshal(b, &req)
	messages := strings.Contains(r.URL.Path, "/messages")
	if strings.HasSuffix(r.URL.Path, "tokens") {
		fmt.Fprintf(w, `{"input_tokens":%d}`, len(b))
		return
	}
	var whole string
	switch {
	case messages && tool:
		whole = `{"id":"msg","type":"message","role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}],"stop_reason":"tool_use"}`
	case messages:
		whole = fmt.Sprintf(`{"id":"msg","type":"message","role":"assistant","content":[{"type":"text","text":%q}],"stop_reason":"end_turn"}`, text)
	case tool:
		whole = fmt.Sprintf(`{"id":"resp_%d","object":"response","status":"completed","output":[{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}]}`, n)
	default:
		whole = fmt.Sprintf(`{"id":"resp_%d","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}]}`, n, text)
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data) }
	if messages {
		event("message_start", `{"type":"message_start","message":{"id":"msg","content":[]}}`)
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text))
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`)
		event("message_stop", `{"type":"message_stop"}`)
		return
	}
	event("response.completed", `{"type":"response.completed","response":`+whole+`}`)
}

func (p *provider) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bodies[len(p.bodies)-1]
}

// TestEveryDialectRemembers checks that a message sent through one API is recalled through
// the others, that its block is repeated in tool rounds and token counts, and that a
// conversation stored by the provider continues by the id of its last answer.
func TestEveryDialectRemembers(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		up := newProvider(t)
		w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL, "upstream.anthropic": up.URL})
		post := func(path string, body map[string]any, headers ...string) (string, string) {
			t.Helper()
			body["model"], body["stream"] = "m", stream && !strings.HasSuffix(path, "tokens")
			status, header := w.exchange(path, body, append(headers, "anthropic-version", "2023-06-01")...)
			if status != http.StatusOK {
				t.Fatalf("%s: got %d, want 200", path, status)
			}
			return header.Get("X-Graphiti-Memory"), up.last()
		}
		text := func(s string) []m { return []m{{"type": "text", "text": s}} }
		input := func(s string) m {
			return m{"type": "message", "role": "user", "content": []m{{"type": "input_text", "text": s}}}
		}

		post("/v1/responses", m{"input": "My cat is called Miso.", "instructions": "Be brief."})
		w.delivered(1)
		header, saw := post("/v1/messages", m{"max_tokens": 10, "system": "Be brief.", "messages": []m{{"role": "user", "content": text("What is my cat called?")}}})
		if !strings.HasPrefix(header, "recalled; facts=1") || !strings.Contains(saw, `{"type":"text","text":"<graphiti_memory>`) || !strings.Contains(saw, "Miso") {
			t.Errorf("messages: %s, %s", header, saw)
		}
		header, count := post("/v1/messages/count_tokens", m{"messages": []m{{"role": "user", "content": text("What is my cat called?")}}}, "X-Claude-Code-Session-Id", "other")
		if strings.Contains(count, "graphiti_memory") {
			t.Errorf("count of another conversation: %s, %s", header, count)
		}

		// One conversation with a tool round, on each API.
		up.mu.Lock()
		up.answer = func(n int) (string, bool) {
			return "Done.", strings.Contains(up.bodies[len(up.bodies)-1], "use the tool") && !strings.Contains(up.bodies[len(up.bodies)-1], "result of it")
		}
		up.mu.Unlock()
		session := []string{"X-Claude-Code-Session-Id", "s-1"}
		ask := m{"role": "user", "content": text("What is my cat called? use the tool")}
		_, first := post("/v1/messages", m{"messages": []m{ask}}, session...)
		_, count = post("/v1/messages/count_tokens", m{"messages": []m{ask}}, session...)
		_, second := post("/v1/messages", m{"messages": []m{
			ask, {"role": "assistant", "content": []m{{"type": "tool_use", "id": "1", "name": "f", "input": m{}}}},
			{"role": "user", "content": []m{{"type": "tool_result", "tool_use_id": "1", "content": "result of it"}}},
		}}, session...)
		block := blockIn(first)
		if block == "" || blockIn(count) != block || blockIn(second) != block || strings.Count(second, "graphiti_memory>") != 2 {
			t.Errorf("messages: the block is not repeated:\n%s\n%s\n%s", first, count, second)
		}
		at, asked := input("<environment_context>\n  <cwd>"+t.TempDir()+"</cwd>\n</environment_context>"), input("What is my cat called? use the tool, please")
		_, first = post("/v1/responses", m{"input": []m{at, asked}}, "session_id", "codex-1", "originator", "codex_exec")
		_, second = post("/v1/responses", m{"input": []m{at, asked, {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "1", "output": "result of it"}}}, "session_id", "codex-1", "originator", "codex_exec")
		if block = blockIn(first); block == "" || blockIn(second) != block {
			t.Errorf("responses: the block is not repeated:\n%s\n%s", first, second)
		}
		w.delivered(4)

		// The provider stores the history: the session continues by the id of the answer.
		up.mu.Lock()
		up.answer = func(int) (string, bool) { return "I see.", false }
		n := up.n
		up.mu.Unlock()
		post("/v1/responses", m{"input": "Let us talk of something else."})
		w.delivered(5)
		post("/v1/responses", m{"input": "go on", "previous_response_id": fmt.Sprint("resp_", n+1)})
		w.delivered(6)
		post("/v1/responses", m{"input": "go on", "previous_response_id": fmt.Sprint("resp_", n+2)})
		w.delivered(7) // same text, but another turn
		if q := w.app.memory().queue(); q.Delivered != 7 || q.Pending != 0 {
			t.Errorf("got %+v, want Delivered 7, Pending 0", q)
		}
		w.stop()
	}
}

// blockIn returns the raw text of the first block in a body, or "" if it contains no block.
func blockIn(body string) string {
	_, rest, ok := strings.Cut(body, "<graphiti_memory>")
	block, _, closed := strings.Cut(rest, "</graphiti_memory>")
	if !ok || !closed {
		return ""
	}
	return block
}

// TestHeadersMarkChores checks that headers of the clients mark chores and subagents,
// independently of the text.
func TestHeadersMarkChores(t *testing.T) {
	t.Parallel()
	up := newProvider(t)
	dir, settings := t.TempDir(), map[string]string{"upstream.openai": up.URL, "upstream.anthropic": up.URL, "identity.owner": "user:josh"}
	w := start(t, dir, settings)
	cases := []struct {
		header, value string
		reason        string
		kept          bool
	}{
		{"X-Other", "1", "", true},
		{"X-Codex-Turn-Metadata", `{"request_kind":"turn"}`, "", true},
		{"X-Codex-Turn-Metadata", `{"request_kind":"prewarm"}`, "probe", false},
		{"X-Codex-Turn-Metadata", `{"request_kind":"compaction"}`, "summary", true}, // stores the answer
		{"X-Codex-Turn-Metadata", `{"request_kind":"turn","thread_source":"subagent"}`, "subagent", false},
		{"X-Openai-Subagent", "collab_spawn", "subagent", false},
		{"X-Openai-Subagent", "review", "probe", false},
		{"X-Openai-Memgen-Request", "true", "probe", false},
		{"X-Claude-Code-Request-Class", "main", "", true},
		{"X-Claude-Code-Request-Class", "auxiliary", "title", false},
		{"X-Claude-Code-Request-Class", "compaction", "summary", true},
		{"X-Claude-Code-Request-Class", "subagent", "subagent", false},
		{"X-Claude-Code-Agent-Id", "a", "subagent", false},
		{"X-Interaction-Type", "conversation-background", "probe", false},
		{"X-Interaction-Type", "conversation-subagent", "subagent", false},
		{"X-Parent-Session-Id", "ses_parent", "subagent", false},
	}
	turns := 0
	for i, tc := range cases {
		_, h := w.exchange("/v1/responses", m{"model": "m", "input": fmt.Sprint("This is message number ", i, ".")},
			tc.header, tc.value, "X-Graphiti-Workspace", "acme/widgets") // without a project, a summary would not be stored
		if header := h.Get("X-Graphiti-Memory"); strings.HasSuffix(header, "reason="+tc.reason) != (tc.reason != "") {
			t.Errorf("%s %s: got %s, want the reason %q", tc.header, tc.value, header, tc.reason)
		}
		if tc.kept {
			turns++
		}
	}
	w.stop() // writes all turns to the spool
	w = start(t, dir, settings)
	waitUntil(t, "all turns", func() bool { return w.app.memory().queue().Pending == 0 })
	if n := w.app.memory().queue().Delivered; n != turns {
		t.Errorf("%d turns were kept, not %d", n, turns)
	}
	said := ""
	for _, g := range w.groups() {
		for _, e := range w.heldIn(g) {
			said += e.Text + "\n"
		}
	}
	for i, tc := range cases {
		if kept := strings.Contains(said, fmt.Sprint("message number ", i, ".")); kept != (tc.kept && tc.reason == "") {
			t.Errorf("%s %s: kept %v", tc.header, tc.value, kept)
		}
	}
}

// TestEncodedRequests checks that compressed requests are read, and forwarded without their
// encoding if a block is inserted, or unchanged otherwise.
func TestEncodedRequests(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"limits.inspect_bytes": "1MiB"})
	w.say(fact)
	w.delivered(1)
	gz := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(b)
		_ = z.Close()
		return out.Bytes()
	}
	zs := func(b []byte) []byte {
		z, err := zstd.NewWriter(nil)
		must(t, err)
		defer z.Close()
		return z.EncodeAll(b, nil)
	}
	for _, tc := range []struct {
		name, encoding string
		body           []byte
		header         string
		inserted       bool
	}{
		{"gzip", "gzip", gz(chatBody(question)), "recalled", true},
		{"zstd, as Codex sends it", "zstd", zs(chatBody(question + " ")), "recalled", true},
		{"nothing to insert", "gzip", gz(chatBody("zebra")), "empty", false},
		{"not what it says", "gzip", chatBody(question), "skipped", false},
		{"an encoding that nobody knows", "rot13", chatBody(question), "skipped", false},
		{"a small body that stands for a large one", "gzip", gz(chatBody(strings.Repeat("x", 4<<20))), "skipped", false},
	} {
		w.model.Forget()
		req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", bytes.NewReader(tc.body))
		req.Header.Set("Content-Encoding", tc.encoding)
		resp, err := w.client.Do(req)
		must(t, err)
		resp.Body.Close()
		header := resp.Header.Get("X-Graphiti-Memory")
		saw := w.model.Requests()[0]
		if !strings.HasPrefix(header, tc.header+";") {
			t.Errorf("%s: got %s, want %q at its beginning", tc.name, header, tc.header)
		}
		if tc.inserted {
			if saw.Headers.Get("Content-Encoding") != "" || !bytes.Contains(saw.Body, []byte("graphiti_memory")) || !json.Valid(saw.Body) {
				t.Errorf("%s: got %v %q, want plain JSON with a block", tc.name, saw.Headers, saw.Body)
			}
		} else if saw.Headers.Get("Content-Encoding") != tc.encoding || !bytes.Equal(saw.Body, tc.body) {
			t.Errorf("%s: it was changed", tc.name)
		}
	}
}

// TestResponsesOverWebSocket checks that the Responses API refuses a WebSocket, so that
// clients fall back to POST, unless the setting is "tunnel". Other WebSockets pass.
func TestResponsesOverWebSocket(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer up.Close()
	for _, tc := range []struct {
		setting, path string
		want          int
	}{
		{"refuse", "/v1/responses", http.StatusUpgradeRequired},
		{"refuse", "/v1/responses?x=1", http.StatusUpgradeRequired},
		{"refuse", "/v1/realtime?model=m", http.StatusTeapot},
		{"tunnel", "/v1/responses", http.StatusTeapot},
	} {
		w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL, "websocket": tc.setting})
		req, _ := http.NewRequest(http.MethodGet, "http://"+w.app.proxy.Addr().String()+tc.path, nil)
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			req.Header.Set(k, v)
		}
		resp, err := w.client.Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s, %s: got %s, want %d", tc.setting, tc.path, resp.Status, tc.want)
		}
		w.stop()
	}
}
