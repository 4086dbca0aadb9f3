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

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestStopIsBounded checks that Shutdown returns in time and closes all connections,
// whatever a peer does.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	flood := func(c net.Conn) {
		piece := strings.Repeat("x", 1<<16)
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}
	for name, tc := range map[string]struct {
		request string
		answer  func(c net.Conn)
	}{
		"an answer that nobody reads": {"GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
			flood(c)
		}},
		"a tunnel that nobody reads": {"GET /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			flood(c)
		}},
		"a stream that does not end": {"GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			_, _ = io.Copy(io.Discard, c)
		}},
		"a stream of events that does not end": {"GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n", func(c net.Conn) {
			_, _ = io.WriteString(c, eventsHead+"1\r\na\r\n")
			_, _ = io.Copy(io.Discard, c)
		}},
		"a stream of events that nobody reads": {"GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n", func(c net.Conn) {
			_, _ = io.WriteString(c, eventsHead+"fffffff\r\n")
			flood(c)
		}},
		"a body that does not end": {"POST /v1/x HTTP/1.1\r\nHost: p\r\nContent-Length: 999999\r\n\r\n" + strings.Repeat("x", 100<<10), func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
			_, _ = io.Copy(io.Discard, c)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEager(t, func(c net.Conn, _ *bufio.Reader) { tc.answer(c) })
			s, _ := start(t, w, func(o *Options) { o.Routes.Limits.UpstreamIdle = time.Hour; o.Routes.Limits.BodyTimeout = time.Hour })
			c := dial(t, s)
			_, _ = io.WriteString(c, tc.request)
			must(t, helptest.ErrorOf(http.ReadResponse(newReader(c), nil)))
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			began := time.Now()
			_ = s.Shutdown(ctx)
			if took := time.Since(began); took > 2*cutTime+2*time.Second {
				t.Errorf("took %s", took)
			}
			if n := s.clients.Count(); n > 0 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}

// newEager starts an upstream that calls answer after the head of each request.
func newEager(t testing.TB, answer func(c net.Conn, br *bufio.Reader)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { ln.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			br := newReader(c)
			for {
				if line, err := br.ReadString('\n'); err != nil || line == "\r\n" {
					break
				}
			}
			answer(c, br)
			c.Close()
		}
	}()
	return "http://" + ln.Addr().String()
}
