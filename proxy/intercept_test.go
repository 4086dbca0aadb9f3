package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

const (
	openSocket = "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nX-Graphiti-Session: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	opened     = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
)

// intercepting starts an upstream that handles WebSockets with serve and a proxy that reads
// them, and opens one WebSocket through the proxy.
func intercepting(t *testing.T, serve func(c net.Conn), change ...func(*Options)) (*Server, net.Conn, io.Reader) {
	t.Helper()
	w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, opened)
		serve(c)
		return false
	})
	change = append([]func(*Options){remembering(&inserting{}), func(o *Options) { o.Routes.WebSocket = WebSocketIntercept }}, change...)
	s, _ := start(t, w.url(), change...)
	c := dial(t, s)
	_, _ = io.WriteString(c, openSocket)
	br := newReader(c)
	if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v, want no error, Status 101", resp, err)
	}
	return s, c, br
}

// frameOf returns a frame as bytes. Its header declares length, which may differ from the
// length of the payload.
func frameOf(op ws.OpCode, fin, masked bool, length int64, payload string) []byte {
	h := ws.Header{OpCode: op, Fin: fin, Masked: masked, Length: length}
	var b bytes.Buffer
	_ = ws.WriteHeader(&b, h) // a bytes.Buffer returns no error
	b.WriteString(payload)
	return b.Bytes()
}

// TestFrameThatClaimsTheLargestLength checks that a message too long to read is forwarded,
// and that the sum of its frame lengths does not overflow.
func TestFrameThatClaimsTheLargestLength(t *testing.T) {
	for _, masked := range []bool{true, false} { // from the client, from the upstream
		sent := frameOf(ws.OpText, false, masked, 5, "hello")
		sent = append(sent, frameOf(ws.OpContinuation, true, masked, math.MaxInt64, strings.Repeat("x", 1000))...)
		got := make([]byte, len(sent))
		read := make(chan error, 1)
		if masked {
			_, c, _ := intercepting(t, func(c net.Conn) {
				_, err := io.ReadFull(c, got)
				read <- err
			})
			_, _ = c.Write(sent)
		} else {
			_, _, br := intercepting(t, func(c net.Conn) {
				_, _ = c.Write(sent)
				_, _ = io.Copy(io.Discard, c)
			})
			_, err := io.ReadFull(br, got)
			read <- err
		}
		if err := <-read; err != nil || !bytes.Equal(got, sent) {
			t.Errorf("masked %v: %q arrived (%v)", masked, got, err)
		}
	}
}

// TestMessageOfEmptyFrames checks that a message with more empty frames than may be
// buffered arrives unchanged.
func TestMessageOfEmptyFrames(t *testing.T) {
	sent := frameOf(ws.OpText, false, true, 5, "hello")
	for range 1000 {
		sent = append(sent, frameOf(ws.OpContinuation, false, true, 0, "")...)
	}
	got := make([]byte, len(sent))
	read := make(chan error, 1)
	_, c, _ := intercepting(t, func(c net.Conn) {
		_, err := io.ReadFull(c, got)
		read <- err
	}, func(o *Options) { o.Routes.Limits.InspectBytes = 1 << 10 })
	_, _ = c.Write(sent)
	if err := <-read; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%q arrived (%v)", got, err)
	}
}

// TestLanesAreBounded checks that the proxy closes the connection of a client that starts
// too many responses, and states the reason.
func TestLanesAreBounded(t *testing.T) {
	_, c, br := intercepting(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	go func() {
		for i := range maxLanes + 100 {
			body := fmt.Sprintf(`{"type":"response.create","model":"m","stream_id":"%d","input":[{"role":"user","content":"hello"}]}`, i)
			if ws.WriteFrame(c, ws.MaskFrame(ws.NewTextFrame([]byte(body)))) != nil {
				return
			}
		}
	}()
	h, err := ws.ReadHeader(br)
	if err != nil || h.OpCode != ws.OpClose {
		t.Fatalf("got %+v, %v, want no error, OpCode ws.OpClose", h, err)
	}
	why, err := io.ReadAll(br)
	if err != nil || int64(len(why)) != h.Length {
		t.Fatalf("got %q, %v, want no error, %d bytes", why, err, h.Length)
	}
	if code := binary.BigEndian.Uint16(why); code != 1008 || string(why[2:]) != errLanes.Error() {
		t.Errorf("got %d %q, want 1008 %q", code, why[2:], errLanes)
	}
}

// TestHeldOfAWebSocketIsGivenBack checks that every end of an exchange releases its share
// of the budget. An exchange that begins after the end of the WebSocket holds none.
func TestHeldOfAWebSocketIsGivenBack(t *testing.T) {
	all := budget.New(1000)
	x := &intercept{s: &Server{decider: idle()}, lanes: make(map[string]*exchange), ended: make(map[string]heldEnd)}
	begin := func(lane string) {
		ex := &exchange{reader: responses.Dialect{}.NewReader(""), memory: &Memory{}, share: all.Share(), seen: seen(t)}
		if !ex.share.Grow(10) {
			t.Fatal("there is no room")
		}
		x.begin(lane, ex)
	}
	begin("a")
	begin("b")
	begin("b") // replaces the previous exchange
	if n := all.Used(); n != 20 {
		t.Errorf("%d bytes are held by two", n)
	}
	x.Event([]byte(`{"type":"response.completed","stream_id":"a","response":{"id":"r","status":"completed"}}`))
	if n := all.Used(); n != 10 {
		t.Errorf("%d bytes are held by one", n)
	}
	x.End()
	begin("c")
	if n := all.Used(); n != 0 || len(x.lanes) > 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}

// TestUnreadableFramesPass checks that compressed frames arrive unchanged and are logged
// once.
func TestUnreadableFramesPass(t *testing.T) {
	compressed := func(payload string) []byte {
		b := frameOf(ws.OpText, true, false, int64(len(payload)), payload)
		b[0] |= 0x40
		return b
	}
	want := append(compressed("one"), compressed("two")...)
	var log lines
	_, c, br := intercepting(t, func(up net.Conn) {
		_, _ = ws.ReadHeader(up) // of the client's first frame
		_, _ = up.Write(want)
		_, _ = io.Copy(io.Discard, up)
	}, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	_, _ = c.Write(frameOf(ws.OpPing, true, true, 0, "\x00\x00\x00\x00"))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(br, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	_, _ = c.Write(frameOf(ws.OpClose, true, true, 0, "\x00\x00\x00\x00"))
	if n := strings.Count(log.String(), "pass without memory"); n != 1 {
		t.Errorf("it was said %d times: %s", n, log.String())
	}
}
