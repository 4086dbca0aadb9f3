package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// TestWarningsAreLoggedOnceAMinute, and counted; other levels always.
func TestWarningsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := Quiet(slog.New(slog.NewTextHandler(&b, nil)))
		for range 5 {
			log.Warn("redis is down")
			log.Info("a turn")
		}
		log.With("a", 1).Warn("redis is down")
		log.Warn("the disk is full")
		if out := b.String(); strings.Count(out, "redis is down") != 1 || strings.Count(out, "disk is full") != 1 || strings.Count(out, "a turn") != 5 {
			t.Errorf("got log %s, want each warning once and every other line", out)
		}
		time.Sleep(2 * quietFor)
		b.Reset()
		log.Warn("redis is down")
		if out := b.String(); !strings.Contains(out, "not_logged_before=5") {
			t.Errorf("got log %s, want not_logged_before=5 in it", out)
		}
	})
}

// TestAlways_Level checks that a line of the audit log is written at every level.
func TestAlways_Level(t *testing.T) {
	var b bytes.Buffer
	Always(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelError}))).With("a", 1).Info("audit")
	if !strings.Contains(b.String(), "msg=audit a=1") {
		t.Errorf("the level leaves it out: %q", b.String())
	}
}

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
	must(t, err)
	_, span := c.spans.Tracer("test").Start(t.Context(), "a request")
	span.End()
	_ = c.spans.Shutdown(context.Background())
	if here.Load() == 0 || elsewhere.Load() > 0 {
		t.Errorf("%d requests to the collector and %d to the address of its redirect, want one and none", here.Load(), elsewhere.Load())
	}
}

// TestShortRequests checks that a request is logged as a short line, and other records
// unchanged.
func TestShortRequests(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(shortRequests{slog.NewTextHandler(&b, nil), &b, false})
	request := func(status int, memory string) string {
		b.Reset()
		log.Info(requestLine, "method", "POST", "path", "/v1/chat\x1b[2J", "status", status, "ms", 12, "memory", memory, "id", "x-1")
		_, rest, _ := strings.Cut(b.String(), " ") // after the time
		return rest
	}
	for want, got := range map[string]string{
		"200 POST /v1/chat[2J 12ms memory recalled, 3 facts\n":   request(200, "recalled; facts=3; chars=90; ms=4; source=live"),
		"502 POST /v1/chat[2J 12ms memory empty, 1 fact, weak\n": request(502, "empty; facts=1; chars=9; ms=4; reason=weak"),
		"404 POST /v1/chat[2J 12ms\n":                            request(404, ""),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	log = slog.New(shortRequests{slog.NewTextHandler(&b, nil), &b, true})
	if got := request(404, ""); !strings.Contains(got, "\x1b[33m404\x1b[0m") {
		t.Errorf("got line %q, want status 404 in yellow", got)
	}
	b.Reset()
	log.With("a", 1).Info("started")
	if !strings.Contains(b.String(), "msg=started a=1") {
		t.Errorf("got log %s, want msg=started a=1 in it", b.String())
	}
}
