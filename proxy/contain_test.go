package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gobwas/ws"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// secret stands for what somebody said. A bug's words may hold it, the log may
// not.
const secret = "Miso is a cat"

// bug panics.
func bug() { panic(errors.New(secret)) }

// wantBug checks that a log tells once where the bug was.
func wantBug(t *testing.T, log *lines, where string) {
	t.Helper()
	got := log.String()
	if strings.Count(got, "a bug was contained") != 1 || !strings.Contains(got, `at="proxy.`+where) || strings.Contains(got, secret) {
		t.Errorf("log: %s", got)
	}
}

// server is one that is not started, with its log.
func server() (*Server, *lines) {
	log := &lines{}
	s := &Server{log: slog.New(slog.NewTextHandler(log, nil))}
	s.ways.Store(&ways{limits: testLimits()})
	s.settings.Store(&Memory{})
	return s, log
}

// pair is a connection, and its other end.
func pair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// TestBugInATunnel ends it, on both sides.
func TestBugInATunnel(t *testing.T) {
	for _, down := range []bool{true, false} {
		s, log := server()
		client, clients := pair(t)
		up, ups := pair(t)
		copied := func(from net.Conn) func() { return func() { _, _ = io.Copy(io.Discard, from) } }
		if down {
			s.pipe(&upstreamConn{Conn: up}, &clientConn{Conn: client}, bug, copied(client))
		} else {
			s.pipe(&upstreamConn{Conn: up}, &clientConn{Conn: client}, copied(up), bug)
		}
		for _, c := range []net.Conn{clients, ups} {
			if _, err := c.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // a bare one
				t.Errorf("down %v: a side goes on: %v", down, err)
			}
		}
		wantBug(t, log, "bug:")
	}
}

// broken is a reader that has a bug.
type broken struct{}

func (broken) Read([]byte) (int, error) { bug(); return 0, nil }
func (broken) Event(_, _ []byte)        { bug() }
func (broken) Body([]byte)              { bug() }
func (broken) Answer() dialect.Answer   { return dialect.Answer{} }

// TestBugInABody ends what it belongs to.
func TestBugInABody(t *testing.T) {
	s, log := server()
	client, _ := pair(t)
	up, ups := pair(t)
	c := &call{ctx: &fasthttp.RequestCtx{}, client: &clientConn{Conn: client}, rest: broken{}, out: []byte("POST / HTTP/1.1\r\n\r\n")}
	conn := &upstreamConn{Conn: up}
	c.attach(conn)
	c.pump = startPump(s, c, conn)
	if _, err := io.ReadAll(ups); err != nil {
		t.Error(err)
	}
	if <-c.pump.done; c.pump.join(c) || !c.abandoned() {
		t.Errorf("whole, or abandoned: %v", c.abandoned())
	}
	wantBug(t, log, "bug:")
}

// turning is a Planner of which each request is a turn that is to be kept.
type turning struct{ inserting }

func (p *turning) Plan(*dialect.Conversation, []dialect.Fingerprint, graphiti.Who, bool, inject.Mode) inject.Plan {
	return inject.Plan{Turn: "turn", Write: []graphiti.Target{{Scope: graphiti.ScopeUser, Group: "g"}}}
}

// TestBugOfMemoryInAWebSocket costs the connection its memory, and nothing of
// what is said over it.
func TestBugOfMemoryInAWebSocket(t *testing.T) {
	message := []byte(`{"type":"response.create","model":"m","input":[{"role":"user","content":"hello"}]}`)
	t.Run("in a request", func(t *testing.T) {
		log := &lines{}
		_, c, br := intercepting(t, func(c net.Conn) { _, _ = io.Copy(c, c) }, func(o *Options) {
			o.Memory.Planner, o.Memory.Kept = &turning{}, func(string, []graphiti.Target) bool { bug(); return false }
			o.Log = slog.New(slog.NewTextHandler(log, nil))
		})
		for range 3 {
			frame := frameOf(ws.OpText, true, true, int64(len(message)), string(message))
			_, _ = c.Write(frame)
			got := make([]byte, len(frame)) // the upstream sends it back
			if _, err := io.ReadFull(br, got); err != nil || string(got) != string(frame) {
				t.Fatalf("%q, %v", got, err)
			}
		}
		wantBug(t, log, "bug:")
	})
	t.Run("in an answer", func(t *testing.T) {
		s, log := server()
		x := &intercept{s: s, lanes: map[string]*exchange{"": {reader: broken{}}}}
		client, clients := pair(t)
		up, ups := pair(t)
		ended := make(chan error, 1)
		go func() { ended <- x.fromUpstream(client, up) }()
		event := `{"type":"response.completed"}`
		frame := frameOf(ws.OpText, true, false, int64(len(event)), event)
		for range 3 {
			got := make([]byte, len(frame))
			_, _ = ups.Write(frame)
			if _, err := io.ReadFull(clients, got); err != nil || string(got) != string(frame) {
				t.Fatalf("%q, %v", got, err)
			}
		}
		ups.Close()
		<-ended
		wantBug(t, log, "bug:")
	})
}

// unwell is a log that has a bug, which shows once.
type unwell struct {
	slog.Handler
	was *atomic.Bool
}

func (u unwell) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "an answer is cut off" && !u.was.Swap(true) {
		bug()
	}
	return u.Handler.Handle(ctx, r)
}

// TestBugInARequest ends its connection, and no other.
func TestBugInARequest(t *testing.T) {
	w := newWire(t, func(_ *wire, c net.Conn, request string) bool {
		if strings.HasPrefix(request, "GET /cut ") {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			return false
		}
		return say(okAnswer)(nil, c, request)
	})
	log := &lines{}
	s, base := start(t, w.url(), func(o *Options) {
		o.Log = slog.New(unwell{slog.NewTextHandler(log, nil), new(atomic.Bool)})
	})
	other := dial(t, s)
	if got, err := talk(t, s, "GET /cut HTTP/1.1\r\nHost: p\r\n\r\n"); err == nil {
		t.Errorf("the connection ended as if the answer were whole: %q", got)
	}
	_, _ = io.WriteString(other, "GET / HTTP/1.1\r\nHost: p\r\n\r\n")
	if resp, err := http.ReadResponse(newReader(other), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("another connection: %v, %v", resp, err)
	}
	post(t, client(t), base+"/v1/x", "{}", http.StatusOK)
	wantBug(t, log, "bug:")
	waitFor(t, "the calls to end", func() bool {
		s.hangups.mu.Lock()
		defer s.hangups.mu.Unlock()
		return len(s.hangups.calls) == 0
	})
}
