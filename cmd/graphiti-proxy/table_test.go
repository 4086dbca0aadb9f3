package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestTablesWithoutControlCharacters checks that tables print stored text without control characters, and
// that memory show does not cut it for a program.
func TestTablesWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := strings.Repeat("long ", 300)
	must(t, helptest.ErrorOf(command(t, dir, "memory", "promote", "--kind", "decision", "Postgres \x1b]0;title\x07\x1b[2J\u202eand\u009b1m "+long+"end")))
	for _, args := range [][]string{{"memory", "show"}, {"memory", "search", "What about Postgres?"}} {
		out, err := command(t, dir, args...)
		if err != nil || !strings.Contains(out, "Postgres") || strings.ContainsAny(out, "\x1b\x07\u202e\u009b") {
			t.Errorf("%v: got %q, %v, want no error, Postgres in it, no control characters", args, out, err)
		}
		if args[1] == "show" && !strings.Contains(out, "long end") {
			t.Errorf("%v: it is cut: %q", args, out)
		}
	}
}

// TestUsageErrors checks that a usage error has a type of its own, and a message of one line. An
// empty selector, for example from an unset variable, must not delete the owner's whole
// memory.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	type line struct {
		args []string
		says string
	}
	lines := []line{
		{[]string{"memory", "search"}, "needs the text"},
		{[]string{"memory", "promote", "x"}, "kind"},
		{[]string{"memory", "promote", "--kind", "decision"}, "needs"},
		{[]string{"memory", "promote", "--kind", "idea", "x"}, "write one of decision"},
		{[]string{"memory", "import"}, "needs"},
		{[]string{"memory", "show", "--last", "0"}, `"0" for "--last" flag: it is not a number above 0`},
		{[]string{"memory", "list", "--limit", "1001"}, "limit must be 1 to 1000"},
		{[]string{"memory", "list", "--limit", "many"}, "is not a number"},
		{[]string{"memory", "list", "--workspace", "."}, "unknown flag"},
		{[]string{"memory", "list", "all"}, `takes no argument "all"`},
	}
	for _, flag := range []string{"--user", "--agent", "--workspace", "--session", "--group", "--credential", "--card"} {
		for _, value := range []string{"", " "} {
			lines = append(lines, line{[]string{"memory", "forget", flag, value, "--yes"}, flag})
		}
	}
	for _, tc := range lines {
		_, err := command(t, t.TempDir(), tc.args...)
		if !errors.As(err, new(cli.UsageError)) && !errors.As(err, new(service.InvalidError)) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want a usage error in one line with %q", tc.args, err, tc.says)
		}
	}
}

// TestCatalogIsPrinted checks that the catalog lists each memory and conversation, marks a
// missing count, and gives the number of entries left out.
func TestCatalogIsPrinted(t *testing.T) {
	t.Parallel()
	of := func(n int) service.Span {
		return service.Span{Messages: n, First: "2026-01-02T03:04:05.000Z", Last: "2026-01-03T03:04:05.000Z"}
	}
	var out, errOut bytes.Buffer
	printCatalog(&out, &errOut, &service.Selector{}, &service.Catalog{
		Memories:      []service.Kept{{Name: "acme/widgets", Scope: "workspace", Shared: true, Span: of(4)}, {Name: "you", Scope: "user", Span: of(3)}},
		Conversations: []service.Conversation{{Begins: "Our database is Postgres.", In: "acme/widgets", Span: of(4)}},
		AllMemories:   3, AllConversations: 2,
	})
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"MEMORY KIND MESSAGES FIRST LAST acme/widgets project, shared 4 2026-01-02 03:04 2026-01-03 03:04 you own 3 ",
		"CONVERSATION IN MESSAGES FIRST LAST ID Our database is Postgres. acme/widgets 4 2026-01-02 03:04 2026-01-03 03:04 … and 1 more; list them with --limit",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestAddressesWithTLS checks that the banner, the status and the log have https addresses
// for clients, and that the banner has an http address for the admin side, if only the
// client listener uses TLS.
func TestAddressesWithTLS(t *testing.T) {
	t.Parallel()
	cert, key, _ := writeCertificate(t, t.TempDir(), 1)
	w := start(t, t.TempDir(), map[string]string{"tls.cert": cert, "tls.key": key, "tls.listeners": "client"})
	var shown, status bytes.Buffer
	banner(&shown, "none", w.app)
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
	for _, want := range []string{"export OPENAI_BASE_URL=" + clients + "/v1\n", "export ANTHROPIC_BASE_URL=" + clients + "\n", "graphiti-proxy test\n", "graphiti-proxy connect, or"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("no %s in %s", want, shown.String())
		}
	}
	for what, out := range map[string]string{"banner": shown.String(), "status": status.String()} {
		if !strings.Contains(out, clients) || strings.Contains(out, "http://"+w.app.proxy.Addr().String()) {
			t.Errorf("%s: got %s, want %q in it, and no address of its own", what, out, clients)
		}
	}
	if !strings.Contains(shown.String(), "http://"+w.app.admin.Addr().String()) {
		t.Errorf("got %s, want the address of the admin API in it", shown.String())
	}
}

// TestQueueChangesPrintJSON checks that queue drop prints JSON with --json, and that memory
// export accepts the flag.
func TestQueueChangesPrintJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, helptest.ErrorOf(command(t, dir, "memory", "promote", "--kind", "decision", "Postgres")))
	if out, err := command(t, dir, "queue", "drop", "--all", "--json"); err != nil || strings.TrimSpace(out) != "{\n  \"turns\": 0\n}" {
		t.Errorf("got %q, %v, want no error, 0 turns", out, err)
	}
	if out, err := command(t, dir, "memory", "export", "--json", "--user", owner(t, dir)); err != nil || !strings.Contains(out, "Postgres") {
		t.Errorf("got %q, %v, want no error, \"Postgres\" in it", out, err)
	}
}
