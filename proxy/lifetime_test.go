package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

var must = helptest.Must

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Both goroutines of fasthttp sleep until the end of their interval after a server
		// has stopped.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	)
}

func newReader(c net.Conn) *bufio.Reader { return bufio.NewReader(c) }

// waitFor polls, because the kernel does not signal the awaited changes.
var waitFor = helptest.Until

// newEarly starts an upstream that answers 413 after the head of a request, before its
// body.
func newEarly(t testing.TB) string {
	t.Helper()
	return newEager(t, func(c net.Conn, br *bufio.Reader) {
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, br)
	})
}

// TestClientThatLeavesEndsTheUpstreamRequest checks that the proxy cancels the upstream
// request of a client that disconnects, before the answer and during it.
func TestClientThatLeavesEndsTheUpstreamRequest(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before string // the upstream's bytes before it falls silent
	}{
		{"waiting for the answer", ""},
		{"in a silent body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
		{"in a silent stream", eventsHead + "3\r\nabc\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := make(chan struct{})
			left := make(chan time.Time, 1)
			w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
				_, _ = io.WriteString(c, tc.before)
				close(got)
				_, _ = io.Copy(io.Discard, c)
				left <- time.Now()
				return false
			})
			s, _ := start(t, w.url(), func(o *Options) {
				o.Routes.Limits.UpstreamResponse, o.Routes.Limits.UpstreamIdle = time.Hour, time.Hour
			})
			c := dial(t, s)
			_, _ = io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n{}")
			<-got
			c.Close()
			select {
			case <-left:
			case <-time.After(helptest.Patience):
				t.Fatal("the upstream request goes on without its client")
			}
			waitFor(t, "the call to end", func() bool { return s.clients.Count() == 0 })
		})
	}
}

func TestTooManyConnections(t *testing.T) {
	w := newStub(t, say(okAnswer))
	s, _ := start(t, w.url(), func(o *Options) { o.Routes.Limits.Connections = 2 })
	for range 2 {
		c := dial(t, s)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: p\r\n\r\n")
		must(t, helptest.ErrorOf(http.ReadResponse(newReader(c), nil)))
	}
	got, _ := talk(t, s, "GET / HTTP/1.1\r\nHost: p\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 503 ") {
		t.Errorf("answer %q", got)
	}
}

// TestShutdownLetsStreamsFinish checks that Shutdown waits for streams to finish, and cuts
// them off at its deadline.
func TestShutdownLetsStreamsFinish(t *testing.T) {
	for _, tc := range []struct {
		head    string
		patient bool
	}{
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false},
		{eventsHead, true},
		{eventsHead, false},
	} {
		patient := tc.patient
		finish := make(chan struct{})
		w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
			_, _ = io.WriteString(c, tc.head+"1\r\na\r\n")
			<-finish
			_, _ = io.WriteString(c, "1\r\nb\r\n0\r\n\r\n")
			return true
		})
		s, base := start(t, w.url())
		resp, err := client(t).Get(base + "/v1/x")
		must(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
		if !patient {
			ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- s.Shutdown(ctx) }()
		if patient {
			waitFor(t, "the listener to close", func() bool {
				c, err := net.Dial("tcp", s.Addr().String())
				if err == nil {
					c.Close()
				}
				return err != nil
			})
			close(finish)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if patient && (err != nil || string(body) != "ab") {
			t.Errorf("body %q, error %v", body, err)
		}
		if !patient && err == nil {
			t.Errorf("the stream outlived its grace: %q", body)
		}
		if err := <-stopped; (err == nil) != patient {
			t.Errorf("patient %v: Shutdown: %v", patient, err)
		}
		if !patient {
			close(finish)
		}
		cancel()
	}
}

func TestOpenTunnelDoesNotOutliveShutdown(t *testing.T) {
	t.Parallel()
	w := newStub(t, func(_ *stub, c net.Conn, request string) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(c, c)
		return false
	})
	s, _ := start(t, w.url())
	c := dial(t, s)
	_, _ = io.WriteString(c, "GET /v1/realtime HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := newReader(c)
	must(t, helptest.ErrorOf(http.ReadResponse(r, nil)))
	_, _ = io.WriteString(c, "x")
	must(t, helptest.ErrorOf(r.ReadByte()))
	ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
	defer cancel()
	must(t, s.Shutdown(ctx))
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the client's side: %v", err)
	}
}

// TestAnswerEndsABodyThatIsNotRead checks that the client gets an early answer even if the
// upstream reads no more of the body.
func TestAnswerEndsABodyThatIsNotRead(t *testing.T) {
	t.Parallel()
	full, answered := make(chan struct{}), make(chan struct{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		<-full
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		<-answered
	}()
	defer close(answered)
	s, _ := start(t, "http://"+ln.Addr().String())
	c := dial(t, s)
	_, _ = io.WriteString(c, "POST /v1/files HTTP/1.1\r\nHost: p\r\nContent-Length: 1000000000\r\n\r\n")
	for n, piece := 1, make([]byte, 64<<10); n > 0; { // until all socket buffers are full
		_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		n, _ = c.Write(piece)
	}
	close(full)
	_ = c.SetReadDeadline(time.Now().Add(helptest.Patience))
	got, err := io.ReadAll(c)
	if !strings.HasPrefix(string(got), "HTTP/1.1 413 ") || wire.IsTimeout(err) {
		t.Errorf("%q, then %v", got, err)
	}
}
