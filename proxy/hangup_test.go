package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// lines is a log buffer that can be read during writes.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// counter returns the value of a counter.
func counter(t testing.TB, reader sdkmetric.Reader, name string) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	must(t, reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, p := range sum.DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n
}

// TestAnswerThatHasNoEnd checks that an answer is counted as abandoned if the client
// leaves, without a warning, and that a warning is logged if the upstream breaks off.
func TestAnswerThatHasNoEnd(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tc := range []struct {
		name    string
		answer  func(c net.Conn)
		stays   bool // the client reads to the end
		counted int64
	}{
		{"client leaves a stream that is silent", func(c net.Conn) {
			_, _ = io.WriteString(c, head+"1\r\na\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, false, 1},
		{"client leaves a stream that goes on", func(c net.Conn) {
			_, err := io.WriteString(c, head)
			for err == nil {
				_, err = io.WriteString(c, "1\r\na\r\n")
			}
		}, false, 1},
		{"upstream breaks off", func(c net.Conn) { _, _ = io.WriteString(c, head+"1\r\na\r\n") }, true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ended := make(chan struct{})
			w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
				tc.answer(c)
				close(ended)
				return false
			})
			var log lines
			reader := sdkmetric.NewManualReader()
			s, _ := start(t, w.url(), func(o *Options) {
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				o.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
			})
			c := dial(t, s)
			_, _ = io.WriteString(c, "GET /v1/x HTTP/1.1\r\nHost: p\r\n\r\n")
			resp, err := http.ReadResponse(newReader(c), nil)
			must(t, err)
			if tc.stays {
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			c.Close()
			<-ended
			waitFor(t, "the call to end", func() bool { return s.clients.Count() == 0 })
			if n := counter(t, reader, "graphiti_proxy_abandoned_requests"); n != tc.counted {
				t.Errorf("%d requests were abandoned, want %d", n, tc.counted)
			}
			if told := strings.Contains(log.String(), "an answer is cut off"); told != tc.stays {
				t.Errorf("log: %q", log.String())
			}
		})
	}
}
