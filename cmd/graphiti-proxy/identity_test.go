package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func sha(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// usersFile returns the path of a registry of josh, with the keys sk-josh and sk-josh-2,
// and ann, who has opted out of memory.
func usersFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.yaml")
	text := fmt.Sprintf("users:\n- id: josh\n  identities: {discord: \"123\", github: octocat, openwebui: ow-1}\n  keys: [\"sha256:%s\", \"sha256:%s\"]\n- id: ann\n  memoryEnabled: false\n  keys: [\"sha256:%s\"]\n",
		sha("sk-josh"), sha("sk-josh-2"), sha("sk-ann"))
	writeFile(t, path, text)
	return path
}

// TestKeysAreSeparate checks that no header, query or body lets key A recall
// messages of key B or write to its groups.
func TestKeysAreSeparate(t *testing.T) {
	t.Parallel()
	for _, ids := range []string{"canonical", "raw"} {
		w := start(t, t.TempDir(), map[string]string{
			"identity.mode": "multi", "identity.group_ids": ids, "identity.users_file": usersFile(t), "identity.trusted_keys": "sk-gateway",
			"recall.scopes": "session,workspace,user,agent", "ingest.scopes": "session,workspace,user,agent",
		})
		const secret = "My cat is called Miso, and the word is Zanzibar."
		fact := secret // the message of every key except key A
		hello := []m{user("Hello there, let us talk."), {"role": "assistant", "content": "Understood, I will keep that in mind."}}
		b := []string{"Authorization", "Bearer sk-b"}
		w.request(chat(hello[0]), b...)
		w.request(chat(hello[0], hello[1], user(secret)), b...)
		victim := func(more ...string) []string { return append(append([]string(nil), b...), more...) }
		w.say(fact, victim()...)
		w.say(fact, victim("X-Graphiti-User", "bob", "X-Graphiti-Session", "s1", "X-Graphiti-Workspace", "github_repo:github.com/acme/widgets", "X-Graphiti-Agent", "ava")...)
		w.say(fact, victim("X-Graphiti-System-Actor", "nightly")...)
		w.say(fact, "Authorization", "Bearer sk-josh", "X-Graphiti-Workspace", "w", "X-Graphiti-Session", "s2", "X-Graphiti-Agent", "ava")
		w.say(fact, "Authorization", "Bearer sk-gateway", "X-Graphiti-User", "carol", "X-Graphiti-Workspace", "w", "X-Graphiti-Session", "s3")
		w = w.restart()
		groups, err := w.remembers().pipeline.Owned(context.Background(), "")
		if err != nil || len(groups) < 10 {
			t.Fatalf("%d groups are held, %v; want 10 at least", len(groups), err)
		}
		theirs := make(map[string]int)
		for _, g := range groups {
			theirs[g.Group] = len(w.heldIn(g.Group))
		}

		type trick struct {
			name    string
			headers []string
			path    string
			body    map[string]any
		}
		tricks := []trick{
			{name: "nothing"},
			{name: "the person's name", headers: []string{"X-Graphiti-User", "bob"}},
			{name: "a registered person's name", headers: []string{"X-Graphiti-User", "josh"}},
			{name: "a registered person's key", headers: []string{"X-Graphiti-User", "user:josh"}},
			{name: "a registered person's identity", headers: []string{"X-Graphiti-User", "discord:123"}},
			{name: "a registered person's login", headers: []string{"X-Graphiti-User", "github_login:octocat"}},
			{name: "the gateway's person", headers: []string{"X-Graphiti-User", "carol"}},
			{name: "Open WebUI's person", headers: []string{"X-OpenWebUI-User-Id", "ow-1"}},
			{name: "LiteLLM's person", headers: []string{"x-litellm-end-user-id", "bob"}},
			{name: "LiteLLM's customer", headers: []string{"x-litellm-customer-id", "josh"}},
			{name: "the session", headers: []string{"X-Graphiti-Session", "s1"}},
			{name: "the session of the registered", headers: []string{"X-Graphiti-Session", "s2", "X-Graphiti-User", "josh"}},
			{name: "the workspace", headers: []string{"X-Graphiti-Workspace", "github_repo:github.com/acme/widgets"}},
			{name: "the workspace by its address", headers: []string{"X-Graphiti-Workspace", "git@github.com:acme/widgets.git"}},
			{name: "the workspace as Codex tells it", headers: []string{"X-Codex-Turn-Metadata", `{"workspaces":{"/x":{"associated_remote_urls":{"origin":"https://github.com/acme/widgets"}}}}`}},
			{name: "the agent", headers: []string{"X-Graphiti-Agent", "ava", "X-Graphiti-User", "bob"}},
			{name: "the agent of the registered", headers: []string{"X-Graphiti-Agent", "ava", "X-Graphiti-User", "josh"}},
			{name: "an agent that spells the person", headers: []string{"X-Graphiti-Agent", "ava|user:josh"}},
			{name: "the actor", headers: []string{"X-Graphiti-System-Actor", "nightly"}},
			{name: "everything at once", headers: []string{"X-Graphiti-User", "bob", "X-Graphiti-Session", "s1", "X-Graphiti-Workspace", "github_repo:github.com/acme/widgets", "X-Graphiti-Agent", "ava"}},
			{name: "the tenant spelt in the user", headers: []string{"X-Graphiti-User", "tenant:" + sha("sk-b") + "|user:bob"}},
			{name: "the tenant spelt in the session", headers: []string{"X-Graphiti-Session", "tenant:" + sha("sk-b") + "|session:s1"}},
			{name: "the raw prefix spelt in the user", headers: []string{"X-Graphiti-User", "t" + sha("sk-b")[:24] + "_user_bob"}},
			{name: "the fingerprint as credential", headers: []string{"X-Api-Key", sha("sk-b")}},
			{name: "the key with other white space", headers: []string{"X-Graphiti-User", " bob "}},
			{name: "look-alike letters", headers: []string{"X-Graphiti-User", "bоb"}}, // a Cyrillic о
			{name: "letters that combine", headers: []string{"X-Graphiti-User", "bo\u0301b"}},
			{name: "full-width letters", headers: []string{"X-Graphiti-User", "ｂｏｂ"}},
			{name: "an overlong name", headers: []string{"X-Graphiti-User", strings.Repeat("b", 3000)}},
			{name: "query", path: "?userId=josh"},
			{name: "query, escaped", path: "?userId=user%3Ajosh"},
			{name: "body user", body: m{"user": "josh"}},
			{name: "body user, below", body: m{"user": "bob", "session_id": "s1"}},
			{name: "body safety_identifier", body: m{"safety_identifier": "josh"}},
			{name: "body metadata", body: m{"metadata": m{"user_id": "josh", "session_id": "s1"}}},
			{name: "body litellm_session_id", body: m{"litellm_session_id": "s1", "litellm_metadata": m{"user": "josh"}}},
			{name: "body client_metadata", body: m{"client_metadata": m{"session_id": "s2"}}},
			{name: "body prompt_cache_key", body: m{"prompt_cache_key": "ses_s1"}},
			{name: "the same beginning", body: m{"messages": []m{hello[0], hello[1], user(question)}}},
		}
		for name, headers := range map[string][]string{
			"an empty bearer before a key":      {"Authorization", "Bearer ", "X-Api-Key", "sk-a"},
			"another key beside its own":        {"X-Api-Key", "sk-b-not-known", "Api-Key", "sk-a"},
			"a person's e-mail":                 {"X-OpenWebUI-User-Email", "ow-1"},
			"a chat":                            {"X-OpenWebUI-Chat-Id", "s1"},
			"LiteLLM's session":                 {"x-litellm-session-id", "s1"},
			"a session as opencode names it":    {"x-session-id", "s1"},
			"a session as Claude Code names it": {"X-Claude-Code-Session-Id", "s1"},
			"a session by any name":             {"x-acme-session-id", "session:s1"},
			"every name twice":                  {"X-Graphiti-User", "mallory", "X-Graphiti-User", "bob", "X-Graphiti-Session", "s1", "X-Graphiti-Session", "s2"},
			"names joined by a comma":           {"X-Graphiti-User", "bob,josh", "X-Graphiti-Session", "s1,s2"},
			"names with underscores":            {"X_Graphiti_User", "josh"},
		} {
			tricks = append(tricks, trick{name: name, headers: headers})
		}
		for name, more := range map[string]m{
			"null for everybody":       {"user": nil, "safety_identifier": nil, "session_id": nil},
			"an object for a person":   {"user": m{"id": "josh"}},
			"a conversation":           {"conversation": "s1"},
			"a conversation's object":  {"conversation": m{"id": "s1"}},
			"an earlier answer":        {"previous_response_id": "resp_1"},
			"Claude Code's user_id":    {"metadata": m{"user_id": `{"account_uuid":"josh","session_id":"s1"}`}},
			"a thread":                 {"metadata": m{"thread_id": "s1", "conversation_id": "s1", "chat_id": "s1"}},
			"a gateway's user in text": {"litellm_metadata": m{"user": "carol"}},
		} {
			tricks = append(tricks, trick{name: name, body: more})
		}
		// The victim recalls its memory, so a trick that works would recall it, too.
		if _, _, saw := w.say(question, victim("X-Graphiti-Memory", "recall")...); !strings.Contains(saw, "Zanzibar") {
			t.Fatalf("%s: the model saw %s for key B, want what key B said (Zanzibar)", ids, saw)
		}
		for g := range theirs { // a group's id in every header
			for _, h := range []string{"X-Graphiti-User", "X-Graphiti-Session", "X-Graphiti-Workspace", "X-Graphiti-Agent", "X-Graphiti-System-Actor"} {
				tricks = append(tricks, trick{name: h + " " + g, headers: []string{h, g}})
			}
		}
		w.say("Hello, it is A.", "Authorization", "Bearer sk-a") // from now on, the upstream has accepted the key
		for _, tc := range tricks {
			w.model.Forget()
			body := chat(user(question))
			for k, v := range tc.body {
				body[k] = v
			}
			headers := append([]string{"Authorization", "Bearer sk-a"}, tc.headers...)
			w.requestTo("/v1/chat/completions"+tc.path, body, headers...)
			saw := string(w.model.Requests()[0].Body)
			if strings.Contains(saw, "Zanzibar") || strings.Contains(saw, "Miso") {
				t.Errorf("%s, %s: for key A the model saw %q, want nothing that key B said", ids, tc.name, saw)
			}
		}
		w = w.restart() // stores the turns of A
		for g, n := range theirs {
			if now := len(w.heldIn(g)); now != n {
				t.Errorf("%s: group %s holds %d messages, want %d: key A wrote to it", ids, g, now, n)
			}
		}
		w.stop()
		t.Logf("%s: %d tricks", ids, len(tricks))
	}
}

// heldIn returns the messages of a group.
func (w *world) heldIn(group string) (rows []graphiti.Row) {
	w.t.Helper()
	for r, err := range w.remembers().backend.Memory.Rows(context.Background(), group, graphiti.Filter{Text: true}) {
		must(w.t, err)
		rows = append(rows, r)
	}
	return rows
}

// TestBotRecallsNoFactOfItsOwner checks that a bot recalls no fact of
// the person whose credential it uses, even if both send the same message.
func TestBotRecallsNoFactOfItsOwner(t *testing.T) {
	t.Parallel()
	for _, settings := range []map[string]string{{"identity.owner": "user:josh"}, {"identity.mode": "multi"}} {
		for _, session := range [][]string{nil, {"X-Graphiti-Session", "s1"}} {
			w := start(t, t.TempDir(), settings)
			as := func(more ...string) []string {
				return append(append([]string{"Authorization", "Bearer sk-b"}, session...), more...)
			}
			w.say(fact, as()...)
			w.delivered(1)
			if _, _, saw := w.say(question, as()...); !strings.Contains(saw, "Miso") {
				t.Fatalf("%v, %v: the model saw %s for the person, want the fact", settings, session, saw)
			}
			w.delivered(2)
			if _, _, saw := w.say(question, as("X-Graphiti-System-Actor", "nightly")...); strings.Contains(saw, "Miso") {
				t.Errorf("%v, %v: the model saw %s for the bot, want no fact of the person", settings, session, saw)
			}
			w.delivered(3) // the bot's own turn is stored, although the person sent the same text
			w.stop()
		}
	}
}

// TestAuditor checks that an auditor sees people, status and counts, and no text of others.
func TestAuditor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	users := "users:\n  - {id: josh, keys: [\"sha256:" + sha("sk-josh") + "\"]}\n  - {id: eve, auditor: true, keys: [\"sha256:" + sha("sk-eve") + "\"]}\n"
	writeFile(t, file, users)
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "identity.group_ids": "raw", "admin.token": "secret", "identity.users_file": file})
	w.say("My cat is called Miso.", "Authorization", "Bearer sk-josh")
	waitUntil(t, "the turn", func() bool { return w.app.memory().queue().Delivered > 0 })
	read := func(key, path string) int {
		t.Helper()
		req, _ := http.NewRequest(http.MethodGet, "http://"+w.app.admin.Addr().String()+"/api/v1/"+path, http.NoBody)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := w.client.Do(req)
		must(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for _, path := range []string{"status", "queue", "memory/retention"} {
		if status := read("sk-eve", path); status != http.StatusOK {
			t.Errorf("%s: got %d, want 200", path, status)
		}
		if status := read("sk-josh", path); status != http.StatusForbidden {
			t.Errorf("%s of another person: got %d, want 403", path, status)
		}
	}
	if status, answer := w.asks("sk-eve", "memory/people", m{}); status != http.StatusOK || !strings.Contains(answer, "user:josh") || strings.Contains(answer, "Miso") {
		t.Errorf("people: got %d %s", status, answer)
	}
	for operation, in := range map[string]m{
		"memory/show": {"user": "josh"}, "memory/search": {"user": "josh", "query": "cat"}, "memory/list": {"user": "josh"}, "memory/history": {"user": "josh"},
		"memory/forget": {"group": "user_josh"}, "memory/groups": {"user": "josh"}, "registry/accept": {"id": "josh"}, "queue/drop": {"numbers": []int{1}},
	} {
		if status, answer := w.asks("sk-eve", operation, in); status != http.StatusForbidden || strings.Contains(answer, "Miso") {
			t.Errorf("%s: got %d %s, want 403", operation, status, answer)
		}
	}
	for _, path := range []string{"memory/export?group=user_josh", "queue/turns?text=true"} {
		if status := read("sk-eve", path); status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", path, status)
		}
	}
}

// TestAuditorNeedsMultiMode checks that config check names the mode that keys of auditors need.
func TestAuditorNeedsMultiMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "users.yaml")
	writeFile(t, file, "users:\n  - {id: eve, auditor: true, keys: [\"sha256:"+sha("sk-eve")+"\"]}\n")
	for mode, want := range map[string]bool{"single": true, "multi": false} {
		out, err := command(t, dir, "config", "check", "--set", "identity.users_file="+file, "--set", "identity.mode="+mode)
		if err != nil || strings.Contains(out, "auditors open the admin side only with identity.mode: multi") != want {
			t.Errorf("%s: %v, %s", mode, err, out)
		}
	}
}
