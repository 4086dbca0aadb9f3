package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
)

// clientsBody is a request of a client of Anthropic's API, whose parts of the
// first message stand before what the person says.
func clientsBody(said string, parts ...string) m {
	var content []m
	for _, p := range append(parts, said) {
		content = append(content, m{"type": "text", "text": p})
	}
	return m{"model": "m", "max_tokens": 9, "system": []m{{"type": "text", "text": "You are a Claude agent, built on an SDK."}}, "messages": []m{{"role": "user", "content": content}}}
}

// TestClientThatDoesNotSayWhere: a client that works in directories has no memory
// where it does not say in which, or says two; all others have it.
func TestClientThatDoesNotSayWhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const agent = "claude-cli/2.1.400 (external, cli)"
	reminder := func(text string) string { return "<system-reminder>\n" + text + "\n</system-reminder>" }
	in := func(dir string) string {
		return reminder("# Environment\nYou have been invoked in the following environment: \n - Primary working directory: " + dir)
	}
	for _, mode := range []string{"single", "multi"} {
		w := start(t, t.TempDir(), map[string]string{"identity.mode": mode})
		ask := func(body m, headers ...string) string {
			t.Helper()
			_, h := w.exchange("/v1/messages", body, append([]string{"X-Api-Key", "sk-ant-1", "Anthropic-Version", "2023-06-01"}, headers...)...)
			return h.Get("X-Graphiti-Memory")
		}
		ask(clientsBody(fact, in(dir)), "User-Agent", agent, "X-Session-Id", "ses_1") // so that the provider has accepted the key
		for _, tc := range []struct {
			name    string
			body    m
			headers []string
			off     bool
		}{
			{name: "stated", body: clientsBody(fact, in(dir))},
			{name: "not stated", body: clientsBody(fact, reminder("# Surroundings\n - Folder: "+dir)), off: true},
			{name: "stated twice", body: clientsBody(fact, in(dir), in("/elsewhere")), off: true},
			{name: "a header names the project", body: clientsBody(fact), headers: []string{"X-Graphiti-Workspace", "mine"}},
			{name: "its session is not known", body: clientsBody(fact), headers: []string{"X-Claude-Code-Session-Id", "s-1"}, off: true},
			{name: "its session said it", body: clientsBody(fact, in(dir)), headers: []string{"X-Claude-Code-Session-Id", "s-1"}},
			{name: "its session has said it", body: clientsBody(fact), headers: []string{"X-Claude-Code-Session-Id", "s-1"}},
			{name: "a program with an SDK", body: clientsBody(fact), headers: []string{"User-Agent", "Anthropic/JS 1.11.0"}, off: true}, // its prompt is Claude Code's
			{name: "a program with another prompt", body: m{"model": "m", "max_tokens": 9, "messages": []m{user(fact)}}, headers: []string{"User-Agent", "Anthropic/JS 1.11.0"}},
			{name: "a chat", body: m{"model": "m", "max_tokens": 9, "messages": []m{user(fact)}}, headers: []string{"User-Agent", "LibreChat/1.0"}},
		} {
			got := ask(tc.body, append([]string{"User-Agent", agent}, tc.headers...)...)
			if off := strings.HasPrefix(got, "off;") && strings.HasSuffix(got, "reason=place"); off != tc.off || !off && strings.HasPrefix(got, "off") {
				t.Errorf("%s mode, %s: %s", mode, tc.name, got)
			}
		}
		status := w.app.status(t.Context(), false)
		if !slices.Contains(status.Clients, health.Client{Name: "Claude Code", Version: "2.1.400", NoPlace: 3}) {
			t.Errorf("%s mode: %+v", mode, status.Clients)
		}
		if n := strings.Count(w.log.String(), `client="Claude Code" version=2.1.400`); n != 1 {
			t.Errorf("%s mode: it was logged %d times: %s", mode, n, w.log.String())
		}
		if shows := scrape(t, w); !regexp.MustCompile(`(?m)^graphiti_proxy_client_signs_total\{.*client="Claude Code".*sign="no_place".*\} 4$`).MatchString(shows) || strings.Contains(shows, "2.1.400") {
			t.Errorf("%s mode: the metric is not four, or names a version", mode)
		}
	}
}

// TestBlocksAreRepeatedWhereThePlaceIsUnclear: the provider saw them.
func TestBlocksAreRepeatedWhereThePlaceIsUnclear(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say(fact)
	w.delivered(1)
	in := func(dir string) m {
		return m{"role": "system", "content": "You are opencode, a tool.\n<env>\n  Working directory: " + dir + "\n</env>"}
	}
	const agent, path = "opencode/1.18.33", "/v1/chat/completions"
	first := []m{in("/nowhere"), user("What is my cat called?")}
	_, h := w.exchange(path, chat(first...), "User-Agent", agent, "X-Session-Id", "ses_1")
	if got := h.Get("X-Graphiti-Memory"); !strings.HasPrefix(got, "recalled; facts=1") {
		t.Fatalf("got %v, want \"recalled; facts=1\" at its beginning", got)
	}
	w.model.Forget()
	_, h = w.exchange(path, chat(append(first, m{"role": "assistant", "content": "Miso."}, in("/elsewhere"), user("And my dog?"))...), "User-Agent", agent, "X-Session-Id", "ses_1")
	if got := h.Get("X-Graphiti-Memory"); !strings.HasPrefix(got, "off;") || !strings.HasSuffix(got, "reason=place") {
		t.Errorf("got %v, want \"off;\" at its beginning, \"reason=place\" at its end", got)
	}
	if n := strings.Count(string(w.model.Requests()[0].Body), "<graphiti_memory>"); n != 1 {
		t.Errorf("the request has %d blocks", n)
	}
}

// TestClientWhosePersonIsNeverFound is named, with its version.
func TestClientWhosePersonIsNeverFound(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	const machine = "<system-reminder>\nThe date is known.\n</system-reminder>"
	for range 6 {
		w.exchange("/v1/chat/completions", chat(user("hello"), m{"role": "assistant", "content": "hi"}, user(machine)), "User-Agent", "new-cli/1.0 (linux)")
		w.exchange("/v1/chat/completions", chat(user("hello"), m{"role": "assistant", "content": "hi"}, user(machine)), "User-Agent", "old-cli/1.0 (linux)")
	}
	w.exchange("/v1/chat/completions", chat(user("hello")), "User-Agent", "old-cli/1.0 (linux)")
	if got := w.app.status(t.Context(), false).Clients; !slices.Equal(got, []health.Client{{Name: "new-cli", Version: "1.0", NoWords: 6}}) {
		t.Errorf("got %+v, want new-cli 1.0 only, with 6 turns without words", got)
	}
}
