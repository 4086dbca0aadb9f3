package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// clientsBody returns a request of a client of Anthropic's API that puts parts before the
// person's text in the first message.
func clientsBody(said string, parts ...string) m {
	var content []m
	for _, p := range append(parts, said) {
		content = append(content, m{"type": "text", "text": p})
	}
	return m{"model": "m", "max_tokens": 9, "system": []m{{"type": "text", "text": "You are a Claude agent, built on an SDK."}}, "messages": []m{{"role": "user", "content": content}},
		"tools": []m{{"name": "Read", "input_schema": m{"type": "object", "properties": m{"file_path": m{"type": "string"}}}}}}
}

// worker returns a request that offers a tool that runs commands, like those of unknown
// agents.
func worker(messages ...m) m {
	body := chat(messages...)
	body["tools"] = []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object", "properties": m{"command": m{"type": "string"}}}}}}
	return body
}

// tools returns a request that offers a function with these parameters.
func tools(name string, parameters m, messages ...m) m {
	body := chat(messages...)
	body["tools"] = []m{{"type": "function", "function": m{"name": name, "parameters": m{"type": "object", "properties": parameters}}}}
	return body
}

// TestAgentThatNamesNoDirectory checks that an agent with unknown tools that names no directory
// has the memory of its conversation only, because all its projects would share the person's. The
// status names the agent, and the log a setting that helps.
func TestAgentThatNamesNoDirectory(t *testing.T) {
	t.Parallel()
	const agent = "Code-Puppy/0.0.946"
	for _, mode := range []string{"single", "multi"} {
		for _, tc := range []struct {
			name    string
			setting string
			body    m
			headers []string
			alone   bool
		}{
			{name: "tools that run commands", body: worker(user(fact)), alone: true},
			{name: "tools in other words", body: tools("los", m{"befehl": m{"type": "string"}}, user(fact)), alone: true},
			{name: "no tools", body: chat(user(fact))},
			{name: "a harmless tool", body: tools("get_weather", m{"city": m{"type": "string"}}, user(fact))},
			{name: "Open WebUI's own tool", body: tools("view_note", m{"note_id": m{"type": "string"}}, user(fact)), headers: []string{"X-OpenWebUI-Chat-Id", "1"}},
			{name: "an own tool of Open WebUI, elsewhere", body: tools("view_note", m{"note_id": m{"type": "string"}}, user(fact)), alone: true},
			{name: "the header", body: worker(user(fact)), headers: []string{"X-Graphiti-Workspace", "mine"}},
			{name: "the setting", body: worker(user(fact)), setting: "true"},
		} {
			t.Run(mode+"/"+tc.name, func(t *testing.T) {
				settings := map[string]string{"identity.mode": mode}
				if tc.setting != "" {
					settings["workspace.optional"] = tc.setting
				}
				w := start(t, t.TempDir(), settings)
				w.exchange("/v1/chat/completions", chat(user("hello")), "Authorization", "Bearer sk-1") // so that the provider has accepted the key
				_, h := w.exchange("/v1/chat/completions", tc.body, append([]string{"User-Agent", agent, "Authorization", "Bearer sk-1"}, tc.headers...)...)
				got := h.Get("X-Graphiti-Memory")
				if alone := strings.HasSuffix(got, "reason=place"); alone != tc.alone || strings.HasPrefix(got, "off") {
					t.Errorf("got %s, want the memory of a conversation: %v", got, tc.alone)
				}
				clients := w.app.status(t.Context(), false).Clients
				if named := slices.Contains(clients, graphiti.ClientSigns{Name: "Code-Puppy", Version: "0.0.946", NoDirectory: 1}); named != tc.alone {
					t.Errorf("the status has %+v, want the client in it: %v", clients, tc.alone)
				}
				if logged := strings.Contains(w.log.String(), "workspace.optional"); logged != tc.alone {
					t.Errorf("the remedy was logged: %v, want %v", logged, tc.alone)
				}
			})
		}
	}
}

// TestUnknownToolsCrossNoConversation checks that the words of a conversation with unknown tools
// and without a directory are recalled in that conversation only, also after its tools are
// switched off, and that it recalls no words of others.
func TestUnknownToolsCrossNoConversation(t *testing.T) {
	t.Parallel()
	const path, question = "/v1/chat/completions", "What is my cat called?"
	w := start(t, t.TempDir(), nil)
	ask := func(session string, body m) (header, block string) {
		t.Helper()
		_, h := w.exchange(path, body, "X-Session-Id", session)
		requests := w.model.Requests()
		return h.Get("X-Graphiti-Memory"), string(requests[len(requests)-1].Body)
	}
	repl := func(said string) m { return tools("python_repl", m{"query": m{"type": "string"}}, user(said)) }
	ask("ses_repl", repl(fact))
	w.delivered(1)
	ask("ses_repl", chat(user("My dog is called Waldo.")))
	w.delivered(2)
	ask("ses_chat", chat(user("My parrot is called Zorro.")))
	w.delivered(3)
	repls, chats := []string{"Miso", "Waldo"}, []string{"Zorro"}
	all := append(repls, chats...)
	for _, tc := range []struct {
		name, session string
		body          m
		want          string
		never         []string
	}{
		{"the same conversation", "ses_repl", repl(question), "Miso", chats},
		{"another agent", "ses_other", repl(question), "", all},
		{"a chat", "ses_other2", chat(user(question)), "", repls},
		{"its words without tools, in a chat", "ses_other3", chat(user("What is my dog called?")), "", repls},
		{"its words without tools", "ses_repl", repl("What is my dog called?"), "Waldo", chats},
		{"words of a chat, in an agent", "ses_other4", repl("What is my parrot called?"), "", all},
		{"words of a chat, in a chat", "ses_other5", chat(user("What is my parrot called?")), "Zorro", repls},
	} {
		header, body := ask(tc.session, tc.body)
		for _, name := range tc.never {
			if strings.Contains(body, name) || !strings.Contains(body, tc.want) {
				t.Errorf("%s: %s with %.300s, want %q", tc.name, header, body, tc.want)
			}
		}
	}
}

// TestClientWithoutDirectory checks that a client that works in directories has no
// memory if it states no directory or two, and that all other clients have memory.
func TestClientWithoutDirectory(t *testing.T) {
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
			{name: "stated", body: clientsBody(fact, in(dir)), off: mode == "multi"}, // in multi mode a directory is on another machine
			{name: "not stated", body: clientsBody(fact, reminder("# Surroundings\n - Folder: "+dir)), off: true},
			{name: "stated twice", body: clientsBody(fact, in(dir), in("/elsewhere")), off: true},
			{name: "a header names the project", body: clientsBody(fact), headers: []string{"X-Graphiti-Workspace", "mine"}},
			{name: "its session is not known", body: clientsBody(fact), headers: []string{"X-Claude-Code-Session-Id", "s-1"}, off: true},
			{name: "its session said it", body: clientsBody(fact, in(dir)), headers: []string{"X-Claude-Code-Session-Id", "s-1"}, off: mode == "multi"},
			{name: "its session has said it", body: clientsBody(fact), headers: []string{"X-Claude-Code-Session-Id", "s-1"}, off: mode == "multi"},
			{name: "a program with an SDK", body: clientsBody(fact), headers: []string{"User-Agent", "Anthropic/JS 1.11.0"}, off: true}, // its prompt is Claude Code's
			{name: "a program with another prompt", body: m{"model": "m", "max_tokens": 9, "messages": []m{user(fact)}}, headers: []string{"User-Agent", "Anthropic/JS 1.11.0"}},
			{name: "a request of its own without tools, such as a title", body: m{"model": "m", "max_tokens": 9, "system": "You are a Claude agent, built on an SDK.", "messages": []m{user("Title: " + fact)}}, off: true},
			{name: "a chat", body: m{"model": "m", "max_tokens": 9, "messages": []m{user(fact)}}, headers: []string{"User-Agent", "LibreChat/1.0"}},
		} {
			got := ask(tc.body, append([]string{"User-Agent", agent}, tc.headers...)...)
			if off := strings.HasPrefix(got, "off;") && strings.HasSuffix(got, "reason=place"); off != tc.off || !off && strings.HasPrefix(got, "off") {
				t.Errorf("%s mode, %s: %s", mode, tc.name, got)
			}
		}
		status := w.app.status(t.Context(), false)
		want, warnings, signs := graphiti.ClientSigns{Name: "Claude Code", Version: "2.1.400", NoPlace: 3}, 1, "4"
		if mode == "multi" {
			want.NotHere, warnings, signs = 4, 2, "8"
		}
		if !slices.Contains(status.Clients, want) {
			t.Errorf("%s mode: %+v", mode, status.Clients)
		}
		if n := strings.Count(w.log.String(), `client="Claude Code" version=2.1.400`); n != warnings {
			t.Errorf("%s mode: it was logged %d times, want %d: %s", mode, n, warnings, w.log.String())
		}
		if shows := scrape(t, w); !regexp.MustCompile(`(?m)^graphiti_proxy_client_signs_total\{.*client="Claude Code".*sign="no_place".*\} `+signs+`$`).MatchString(shows) || strings.Contains(shows, "2.1.400") {
			t.Errorf("%s mode: the metric is not %s, or names a version", mode, signs)
		}
	}
}

// TestBlocksAreRepeatedWhereThePlaceIsUnclear checks that a conversation keeps its earlier
// blocks when its directory becomes unclear, because the provider has seen them.
func TestBlocksAreRepeatedWhereThePlaceIsUnclear(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say(fact)
	w.delivered(1)
	in := func(dir string) m {
		return m{"role": "system", "content": "You are opencode, a tool.\n<env>\n  Working directory: " + dir + "\n</env>"}
	}
	ask := func(messages ...m) string {
		body := chat(messages...)
		body["tools"] = []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object"}}}} // else the first message is held
		_, h := w.exchange("/v1/chat/completions", body, "User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_1")
		return h.Get("X-Graphiti-Memory")
	}
	first := []m{in(t.TempDir()), user("What is my cat called?")}
	if got := ask(first...); !strings.HasPrefix(got, "recalled; facts=1") {
		t.Fatalf("got %v, want \"recalled; facts=1\" at its beginning", got)
	}
	w.model.Forget()
	if got := ask(append(first, m{"role": "assistant", "content": "Miso."}, in("/elsewhere"), user("And my dog?"))...); !strings.HasPrefix(got, "off;") || !strings.HasSuffix(got, "reason=place") {
		t.Errorf("got %v, want \"off;\" at its beginning, \"reason=place\" at its end", got)
	}
	if n := strings.Count(string(w.model.Requests()[0].Body), "<graphiti_memory>"); n != 1 {
		t.Errorf("the request has %d blocks", n)
	}
}
