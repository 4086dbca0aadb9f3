package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// eventsHead begins a stream of events, which continues after its handler has returned.
const eventsHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

const (
	oneEvent = "b\r\ndata: one\n\n\r\n"
	twoEvent = "b\r\ndata: two\n\n\r\n"
	lastPart = "0\r\n\r\n"
)

// newEvents starts an upstream that answers with a stream of two events. It writes the
// second one after a receive from second.
func newEvents(t testing.TB, second <-chan struct{}) *stub {
	return newStub(t, func(_ *stub, c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, eventsHead+oneEvent)
		<-second
		_, err := io.WriteString(c, twoEvent+lastPart)
		return err == nil
	})
}

// TestStreamThatIsCut checks that the client of a stream that is cut off gets an error.
func TestStreamThatIsCut(t *testing.T) {
	for _, tail := range []string{"", "b\r\ndata: t"} {
		cut := make(chan struct{})
		w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
			_, _ = io.WriteString(c, eventsHead+oneEvent)
			<-cut
			_, _ = io.WriteString(c, tail)
			return false
		})
		_, base := start(t, w.url())
		resp, err := client(t).Get(base + "/v1/x")
		must(t, err)
		close(cut)
		if body, err := io.ReadAll(resp.Body); err == nil || !strings.HasPrefix(string(body), "data: one\n\n") {
			t.Errorf("got %q, %v, want an error, \"data: one\\n\\n\" at its beginning", body, err)
		}
		resp.Body.Close()
	}
}

// TestIdleConnectionAfterAStream checks that a connection after a stream has the idle
// timeout, not that of a head, and is closed without an answer. A slow head is answered
// 408.
func TestIdleConnectionAfterAStream(t *testing.T) {
	for _, tc := range []struct {
		name         string
		head, idle   time.Duration
		wait         time.Duration
		then, answer string
	}{
		{"nothing comes", time.Minute, 100 * time.Millisecond, 0, "", ""},
		{"a slow head", 100 * time.Millisecond, time.Minute, 0, "GET / HTTP/1.1\r\nHost: p\r\nX-Slow: ", "HTTP/1.1 408 "},
		{"another request", time.Second, time.Minute, 1500 * time.Millisecond, "GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			second := make(chan struct{}, 2)
			w := newEvents(t, second)
			s, _ := start(t, w.url(), func(o *Options) { o.Routes.Limits.HeaderTimeout, o.Routes.Limits.IdleTimeout = tc.head, tc.idle })
			c := dial(t, s)
			_, _ = io.WriteString(c, "GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n")
			for _, n := range []int{len(eventsHead + oneEvent), len(twoEvent + lastPart)} {
				must(t, helptest.ErrorOf(io.ReadFull(c, make([]byte, n))))
				second <- struct{}{}
			}
			<-time.After(tc.wait)
			_, _ = io.WriteString(c, tc.then)
			got, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(got), tc.answer) || tc.answer == "" && len(got) > 0 {
				t.Errorf("got %q, %v, want no error, %q at its beginning", got, err, tc.answer)
			}
		})
	}
}
