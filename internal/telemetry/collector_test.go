package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestCollector_Redirect checks that neither traces nor metrics follow a redirect of the collector.
func TestCollector_Redirect(t *testing.T) {
	var elsewhere, here atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here.Add(1)
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	c, err := newCollector(Options{Endpoint: server.URL, Traces: true, Metrics: true, Sample: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, span := c.spans.Tracer("test").Start(t.Context(), "a request")
	span.End()
	_ = c.spans.Shutdown(context.Background())
	if here.Load() == 0 || elsewhere.Load() > 0 {
		t.Errorf("%d requests to the collector and %d to the address of its redirect, want one and none", here.Load(), elsewhere.Load())
	}
}
