package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
)

// span is a span that a collector received.
type span struct {
	trace, id, parent, name, kind, status string
	attrs, service                        map[string]any
}

// otlp is a receiver of OTLP over HTTP, built on the collector's own library.
type otlp struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []span
	metrics map[string]bool
	raw     []byte
}

func collect(t *testing.T) *otlp {
	t.Helper()
	c := &otlp{metrics: make(map[string]bool)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender has disconnected
		}
		if err := c.take(r.URL.Path, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			t.Error(err)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *otlp) take(path string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	if path == "/v1/metrics" {
		req := pmetricotlp.NewExportRequest()
		if err := req.UnmarshalProto(body); err != nil {
			return err
		}
		for _, rm := range req.Metrics().ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					c.metrics[m.Name()] = true
				}
			}
		}
		return nil
	}
	req := ptraceotlp.NewExportRequest()
	if err := req.UnmarshalProto(body); err != nil {
		return err
	}
	for _, rs := range req.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				c.spans = append(c.spans, span{
					s.TraceID().String(), s.SpanID().String(), s.ParentSpanID().String(), s.Name(), s.Kind().String(), s.Status().Code().String(),
					s.Attributes().AsRaw(), rs.Resource().Attributes().AsRaw(),
				})
				if s.Status().Code() == ptrace.StatusCodeError && strings.Contains(s.Status().Message(), "Foxglove") {
					c.raw = append(c.raw, s.Status().Message()...)
				}
			}
		}
	}
	return nil
}

// named returns the spans of a trace that have a name.
func (c *otlp) named(trace, name string) (list []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.trace == trace && s.name == name {
			list = append(list, s)
		}
	}
	return list
}

// TestTraceOfARequest checks that a collector receives a span of the request as a child of
// the client's span, with a child for each recall, for the upstream and for each delivery
// of the turn, and that the upstream receives the trace context. No export contains text of
// the conversation, the key or the person's name.
func TestTraceOfARequest(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	collector := collect(t)
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{
		"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "otel.endpoint": collector.URL,
	})
	const parent, clientSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	ask := func(text string) http.Header {
		t.Helper()
		body, _ := json.Marshal(map[string]any{"model": "gpt-5", "messages": []map[string]string{{"role": "user", "content": text}}})
		req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", strings.NewReader(string(body)))
		req.Header.Set("Authorization", "Bearer sk-secretsecretsecret")
		req.Header.Set("Traceparent", "00-"+parent+"-"+clientSpan+"-01")
		req.Header.Set("Tracestate", "vendor=1")
		resp, err := w.client.Do(req)
		must(t, err)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Header
	}
	h := ask("The heliport is called Foxglove.")
	waitUntil(t, "the delivery's span", func() bool { return len(collector.named(parent, "deliver")) == 1 })
	waitUntil(t, "the upstream's span", func() bool { return len(collector.named(parent, "chat gpt-5")) == 1 })
	waitUntil(t, "the server's span", func() bool { return len(collector.named(parent, "POST /chat/completions")) == 1 })
	root := collector.named(parent, "POST /chat/completions")[0]
	if root.parent != clientSpan || root.kind != "Server" || root.attrs["graphiti_proxy.request_id"] != h.Get("X-Graphiti-Request-Id") ||
		root.attrs["http.response.status_code"] != int64(200) || root.attrs["graphiti_proxy.memory.status"] != "empty" {
		t.Errorf("got %+v, want a span of the server, below the client's, that says what memory did", root)
	}
	if root.service["service.name"] != "graphiti-proxy" || root.service["deployment.environment.name"] != "test" || root.service["service.instance.id"] != telemetry.ProcessName() {
		t.Errorf("got %+v, want the name, environment and instance of the service", root.service)
	}
	up := collector.named(parent, "chat gpt-5")[0]
	if up.parent != root.id || up.kind != "Client" || up.attrs["gen_ai.operation.name"] != "chat" || up.attrs["gen_ai.provider.name"] != "openai" ||
		up.attrs["gen_ai.request.model"] != "gpt-5" || up.attrs["gen_ai.usage.input_tokens"] == nil {
		t.Errorf("got %+v, want a span of the client that names the call, the model and its tokens", up)
	}
	last := w.model.Requests()[len(w.model.Requests())-1]
	if got := last.Headers.Get("Traceparent"); got != "00-"+parent+"-"+up.id+"-01" || last.Headers.Get("Tracestate") != "vendor=1" {
		t.Errorf("the upstream was told %q %q", got, last.Headers.Get("Tracestate"))
	}
	recall := collector.named(parent, "recall user")
	if len(recall) != 1 || recall[0].parent != root.id || recall[0].attrs["graphiti_proxy.source"] != "live" {
		t.Errorf("got %+v, want one recall of the request, live", recall)
	}
	if d := collector.named(parent, "deliver")[0]; d.parent != root.id || d.attrs["graphiti_proxy.verified"] != true ||
		d.attrs["graphiti_proxy.group"] != recall[0].attrs["graphiti_proxy.group"] {
		t.Errorf("got %+v, want a verified delivery below %s, to the group of the recall", d, root.id)
	}
	waitUntil(t, "metrics", func() bool {
		collector.mu.Lock()
		defer collector.mu.Unlock()
		return collector.metrics["graphiti_proxy_recall_duration"] && collector.metrics["graphiti_proxy_turns_pending"]
	})
	collector.mu.Lock()
	defer collector.mu.Unlock()
	for _, leak := range []string{"Foxglove", "heliport", "sk-secret", "josh"} {
		if strings.Contains(string(collector.raw), leak) {
			t.Errorf("%q was told", leak)
		}
	}
}

// TestTelemetryIsBounded checks that an unreachable collector does not delay the end of the
// proxy, and that an unsupported protocol is one clear error.
func TestTelemetryIsBounded(t *testing.T) {
	t.Run("no collector", func(t *testing.T) {
		w := start(t, t.TempDir(), map[string]string{"otel.endpoint": "http://127.0.0.1:1"})
		w.say("hello")
		w.stop() // fails if it takes too long
	})
	t.Run("protocol", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
		cfg, err := config.Load(config.Sources{Env: []string{"HOME=" + t.TempDir()}})
		must(t, err)
		if _, err := telemetry.New(telemetryOptions(cfg, nil)); err == nil || !strings.Contains(err.Error(), "http/protobuf") {
			t.Errorf("got %v, want an error, \"http/protobuf\" in it", err)
		}
	})
}
