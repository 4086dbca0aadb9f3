package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
)

// testLimits returns limits that a test can reach.
func testLimits() Limits {
	return Limits{
		InspectBytes:     1 << 20,
		HeaderBytes:      64 << 10,
		HeaderTimeout:    time.Minute,
		IdleTimeout:      time.Minute,
		Connections:      256,
		UpstreamConnect:  time.Minute,
		UpstreamResponse: 30 * time.Second,
		UpstreamIdle:     30 * time.Second,
		BodyTimeout:      30 * time.Second,
	}
}

// upstreams returns to as the base address of every API.
func upstreams(to string) map[string]string {
	all := make(map[string]string)
	for _, name := range registry.Upstreams {
		all[name] = to
	}
	return all
}

// start starts a proxy that forwards to upstream until the test ends, and returns it with
// its base address.
func start(t testing.TB, upstream string, change ...func(*Options)) (*Server, string) {
	t.Helper()
	s := made(t, upstream, change...)
	return s, serving(t, s)
}

// made returns a proxy that does not serve yet.
func made(t testing.TB, upstream string, change ...func(*Options)) *Server {
	t.Helper()
	o := Options{
		Listen: "127.0.0.1:0",
		Routes: Routes{Upstreams: upstreams(upstream), Limits: testLimits()},
		Meter:  noop.Meter{},
		Log:    slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	o.Memory = *o.Memory.withDefaults()
	s, err := New(o)
	must(t, err)
	return s
}

// serving runs a proxy until the test ends, and returns its base address.
func serving(t testing.TB, s *Server) string {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr().String()
}

// seen returns a report of a request.
func seen(t *testing.T) observe.Request {
	t.Helper()
	o, err := observe.New(noop.Meter{}, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	return o.Begin(&fasthttp.RequestHeader{}, "", time.Now())
}

// stub is an upstream that reads and writes raw bytes.
type stub struct {
	t    testing.TB
	ln   net.Listener
	wg   sync.WaitGroup
	mu   sync.Mutex // guards got and conns
	got  []string   // requests, head and body, unchanged
	open []net.Conn

	closed atomic.Int64
}

// newStub starts a stub that calls answer for each request. answer reports whether the
// connection stays open.
func newStub(t testing.TB, answer func(w *stub, c net.Conn, request string) bool) *stub {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &stub{t: t, ln: ln}
	w.wg.Add(1)
	go w.accept(answer)
	t.Cleanup(func() {
		ln.Close()
		w.mu.Lock()
		for _, c := range w.open {
			c.Close()
		}
		w.mu.Unlock()
		w.wg.Wait()
	})
	return w
}

func (w *stub) url() string { return "http://" + w.ln.Addr().String() }

func (w *stub) accept(answer func(*stub, net.Conn, string) bool) {
	defer w.wg.Done()
	for {
		c, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.open = append(w.open, c)
		w.mu.Unlock()
		w.wg.Add(1)
		go func() {
			defer w.wg.Done()
			defer func() {
				c.Close()
				w.closed.Add(1)
			}()
			br := bufio.NewReader(c)
			for {
				request, err := readRequest(br)
				if err != nil {
					return
				}
				w.mu.Lock()
				w.got = append(w.got, request)
				w.mu.Unlock()
				if !answer(w, c, request) {
					return
				}
			}
		}()
	}
}

func (w *stub) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.got...)
}

// connections returns the number of connections that the stub has accepted.
func (w *stub) connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

// readRequest returns the bytes of the next request.
func readRequest(br *bufio.Reader) (string, error) {
	var b bytes.Buffer
	length, chunked := 0, false
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return "", err
		}
		b.WriteString(line)
		lower := strings.ToLower(strings.TrimSpace(line))
		if v, ok := strings.CutPrefix(lower, "content-length:"); ok {
			fmt.Sscan(v, &length)
		}
		if strings.HasPrefix(lower, "transfer-encoding:") {
			chunked = true
		}
		if lower == "" {
			break
		}
	}
	if chunked {
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return "", err
			}
			b.WriteString(line)
			var n int
			fmt.Sscanf(line, "%x", &n)
			if n == 0 {
				for line != "\r\n" {
					if line, err = br.ReadString('\n'); err != nil {
						return "", err
					}
					b.WriteString(line)
				}
				return b.String(), nil
			}
			if _, err := io.CopyN(&b, br, int64(n)+2); err != nil {
				return "", err
			}
		}
	}
	if _, err := io.CopyN(&b, br, int64(length)); err != nil {
		return "", err
	}
	return b.String(), nil
}

// say returns a handler that writes a fixed answer.
func say(answer string) func(*stub, net.Conn, string) bool {
	return func(_ *stub, c net.Conn, _ string) bool {
		_, err := io.WriteString(c, answer)
		return err == nil
	}
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// dial opens a client's connection to the proxy.
func dial(t testing.TB, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(helptest.Patience)))
	return c
}

// talk writes a request and reads until the proxy closes the connection.
func talk(t testing.TB, s *Server, request string) (string, error) {
	t.Helper()
	c := dial(t, s)
	must(t, helptest.ErrorOf(io.WriteString(c, request)))
	b, err := io.ReadAll(c)
	return string(b), err
}

// client returns an HTTP client without a proxy or decompression.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: helptest.Patience}
}

// BenchmarkRelayStream relays a stream of 1,000 chunks that the upstream writes one by one.
func BenchmarkRelayStream(b *testing.B) {
	event := []byte("d2\r\ndata: " + strings.Repeat("x", 0xd2-8) + "\n\n\r\n")
	w := newStub(b, func(_ *stub, c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 1000 {
			_, _ = c.Write(event)
		}
		_, err := io.WriteString(c, "0\r\n\r\n")
		return err == nil
	})
	s, _ := start(b, w.url())
	c, err := net.Dial("tcp", s.Addr().String())
	must(b, err)
	defer c.Close()
	br := bufio.NewReaderSize(c, 64<<10)
	b.SetBytes(int64(1000 * len(event)))
	b.ReportAllocs()
	for b.Loop() {
		must(b, helptest.ErrorOf(io.WriteString(c, "GET / HTTP/1.1\r\nHost: p\r\n\r\n")))
		for line := []byte(nil); string(line) != "0\r\n"; {
			if line, err = br.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		must(b, helptest.ErrorOf(br.ReadSlice('\n')))
	}
}
