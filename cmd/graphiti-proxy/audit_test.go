package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
)

// TestAuditLines: each look at what is remembered, and each change of it, is
// told with whose it is, from where, in which groups and whether it was done,
// without what was said, and whatever log.level leaves out.
func TestAuditLines(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "josh"})
	w.say("My cat is called Miso.")
	w.delivered(1)
	josh, at, ctx := service.Selector{User: "josh"}, &cli.Place{Proxy: adminOf(w)}, t.Context()
	group := w.group()
	_, show := cli.Call(ctx, at, service.Show, service.ShowRequest{Selector: josh})
	_, search := cli.Call(ctx, at, service.Search, service.SearchRequest{Selector: josh, Query: "cat"})
	_, promote := cli.Call(ctx, at, service.Promote, service.PromoteRequest{Selector: josh, Promotion: service.Promotion{Kind: "preference", Text: "I like Miso"}})
	_, nonsense := cli.Call(ctx, at, service.Promote, service.PromoteRequest{Selector: josh, Promotion: service.Promotion{Kind: "nonsense", Text: "Miso"}})
	_, find := cli.Call(ctx, at, service.Groups, josh)
	export := cli.Each(ctx, at, service.Export, service.ExportRequest{Group: group}, func(service.Record) error { return nil })
	_, forget := cli.Call(ctx, at, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: group}})
	if err := errors.Join(show, search, promote, find, export, forget); err != nil || nonsense == nil {
		t.Fatal(err, nonsense)
	}
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
