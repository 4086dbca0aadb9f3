package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/service"
	"github.com/graphiti-proxy/graphiti-proxy/telemetry"
)

// TestAuditLines: each look at what is remembered, and each change of it, is
// told with whose it is, from where, in which groups and whether it was done,
// without what was said, and whatever log.level leaves out.
func TestAuditLines(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "josh"})
	w.say("My cat is called Miso.")
	w.delivered(1)
	cfg, group := adminOf(w), w.group()
	call := func(path string, in any) {
		t.Helper()
		var out any
		if err := ask(t.Context(), cfg, http.MethodPost, path, in, &out); err != nil && !strings.Contains(path, "promote") {
			t.Fatal(path, err)
		}
	}
	josh := service.Selector{User: "josh"}
	call("/api/v1/memory/show", josh)
	call("/api/v1/memory/search", map[string]string{"user": "josh", "query": "cat"})
	call("/api/v1/memory/promote", map[string]string{"user": "josh", "kind": "preference", "text": "I like Miso"})
	call("/api/v1/memory/promote", map[string]string{"user": "josh", "kind": "nonsense", "text": "Miso"})
	call("/api/v1/memory/groups", josh)
	if err := stream(t.Context(), cfg, "/api/v1/memory/export?group="+group, func([]byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	call("/api/v1/memory/forget", service.Selector{Group: group})
	var seen []string
	for line := range strings.Lines(w.log.String()) {
		_, said, ok := strings.Cut(line, "msg=audit what=")
		if !ok {
			continue
		}
		if failed := strings.Contains(said, "kind=nonsense"); strings.Contains(said, "Miso") || !strings.Contains(said, " who=") || !strings.Contains(said, " peer=127.0.0.1 ") ||
			strings.Contains(said, group) == failed || strings.Contains(said, "done=false") != failed {
			t.Error(line)
		}
		what, _, _ := strings.Cut(said, " who=")
		seen = append(seen, what)
	}
	if got := strings.Join(seen, ","); got != `show,search,promote,promote,"list groups",export,forget` {
		t.Error(got)
	}
	var b bytes.Buffer
	telemetry.Always(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelError}))).With("a", 1).Info("audit")
	if !strings.Contains(b.String(), "msg=audit a=1") {
		t.Errorf("the level leaves it out: %q", b.String())
	}
}
