package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

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
