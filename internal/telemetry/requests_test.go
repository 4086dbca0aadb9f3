package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestAppendJSON_AsSlog checks that appendJSON appends a record exactly as slog.JSONHandler
// does, or not at all.
func TestAppendJSON_AsSlog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 120_000, time.FixedZone("", 3600))
	for name, tc := range map[string]struct {
		at    time.Time
		level slog.Level
		attrs []slog.Attr
		other bool // has a value that appendJSON leaves to slog
	}{
		"no attributes":     {at: at},
		"a request":         {at: at, attrs: []slog.Attr{slog.String("method", "POST"), slog.String("path", "/v1/chat?a=<b>&c"), slog.Int("status", 200), slog.Int64("ms", -1), slog.String("memory", "recalled; facts=3"), slog.String("id", "")}},
		"whole seconds":     {at: at.Truncate(time.Second).UTC(), attrs: []slog.Attr{slog.Int("status", 0)}},
		"the current time":  {at: time.Now(), attrs: []slog.Attr{slog.Int("status", 0)}},
		"another level":     {at: at, level: slog.LevelWarn + 1},
		"quotes":            {at: at, attrs: []slog.Attr{slog.String("path", `/"`)}, other: true},
		"a backslash":       {at: at, attrs: []slog.Attr{slog.String("path", `/\`)}, other: true},
		"control bytes":     {at: at, attrs: []slog.Attr{slog.String("path", "/\n")}, other: true},
		"letters with dots": {at: at, attrs: []slog.Attr{slog.String("path", "/ü"), slog.Int("status", 1)}, other: true},
		"invalid text":      {at: at, attrs: []slog.Attr{slog.String("path", "/\xff")}, other: true},
		"a name's escape":   {at: at, attrs: []slog.Attr{slog.String(`"`, "")}, other: true},
		"another kind":      {at: at, attrs: []slog.Attr{slog.Bool("whole", true)}, other: true},
	} {
		r := slog.NewRecord(tc.at, tc.level, requestLine, 0)
		r.AddAttrs(tc.attrs...)
		var want bytes.Buffer
		if err := slog.NewJSONHandler(&want, nil).Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		got, ok := appendJSON([]byte("before\n"), &r)
		switch {
		case ok == tc.other:
			t.Errorf("%s: got %t, want %t", name, ok, !tc.other)
		case ok && string(got) != "before\n"+want.String():
			t.Errorf("%s: got %s, want %s after the line before", name, got, want.String())
		case !ok && string(got) != "before\n":
			t.Errorf("%s: got %q, want only the line before", name, got)
		}
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
