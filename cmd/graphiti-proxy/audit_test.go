package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
)

// TestAuditLines checks that the proxy logs each access to stored turns with its actor, at
// every log.level.
func TestAuditLines(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "josh"})
	if _, err := cli.Ask(t.Context(), adminOf(w), service.Show, service.ShowRequest{}); err != nil {
		t.Fatal(err)
	}
	if want := `msg=audit what=show who="the owner" by="the operator" peer=admin.sock groups=[` + w.group() + `] done=true`; !strings.Contains(w.log.String(), want) {
		t.Errorf("no %s in\n%s", want, w.log.String())
	}
	var b bytes.Buffer
	telemetry.Always(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelError}))).With("a", 1).Info("audit")
	if !strings.Contains(b.String(), "msg=audit a=1") {
		t.Errorf("the level leaves it out: %q", b.String())
	}
}
