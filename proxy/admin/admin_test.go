package admin

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

var must = helptest.Must

func start(t *testing.T, token string, st health.Status) string {
	t.Helper()
	return serve(t, Options{Token: token, Host: &service.Host{
		Status: func(context.Context, bool) health.Status { return st },
		Counts: func(context.Context) (capture.QueueStatus, error) { return st.Queue, nil },
	}})
}

// stopClock stops the refill of calls and guesses, so that a slow machine gains none.
func (s *Server) stopClock() {
	s.calls = newLimits[service.Caller](0, s.calls.burst)
	s.fails = newLimits[netip.Prefix](0, s.fails.burst)
}

// serve runs a server with the options until the end of the test and returns its URL.
func serve(t *testing.T, o Options) string {
	t.Helper()
	o.Listen, o.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "m 1\n") })
	if o.Audit == nil {
		o.Audit = o.Log
	}
	s, err := New(o)
	must(t, err)
	s.stopClock()
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr().String()
}

func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, url, nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// TestTokenGuardsAllButHealthAndMetrics checks that only health and metrics are available
// without the token.
func TestTokenGuardsAllButHealthAndMetrics(t *testing.T) {
	base := start(t, "secret", health.Status{Ready: true})
	for _, tc := range []struct {
		path, token string
		status      int
	}{
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/metrics", "", 200},
		{"/api/v1/status", "", 401},
		{"/api/v1/status", "wrong", 401},
		{"/api/v1/status", "secret", 200},
		{"/api/v1/queue", "", 401},
		{"/api/v1/queue", "secret", 200},
		{"/api/v1/other", "secret", 404},
	} {
		if status, _ := get(t, base+tc.path, tc.token); status != tc.status {
			t.Errorf("%s with token %q: status %d, want %d", tc.path, tc.token, status, tc.status)
		}
	}
}

// TestMemoryTroubleKeepsTheProxyReady checks that a proxy with a faulty memory is ready,
// and that the answer lists all faults without an address.
func TestMemoryTroubleKeepsTheProxyReady(t *testing.T) {
	st := health.Status{Ready: true, Memory: health.MemoryStatus{Backend: "graphiti", Where: "http://secret-host"}}
	st.Memory.Fail(health.FaultUnreachable, time.Time{}, "dial secret-host: refused", "look at secret-host")
	st.Memory.Fail(health.FaultStalled, time.Time{}, "secret-host keeps none", "start it again")
	status, body := get(t, start(t, "", st)+"/readyz", "")
	if status != 200 || !strings.Contains(body, "does not answer; the memory accepts turns and stores none") || strings.Contains(body, "secret-host") {
		t.Errorf("status %d, body %s", status, body)
	}
}

func TestQueueCountsAreThere(t *testing.T) {
	_, body := get(t, start(t, "", health.Status{})+"/api/v1/queue", "")
	var got map[string]any
	must(t, json.Unmarshal([]byte(body), &got))
	for _, key := range []string{"pending", "delivered", "verified", "dropped", "dead"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing in %s", key, body)
		}
	}
}

// TestTooManyCalls checks that calls and guesses are limited, except for health checks, and
// that the right token is accepted after too many guesses.
func TestTooManyCalls(t *testing.T) {
	base := start(t, "secret", health.Status{Ready: true})
	refused := func(token string) bool {
		for range 20 * callsPerSecond {
			if status, _ := get(t, base+"/api/v1/status", token); status == http.StatusTooManyRequests {
				return true
			}
		}
		return false
	}
	if !refused("a guess") {
		t.Error("guesses are not limited")
	}
	if status, _ := get(t, base+"/api/v1/queue", "secret"); status != http.StatusOK {
		t.Errorf("the right token, after too many guesses: %d, want 200", status)
	}
	if !refused("secret") {
		t.Error("calls are not limited")
	}
	if status, _ := get(t, base+"/healthz", ""); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
}

// TestPagesUseUpNothing checks that requests of a browser for another site's page, or
// without a token, do not count against the limits of other clients.
func TestPagesUseUpNothing(t *testing.T) {
	for _, token := range []string{"", "secret"} {
		base := start(t, token, health.Status{Ready: true})
		send := func(token string, lines ...string) int {
			req, _ := http.NewRequest(http.MethodGet, base+"/api/v1/status", nil)
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			for i := 0; i < len(lines); i += 2 {
				req.Header.Add(lines[i], lines[i+1])
			}
			resp, err := http.DefaultClient.Do(req)
			must(t, err)
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.StatusCode
		}
		for range 3 * callsPerSecond {
			if status := send("a guess", "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
				t.Fatalf("token %q: a page is answered %d", token, status)
			}
			if status := send(token, "Sec-Fetch-Site", "same-site"); status != http.StatusForbidden {
				t.Fatalf("token %q: a page that knows the token is answered %d", token, status)
			}
			if status := send("", "Origin", "https://evil.example"); status != http.StatusForbidden && status != http.StatusUnauthorized {
				t.Fatalf("token %q: a page of an old browser is answered %d", token, status)
			}
		}
		if status := send(token); status != http.StatusOK {
			t.Errorf("token %q: afterwards a program is answered %d", token, status)
		}
	}
}
