package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// socket is a client of the Responses API over WebSocket.
type socket struct {
	t    *testing.T
	conn net.Conn
}

func (w *world) socket() *socket {
	w.t.Helper()
	d := ws.Dialer{Header: ws.HandshakeHeaderHTTP(http.Header{"Authorization": {"Bearer sk-test"}}), Timeout: helptest.Patience}
	conn, _, _, err := d.Dial(context.Background(), "ws://"+w.app.proxy.Addr().String()+"/v1/responses")
	must(w.t, err)
	w.t.Cleanup(func() { conn.Close() })
	return &socket{w.t, conn}
}

// create sends a request, reads its answer to the end, and returns the id and the text of
// the answer and the type of its last event.
func (s *socket) create(fields m) (id, text, last string) {
	s.t.Helper()
	fields["type"], fields["model"], fields["store"] = "response.create", "m", false
	b, _ := json.Marshal(fields)
	s.write(b)
	return s.answer()
}

func (s *socket) write(b []byte) {
	s.t.Helper()
	must(s.t, wsutil.WriteClientText(s.conn, b))
}

func (s *socket) answer() (id, text, last string) {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(helptest.Patience))
	for {
		b, err := wsutil.ReadServerText(s.conn)
		must(s.t, err)
		var e struct {
			Type     string
			Delta    string
			Response struct{ ID string }
		}
		must(s.t, json.Unmarshal(b, &e))
		switch e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.completed", "error":
			return e.Response.ID, text, e.Type
		}
	}
}

func said(text string) m { return m{"role": "user", "content": text} }

// TestWebSocketHasMemory checks that requests over a WebSocket get memory like posted ones,
// and are stored once. A conversation sent in increments must keep its blocks when a client
// sends it whole over another connection.
func TestWebSocketHasMemory(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"websocket": "intercept"})
	one := w.socket()
	one.create(m{"generate": false, "input": []m{{"role": "developer", "content": "Be brief."}}})
	if _, text, _ := one.create(m{"input": []m{said("My cat is called Miso.")}}); text != "Understood, I will keep that in mind." {
		t.Fatalf("got %q, want \"Understood, I will keep that in mind.\"", text)
	}
	w.delivered(1)
	w.model.Forget()

	two := w.socket()
	question := said(`What is my cat called? [[tool f {"q":"cat"}]]`)
	tools := []m{{"type": "function", "name": "f", "parameters": m{"type": "object", "properties": m{"q": m{"enum": []string{"cat"}}}}}}
	first, _, _ := two.create(m{"input": []m{question}, "tools": tools})
	second, text, _ := two.create(m{"input": []m{{"type": "function_call_output", "call_id": "call_1", "output": "42"}}, "previous_response_id": first, "tools": tools})
	if text != "You told me: “My cat is called Miso." {
		t.Errorf("after the tool: %q", text)
	}
	third, text3, _ := two.create(m{"input": []m{said("And where does it live?")}, "previous_response_id": second})
	w.delivered(3)
	bodies := w.model.Requests()
	if _, _, last := two.create(m{"input": []m{said("Thanks.")}, "previous_response_id": "resp_999"}); last != "error" {
		t.Errorf("an unknown answer: %s", last)
	}

	// Send the whole conversation over a connection of its own.
	w.model.Forget()
	history := []m{question,
		{"type": "function_call", "call_id": "call_1", "name": "f", "arguments": `{"q":"cat"}`},
		{"type": "function_call_output", "call_id": "call_1", "output": "42"},
		{"role": "assistant", "content": []m{{"type": "output_text", "text": text}}},
		said("And where does it live?"),
		{"role": "assistant", "content": []m{{"type": "output_text", "text": text3}}},
		said("Good night.")}
	w.socket().create(m{"input": history, "tools": tools})
	resumed := string(w.model.Requests()[1].Body) // the first request opened the connection
	for i, at := range map[int]int{1: 0, 3: 1} {
		if block := nthBlock(string(bodies[i].Body), 0); block != nthBlock(resumed, at) && block != "" {
			t.Errorf("the block of request %d has become\n%s\nfrom\n%s", i, nthBlock(resumed, at), block)
		}
	}
	if nthBlock(resumed, 0) == "" || third == "" {
		t.Errorf("no block in %s", resumed)
	}
	w.delivered(4)
	if held := w.held(); len(held) != 8 {
		t.Errorf("%d messages were kept, want 8: %q", len(held), held)
	}
}

func nthBlock(body string, n int) string {
	parts := strings.Split(body, "<graphiti_memory>")
	if len(parts) <= n+1 {
		return ""
	}
	block, _, _ := strings.Cut(parts[n+1], "</graphiti_memory>")
	return block
}
