package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestTablesObeyNobody: what was said cannot tell the terminal what to do, and a
// program gets it whole.
func TestTablesObeyNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := strings.Repeat("long ", 300)
	if _, err := command(t, dir, "memory", "promote", "--kind", "decision", "Postgres \x1b]0;title\x07\x1b[2J\u202eand\u009b1m "+long+"end"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"memory", "show"}, {"memory", "search", "What about Postgres?"}} {
		out, err := command(t, dir, args...)
		if err != nil || !strings.Contains(out, "Postgres") || strings.ContainsAny(out, "\x1b\x07\u202e\u009b") {
			t.Errorf("%v: %q, %v", args, out, err)
		}
		if args[1] == "show" && !strings.Contains(out, "long end") {
			t.Errorf("%v: it is cut: %q", args, out)
		}
	}
}

// TestUsageErrors are told apart from failures.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"memory", "search"}, {"memory", "promote", "x"}, {"memory", "promote", "--kind", "decision"}, {"memory", "promote", "--kind", "idea", "x"}, {"memory", "import"},
	} {
		var usage cli.UsageError
		if _, err := command(t, t.TempDir(), args...); !errors.As(err, &usage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestAddressesWithTLS are those to connect to.
func TestAddressesWithTLS(t *testing.T) {
	t.Parallel()
	cert, key, _ := writeCertificate(t, t.TempDir(), 1)
	w := start(t, t.TempDir(), map[string]string{"tls.cert": cert, "tls.key": key, "tls.listeners": "client"})
	var shown, status bytes.Buffer
	banner(&shown, "none", "graphiti-proxy", w.app)
	s := w.app.status(t.Context(), false)
	printStatus(&status, &s)
	clients := "https://" + w.app.proxy.Addr().String()
	var logged bytes.Buffer
	begun(slog.New(slog.NewJSONHandler(&logged, nil)), w.app)
	for _, want := range []string{`"openai_base_url":"` + clients + `/v1"`, `"anthropic_base_url":"` + clients + `"`} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("no %s in %s", want, logged.String())
		}
	}
	for _, want := range []string{"export OPENAI_BASE_URL=" + clients + "/v1\n", "export ANTHROPIC_BASE_URL=" + clients + "\n", "graphiti-proxy test\n"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("no %s in %s", want, shown.String())
		}
	}
	for what, out := range map[string]string{"banner": shown.String(), "status": status.String()} {
		if !strings.Contains(out, clients) || strings.Contains(out, "http://"+w.app.proxy.Addr().String()) {
			t.Errorf("%s: %s", what, out)
		}
	}
	if !strings.Contains(shown.String(), "http://"+w.app.admin.Addr().String()) {
		t.Errorf("%s", shown.String())
	}
}

// TestQueueChangesPrintJSON, and an export may be asked for it.
func TestQueueChangesPrintJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := command(t, dir, "memory", "promote", "--kind", "decision", "Postgres"); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, dir, "queue", "drop", "--all", "--json"); err != nil || strings.TrimSpace(out) != "{\n  \"turns\": 0\n}" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := command(t, dir, "memory", "export", "--json", "--user", owner(t, dir)); err != nil || !strings.Contains(out, "Postgres") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestShowTellsWhatElseThereIs: what was said in projects is not the person's
// own, and who looks is told where it is.
func TestShowTellsWhatElseThereIs(t *testing.T) {
	t.Parallel()
	var hint bytes.Buffer
	hintAt(&hint, &service.Selector{User: "josh"}, make([]ledger.Owned, 1))
	if !strings.Contains(hint.String(), "1 other group of theirs, which graphiti-proxy memory list --user josh names") {
		t.Errorf("%s", hint.String())
	}
}
