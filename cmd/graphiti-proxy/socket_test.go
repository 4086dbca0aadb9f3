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

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// socket is a client of the Responses API over WebSocket.
type socket struct {
	t    *testing.T
	conn net.Conn
}

func (w *world) socket() *socket {
	w.t.Helper()
	d := ws.Dialer{Header: ws.HandshakeHeaderHTTP(http.Header{"Authorization": {"Bearer sk-test"}}), Timeout: polltest.Patience}
	conn, _, _, err := d.Dial(context.Background(), "ws://"+w.app.proxy.Addr().String()+"/v1/responses")
	if err != nil {
		w.t.Fatal(err)
	}
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
	if err := wsutil.WriteClientText(s.conn, b); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) answer() (id, text, last string) {
	s.t.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(polltest.Patience))
	for {
		b, err := wsutil.ReadServerText(s.conn)
		if err != nil {
			s.t.Fatal(err)
		}
		var e struct {
			Type     string
			Delta    string
			Response struct{ ID string }
		}
		if err := json.Unmarshal(b, &e); err != nil {
			s.t.Fatal(err)
		}
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

// TestWebSocketFrames checks that a message in several frames gets one memory block, and
// that overlong messages and other events pass unchanged.
func TestWebSocketFrames(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"websocket": "intercept", "limits.inspect_bytes": "64KiB"})
	w.say("My cat is called Miso.")
	w.delivered(1)
	body, _ := json.Marshal(m{"type": "response.create", "model": "m", "input": []m{said("What is my cat called?")}})
	last := func() string {
		r := w.model.Requests()
		return string(r[len(r)-1].Body)
	}
	frame := func(s *socket, op ws.OpCode, fin bool, payload []byte) {
		f := ws.MaskFrame(ws.NewFrame(op, fin, append([]byte(nil), payload...)))
		if err := ws.WriteFrame(s.conn, f); err != nil {
			t.Fatal(err)
		}
	}
	s := w.socket()
	frame(s, ws.OpText, false, body[:10])
	frame(s, ws.OpPing, true, []byte("between"))
	frame(s, ws.OpContinuation, false, body[10:11])
	frame(s, ws.OpContinuation, true, body[11:])
	if _, text, _ := s.answer(); text != "You told me: “My cat is called Miso." || strings.Count(last(), "<graphiti_memory>") != 1 {
		t.Errorf("in three frames: %q, %s", text, last())
	}
	long, _ := json.Marshal(m{"type": "response.create", "model": "m", "input": []m{said("What is my cat called? " + strings.Repeat("x", 70<<10))}})
	for _, cut := range []int{0, 60 << 10} {
		s := w.socket()
		if cut > 0 {
			frame(s, ws.OpText, false, long[:cut])
			frame(s, ws.OpContinuation, true, long[cut:])
		} else {
			s.write(long)
		}
		if s.answer(); last() != string(long) {
			t.Errorf("a long message in frames of %d bytes arrived changed: %.100s", cut, last())
		}
		if _, text, _ := s.create(m{"input": []m{said("So what is my cat called?")}}); !strings.Contains(text, "Miso") {
			t.Errorf("after a long one: %q", text)
		}
	}
	s.write([]byte(`{"type":"response.steer","x":1}`))
	if s.answer(); last() != `{"type":"response.steer","x":1}` {
		t.Errorf("another event arrived as %s", last())
	}
}

// TestWebSocketLanes checks that conversations that share a connection do not mix.
func TestWebSocketLanes(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"websocket": "intercept"})
	w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		text := c.Messages[len(c.Messages)-1].Text // a memory block with the other lane may come first
		return proxytest.Reply{Text: "About " + text[strings.LastIndex(text, "\n")+1:]}
	})
	s := w.socket()
	for _, lane := range []string{"a", "b"} {
		b, _ := json.Marshal(m{"type": "response.create", "model": "m", "stream_id": lane, "input": []m{said("We speak of " + lane + ".")}})
		s.write(b)
	}
	s.answer()
	s.answer()
	w.delivered(2)
	for _, lane := range []string{"a", "b"} {
		found := false
		for _, h := range w.held() {
			found = found || strings.Contains(h, "About We speak of "+lane)
		}
		if !found {
			t.Errorf("the answer in lane %s was not kept: %q", lane, w.held())
		}
	}
}
