package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// failing is a listener that returns errors before it accepts.
type failing struct {
	net.Listener
	mu   sync.Mutex // guards errs
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	f.mu.Lock()
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		f.mu.Unlock()
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
	}
	f.mu.Unlock()
	return f.Listener.Accept()
}

// TestAcceptSurvivesTemporaryError checks that a temporary error of Accept does not end the server, as it
// would with fasthttp alone.
func TestAcceptSurvivesTemporaryError(t *testing.T) {
	errs := []error{
		os.NewSyscallError("accept4", syscall.EMFILE), os.NewSyscallError("accept4", syscall.ENFILE),
		os.NewSyscallError("accept4", syscall.ENOBUFS), os.NewSyscallError("accept4", syscall.ECONNABORTED), os.NewSyscallError("accept4", syscall.EPERM),
	}
	w := newStub(t, say(okAnswer))
	var log lines
	o := Options{Listen: "127.0.0.1:0", Routes: Routes{Upstreams: upstreams(w.url()), Limits: testLimits()}, Meter: noop.Meter{}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	s, err := New(o)
	must(t, err)
	s.listener = &failing{Listener: s.listener, errs: errs}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	if got, _ := talk(t, s, "GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("answer %q", got)
	}
	must(t, s.Shutdown(t.Context()))
	must(t, <-served)
	if !strings.Contains(log.String(), "LimitNOFILE") {
		t.Errorf("the log does not say what to do: %s", log.String())
	}
}

// TestPartOfOneAddress checks that an address cannot exceed its share of connections, that
// other addresses are served, and that ended connections do not count, however they ended.
func TestPartOfOneAddress(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := newStub(t, func(_ *stub, c net.Conn, request string) bool {
		switch {
		case strings.Contains(request, "Upgrade: websocket"):
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
			return false
		case strings.Contains(request, "/hangs"):
			<-hold
		}
		_, err := io.WriteString(c, okAnswer)
		return err == nil
	})
	t.Cleanup(func() { close(hold) })
	s, _ := start(t, w.url(), func(o *Options) { o.Routes.Limits.PerAddress = 3 })
	from := func(ip string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		c, err := d.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Skipf("this machine has no %s: %v", ip, err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(helptest.Patience))
		return c
	}
	ask := func(c net.Conn, request string) int {
		_, _ = io.WriteString(c, request)
		resp, err := http.ReadResponse(newReader(c), nil)
		must(t, err)
		return resp.StatusCode
	}
	const get = "GET / HTTP/1.1\r\nHost: p\r\n\r\n"
	for range 5 { // closed connections do not count
		idle, tunnel, hangs := from("127.0.0.1"), from("127.0.0.1"), from("127.0.0.1")
		if got := ask(idle, get); got != http.StatusOK {
			t.Fatalf("got %v, want 200", got)
		}
		if got := ask(tunnel, "GET /v1/realtime HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); got != http.StatusSwitchingProtocols {
			t.Fatalf("got %v, want 101", got)
		}
		_, _ = io.WriteString(hangs, "GET /hangs HTTP/1.1\r\nHost: p\r\n\r\n")
		waitFor(t, "three connections", func() bool { return s.clients.Count() == 3 })
		if got := ask(from("127.0.0.1"), get); got != http.StatusServiceUnavailable {
			t.Errorf("a fourth connection of one address: %d", got)
		}
		other := from("127.0.0.2")
		if got := ask(other, get); got != http.StatusOK {
			t.Errorf("another address: %d", got)
		}
		for _, c := range []net.Conn{idle, tunnel, hangs, other} {
			c.Close()
		}
		waitFor(t, "all to leave", func() bool { return s.clients.Count() == 0 })
	}
}

// TestTooManyOverTLS checks that surplus connections that never start a TLS handshake do
// not block new ones.
func TestTooManyOverTLS(t *testing.T) {
	w := newStub(t, say(okAnswer))
	s, _ := start(t, w.url(), func(o *Options) {
		o.Routes.Limits.Connections = 1
		o.ServerTLS = &tls.Config{MinVersion: tls.VersionTLS12}
	})
	first := dial(t, s)
	waitFor(t, "the first", func() bool { return s.clients.Count() == 1 })
	for range 3 {
		c := dial(t, s) // starts no handshake
		if b, err := io.ReadAll(c); err == nil && len(b) > 0 {
			t.Errorf("got %q, want no answer", b)
		}
	}
	first.Close()
	waitFor(t, "the first to leave", func() bool { return s.clients.Count() == 0 })
	dial(t, s)
	waitFor(t, "another", func() bool { return s.clients.Count() == 1 })
}

// TestSlowBodyArrives checks that a slow body arrives whatever its size, because the timeout
// applies to each read and the header has its own.
func TestSlowBodyArrives(t *testing.T) {
	t.Parallel()
	w := newStub(t, say(okAnswer))
	// A tick takes a tenth of the timeout, because it may be late.
	s, _ := start(t, w.url(), func(o *Options) {
		o.Routes.Limits.HeaderTimeout, o.Routes.Limits.BodyTimeout = 2*time.Second, 2*time.Second
	})
	for _, piece := range []string{"x", strings.Repeat("x", 1000)} {
		t.Run(fmt.Sprintf("%d bytes", len(piece)), func(t *testing.T) {
			t.Parallel()
			c := dial(t, s)
			_, _ = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", 12*len(piece))
			for range 12 {
				<-time.After(200 * time.Millisecond)
				_, _ = io.WriteString(c, piece)
			}
			if got, _ := io.ReadAll(c); !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
				t.Errorf("answer %q", got)
			}
		})
	}
}

// TestSilentBodyIsEnded checks that a stalled body ends with a 408, even if it is relayed
// as a stream.
func TestSilentBodyIsEnded(t *testing.T) {
	t.Parallel()
	w := newStub(t, say(okAnswer))
	s, _ := start(t, w.url(), func(o *Options) { o.Routes.Limits.BodyTimeout = 200 * time.Millisecond })
	big := strings.Repeat("x", 100<<10)
	for name, request := range map[string]string{
		"nothing of a small one": "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: 20\r\n\r\n",
		"small":                  "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: 20\r\n\r\n{",
		"inspected":              "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nContent-Length: 200000\r\n\r\n" + big,
		"in chunks":              "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"relayed":                "POST /v1/files HTTP/1.1\r\nHost: p\r\nContent-Length: 200000\r\n\r\n" + big,
		"relayed in chunks":      "POST /v1/files HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n19000\r\n" + big + "\r\n5\r\nhel",
		"an upgrade's":           "POST /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 200000\r\n\r\n" + big,
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := talk(t, s, request)
			if !strings.HasPrefix(got, "HTTP/1.1 408 ") {
				t.Errorf("answer %q", got)
			}
		})
	}
	// The next request has the timeout of an idle connection.
	t.Run("kept connection", func(t *testing.T) {
		c := dial(t, s)
		br := newReader(c)
		for _, wait := range []time.Duration{0, 400 * time.Millisecond} {
			<-time.After(wait)
			_, _ = io.WriteString(c, "POST /v1/x HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n{}")
			resp, err := http.ReadResponse(br, nil)
			must(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	})
}
