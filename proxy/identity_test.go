package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// recorded is what a client sends of itself, as it was recorded, reduced to
// what tells who speaks and where.
type recorded struct {
	client, path string
	headers      map[string]string
	body         string
	session      string // keys that it must come to; empty: none
	user         string
	workspace    string
	actor, agent string
}

const chatPath = "/v1/chat/completions"

// said is a body with some members and a system prompt.
func said(members, system string) string {
	if members != "" {
		members += ","
	}
	return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"system","content":%q},{"role":"user","content":"hello"}]}`, members, system)
}

var recordedClients = []recorded{
	{client: "OpenAI SDK", path: chatPath, headers: map[string]string{"User-Agent": "OpenAI/JS 6.30.1"}, body: said("", "Be brief.")},
	{client: "OpenAI SDK with user", path: chatPath, body: said(`"user":"ann","metadata":{"session_id":"chat-9"}`, ""), session: "session:chat-9", user: "user:ann"},
	{client: "OpenAI SDK with safety_identifier", path: chatPath, body: said(`"safety_identifier":"hash-1","user":"ann"`, ""), user: "user:hash-1"},
	{client: "prompt_cache_key that many share", path: chatPath, body: said(`"prompt_cache_key":"my-app"`, "")},
	{client: "AI SDK with a conversation's cache key", path: chatPath, body: said(`"prompt_cache_key":"01a1fb72-d43b-7710-b778-d63b3585d1dc"`, ""), session: "session:01a1fb72-d43b-7710-b778-d63b3585d1dc"},
	{client: "opencode 1.18", path: chatPath, headers: map[string]string{"User-Agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14", "x-session-affinity": "ses_e048776adffeJLVywTK2jw7fdK", "x-session-id": "ses_e048776adffeJLVywTK2jw7fdK"},
		body: said("", "You are a coding agent.\n<env>\n  Working directory: /nowhere/widgets\n  Is directory a git repo: yes\n</env>"), session: "session:ses_e048776adffeJLVywTK2jw7fdK"},
	{client: "opencode, subagent", path: chatPath, headers: map[string]string{"x-session-id": "ses_child", "x-parent-session-id": "ses_parent"}, body: said("", ""), session: "session:ses_parent"},
	{client: "Kilo, title", path: chatPath, headers: map[string]string{"x-session-id": "title-ses_1"}, body: said("", ""), session: "session:ses_1"},
	{client: "Codex 0.169, by its headers", path: chatPath, headers: map[string]string{"originator": "codex_exec", "session-id": "01a1fb72-d43b-7710-b778-d63b3585d1dc", "x-client-request-id": "never", "x-codex-window-id": "01a1fb72:0",
		"x-codex-turn-metadata": `{"turn_id":"t","workspaces":{"/home/dev/widgets":{"associated_remote_urls":{"origin":"https://github.com/acme/widgets.git"},"latest_git_commit_hash":"3a31ddaab3a8e0fee85dbb10be71711d53e8f046","has_changes":false}}}`},
		body: said("", ""), session: "session:01a1fb72-d43b-7710-b778-d63b3585d1dc", workspace: "github_repo:github.com/acme/widgets"},
	{client: "session-id of another client", path: chatPath, headers: map[string]string{"session-id": "abc"}, body: said("", "")},
	{client: "Claude Code 2.1, by its headers", path: chatPath, headers: map[string]string{"X-Claude-Code-Session-Id": "921a1796-0141-4549-862e-e80728a00c7b"},
		body: said(`"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"921a1796-0141-4549-862e-e80728a00c7b\"}"}`, ""), session: "session:921a1796-0141-4549-862e-e80728a00c7b"},
	{client: "Claude Code with an account", path: chatPath, body: said(`"metadata":{"user_id":"{\"account_uuid\":\"acc-1\",\"session_id\":\"s-1\"}"}`, ""), session: "session:s-1", user: "user:claude:acc-1"},
	{client: "Claude Code 1.0", path: chatPath, body: said(`"metadata":{"user_id":"user_`+strings.Repeat("0f", 32)+`_account__session_921a1796-0141-4549-862e-e80728a00c7b"}`, ""), session: "session:921a1796-0141-4549-862e-e80728a00c7b"},
	{client: "Copilot CLI", path: chatPath, body: said("", "You are a CLI.\n* Current working directory: /nowhere/x\n* Git repository: acme/widgets\n"), workspace: "github_repo:github.com/acme/widgets"},
	{client: "Open WebUI", path: chatPath, headers: map[string]string{"X-OpenWebUI-User-Id": "ow-1", "X-OpenWebUI-User-Email": "a@b.c", "X-OpenWebUI-Chat-Id": "chat-1"}, body: said("", ""), session: "session:chat-1", user: "user:openwebui:ow-1"},
	{client: "LiteLLM", path: chatPath, headers: map[string]string{"x-litellm-end-user-id": "eu", "x-litellm-customer-id": "cu", "x-litellm-session-id": "ls", "x-litellm-agent-id": "ag"}, body: said(`"user":"no"`, ""), session: "session:ls", user: "user:litellm:cu", agent: "ag"},
	{client: "LibreChat", path: chatPath, headers: map[string]string{"x-librechat-conversation-id": "conv-12345"}, body: said(`"user":"66f0c0ffee"`, ""), session: "session:conv-12345", user: "user:66f0c0ffee"},
	{client: "Goose", path: chatPath, headers: map[string]string{"User-Agent": "goose/1.9", "agent-session-id": "20261121_1"}, body: said(`"user":"20261121_1"`, ""), session: "session:20261121_1"},
	{client: "a session sent as user", path: chatPath, headers: map[string]string{"x-session-id": "abc"}, body: said(`"user":"abc"`, ""), session: "session:abc"},
	{client: "query", path: chatPath + "?userId=q%20u", body: said("", ""), user: "user:q u"},
	{client: "our own headers come first", path: chatPath, headers: map[string]string{"X-Graphiti-User": "github_login:OctoCat", "X-Graphiti-Session": "mine", "X-Graphiti-Workspace": "git@github.com:acme/app.git", "X-Graphiti-Agent": "ava", "x-session-id": "other", "X-OpenWebUI-User-Id": "other"},
		body: said(`"user":"other"`, ""), session: "session:mine", user: "github_login:octocat", workspace: "github_repo:github.com/acme/app", agent: "ava"},
	{client: "nothing that is no text", path: chatPath, body: said(`"user":null,"safety_identifier":null,"session_id":null,"conversation":null,"litellm_session_id":17,"metadata":{"user_id":null,"session_id":{}},"prompt_cache_key":null,"litellm_metadata":null`, "")},
	{client: "null beside a name", path: chatPath, body: said(`"safety_identifier":null,"user":"ann"`, ""), user: "user:ann"},
	{client: "Responses API, a conversation", path: "/v1/responses", body: `{"model":"m","conversation":{"id":"conv_1"},"input":"hello"}`, session: "session:conv_1"},
	{client: "a person who is called like their chat", path: chatPath, headers: map[string]string{"X-Graphiti-User": "4711", "X-Graphiti-Session": "4711"}, body: said("", ""), session: "session:4711", user: "user:4711"},
	{client: "a bot", path: chatPath, headers: map[string]string{"X-Graphiti-System-Actor": "pr-remediator"}, body: said("", ""), actor: "pr-remediator"},
	{client: "a person who talks of directories", path: chatPath, body: `{"model":"m","messages":[{"role":"user","content":"Working directory: /home\n* Git repository: evil/repo"},{"role":"tool","tool_call_id":"1","content":"Working directory: /root"}]}`},
}

// id32 are the digits of a canonical group id, made without the code under
// test.
func id32(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// TestClientsModesAndTricks: every recorded client, in every mode, with every
// trick, against the group ids that it reads and writes.
func TestClientsModesAndTricks(t *testing.T) {
	const key = "sk-caller"
	full := sha256.Sum256([]byte(key))
	digits := hex.EncodeToString(full[:])
	tenant := tenant64("credential", digits)
	registry := &Registry{}
	registry.Set([]Person{{ID: "josh", Keys: []string{"sha256:" + digits}}})
	trusted, err := NewFingerprints([]string{key})
	if err != nil {
		t.Fatal(err)
	}
	modes := []struct {
		name     string
		identity Identity
		person   func(claimed string) string // the person's key
		below    func(person, key string) string
		proven   bool
	}{
		{"single", Identity{Owner: "user:owner"}, func(c string) string { return or(c, "user:owner") }, func(_, k string) string { return k }, true},
		{"multi", Identity{Multi: true}, func(c string) string { return or(c, "user:credential") }, func(_, k string) string { return "tenant:" + tenant + "|" + k }, false},
		{"multi, registered", Identity{Multi: true, People: registry}, func(string) string { return "user:josh" }, personal, true},
		{"multi, gateway", Identity{Multi: true, Trusted: trusted, BodyUsers: true}, func(c string) string { return c }, personal, true},
	}
	tricks := []struct {
		name    string
		headers map[string]string
		apply   func(*recorded)
	}{
		{"none", nil, func(*recorded) {}},
		{"claims a person", map[string]string{"X-Graphiti-User": "mallory"}, func(r *recorded) { r.user = "user:mallory" }},
		{"claims a session", map[string]string{"X-Graphiti-Session": "stolen"}, func(r *recorded) {
			if r.session == "session:abc" { // it is not the user's name any more
				r.user = "user:abc"
			}
			r.session = "session:stolen"
		}},
		{"claims a workspace", map[string]string{"X-Graphiti-Workspace": "https://user:pw@GitHub.com/acme/other.git"}, func(r *recorded) { r.workspace = "github_repo:github.com/acme/other" }},
		{"claims nonsense", map[string]string{"X-Graphiti-User": strings.Repeat("x", 600), "X-Graphiti-Session": "\x01", "X-Graphiti-Agent": "a|b"}, func(*recorded) {}},
	}
	n := 0
	for _, rec := range recordedClients {
		for _, mode := range modes {
			for _, trick := range tricks {
				want := rec
				trick.apply(&want)
				header := map[string][]string{"Authorization": {"Bearer " + key}}
				for k, v := range rec.headers {
					header[k] = []string{v}
				}
				own := rec.headers["X-Graphiti-User"] != ""
				for k, v := range trick.headers {
					header[k] = []string{v}
				}
				if own && trick.name == "claims nonsense" {
					continue // it would replace what the client says itself
				}
				namer := graphiti.Namer{}
				if namer.Recall, err = graphiti.ParseScopes([]string{"session", "workspace", "user", "agent"}); err != nil {
					t.Fatal(err)
				}
				namer.Ingest = namer.Recall
				e := (&Memory{Identity: mode.identity, Recall: true, Ingest: true}).Explain(namer, rec.path, header, []byte(rec.body))
				person := mode.person(want.user)
				var groups, reads []graphiti.Target
				add := func(s graphiti.Scope, key string) {
					group := func(key string) graphiti.Target {
						return graphiti.Target{Scope: s, Group: "graphiti_" + string(s) + "_" + id32(key)}
					}
					groups, reads = append(groups, group(key)), append(reads, group(key))
					for now, before := range map[string]string{tenant: digits, tenant64("person", person): hash64("person:" + person)} {
						if rest, ok := strings.CutPrefix(key, "tenant:"+now+"|"); ok {
							reads = append(reads, group("tenant:"+before+"|"+rest))
						}
					}
				}
				switch {
				case want.actor != "" && mode.name == "multi, gateway" && person == "":
					add(graphiti.ScopeSystem, "tenant:"+tenant+"|system:"+want.actor)
				case person == "":
				case want.actor != "":
					add(graphiti.ScopeSystem, mode.below(person, "system:"+want.actor))
				default:
					if want.session != "" {
						add(graphiti.ScopeSession, mode.below(person, want.session))
					}
					if want.workspace != "" {
						add(graphiti.ScopeWorkspace, mode.below(person, want.workspace))
					}
					self := func(k string) string {
						if mode.proven {
							return k
						}
						return mode.below(person, k)
					}
					add(graphiti.ScopeUser, self(person))
					if want.agent != "" {
						add(graphiti.ScopeAgent, self("agent:"+want.agent+"|"+person))
					}
				}
				writes := groups
				if rec.headers["x-parent-session-id"] != "" { // what a subagent is told comes from a model
					writes = nil
				}
				if diff := cmp.Diff([][]graphiti.Target{reads, writes}, [][]graphiti.Target{e.Reads, e.Writes}); diff != "" {
					t.Errorf("%s, %s, %s (-want +got):\n%s%+v", rec.client, mode.name, trick.name, diff, e.Claims)
				}
				n++
			}
		}
	}
	t.Logf("%d cases", n)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// personal is a key below a person who is proven.
func personal(person, key string) string {
	return "tenant:" + tenant64("person", person) + "|" + key
}

func hash64(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// tenant64 are the digits of a tenant, made without the code under test: each
// part behind its length in eight bytes.
func tenant64(parts ...string) string {
	text := ""
	for _, p := range append([]string{"graphiti-proxy.identity.2"}, parts...) {
		text += fmt.Sprintf("\x00\x00\x00\x00\x00\x00%c%c", len(p)>>8, len(p)&0x7f) + p
	}
	return hash64(text)
}

// TestNamesOfTheRegistry: a person is found by each of their identities, in any
// case where the platform tells none apart, and by no other name.
func TestNamesOfTheRegistry(t *testing.T) {
	registry := &Registry{}
	registry.Set([]Person{
		{ID: "josh", Identities: map[string]string{"openwebui": "Josh@example.com", "github": "Octocat", "slack": "U1"}},
		{ID: "ann", Identities: map[string]string{"openwebui": "ow-ann"}},
		{ID: "off", Off: true, Identities: map[string]string{"litellm": "off@example.com"}},
	})
	const id, mail = "X-OpenWebUI-User-Id", "X-OpenWebUI-User-Email"
	for _, tc := range []struct {
		name    string
		headers map[string]string
		user    string
		off     bool
	}{
		{"an e-mail address beside an id", map[string]string{id: "5f2c", mail: "josh@example.com"}, "user:josh", false},
		{"in another case", map[string]string{id: "5f2c", mail: "JOSH@Example.com"}, "user:josh", false},
		{"alone", map[string]string{mail: "josh@example.com"}, "user:josh", false},
		{"the id comes first", map[string]string{id: "ow-ann", mail: "josh@example.com"}, "user:ann", false},
		{"neither is registered", map[string]string{id: "5f2c", mail: "eve@example.com"}, "user:openwebui:5f2c", false},
		{"another name counts", map[string]string{"X-Graphiti-User": "eve", mail: "josh@example.com"}, "user:eve", false},
		{"a key's person", map[string]string{"x-litellm-user_api_key_user_id": "u1", "x-litellm-user_api_key_user_email": "off@example.com"}, "user:off", true},
		{"a key's person is not whom it serves", map[string]string{"x-litellm-end-user-id": "eve", "x-litellm-user_api_key_user_email": "off@example.com"}, "user:litellm:eve", false},
		{"a login", map[string]string{"X-Graphiti-User": "github:OCTOCAT"}, "user:josh", false},
		{"a login in capitals", map[string]string{"X-Graphiti-User": "GitHub:Octocat"}, "user:josh", false},
		{"a login by its key", map[string]string{"X-Graphiti-User": "github_login:octocat"}, "user:josh", false},
		{"a login that is not registered", map[string]string{"X-Graphiti-User": "github:Eve"}, "user:github:eve", false},
		{"other platforms tell cases apart", map[string]string{"X-Graphiti-User": "slack:u1"}, "user:slack:u1", false},
	} {
		headers := make(map[string][]string)
		for k, v := range tc.headers {
			headers[k] = []string{v}
		}
		e := (&Memory{Recall: true, Ingest: true, Identity: Identity{Owner: "user:o", People: registry}}).Explain(graphiti.Namer{}, chatPath, headers, []byte(said("", "")))
		if got := e.Claims[claimUser].Key; got != tc.user || (e.Off != "") != tc.off {
			t.Errorf("%s: %s, off %q", tc.name, got, e.Off)
		}
	}
}

// TestTemporaryChatIsNotKept: Open WebUI's, which begin with local:.
func TestTemporaryChatIsNotKept(t *testing.T) {
	e := (&Memory{Identity: Identity{Owner: "user:o"}, Recall: true, Ingest: true}).Explain(graphiti.Namer{}, chatPath, map[string][]string{"X-OpenWebUI-Chat-Id": {"local:1"}}, []byte(said("", "")))
	if len(e.Writes) != 0 || len(e.Reads) == 0 {
		t.Errorf("%+v", e)
	}
	e = (&Memory{Identity: Identity{Owner: "user:o"}, Recall: true, Ingest: true}).Explain(graphiti.Namer{}, chatPath, map[string][]string{"X-OpenWebUI-Chat-Id": {"local:1"}, "x-litellm-session-id": {"s"}}, []byte(said("", "")))
	if len(e.Writes) != 0 || len(e.Reads) == 0 {
		t.Errorf("beside another session: %+v", e)
	}
}

// TestSeveralCredentials: an empty one is none, and those that differ count
// together, so that nobody is taken for who shares one of them.
func TestSeveralCredentials(t *testing.T) {
	of := func(lines ...string) string {
		var h fasthttp.RequestHeader
		for i := 0; i < len(lines); i += 2 {
			h.Add(lines[i], lines[i+1])
		}
		shown := credentialsOf(&h)
		if len(shown.fingerprints) == 0 {
			return ""
		}
		var w graphiti.Who
		w.SetCredentials(shown.fingerprints...)
		return w.Tenant
	}
	for _, tc := range []struct {
		name string
		a, b []string
		same bool
	}{
		{"one key in any header", []string{"Authorization", "Bearer k"}, []string{"X-Api-Key", "k"}, true},
		{"the same key twice", []string{"Authorization", "bearer k", "Api-Key", "k"}, []string{"Api-Key", "k"}, true},
		{"an empty bearer", []string{"Authorization", "Bearer ", "X-Api-Key", "a"}, []string{"Authorization", "Bearer ", "X-Api-Key", "b"}, false},
		{"an empty bearer is none", []string{"Authorization", "Bearer", "X-Api-Key", "a"}, []string{"X-Api-Key", "a"}, true},
		{"a dummy that all have", []string{"Authorization", "Bearer dummy", "Api-Key", "a"}, []string{"Authorization", "Bearer dummy", "Api-Key", "b"}, false},
		{"a dummy, and who has nothing else", []string{"Authorization", "Bearer dummy", "Api-Key", "a"}, []string{"Authorization", "Bearer dummy"}, false},
		{"two of one header", []string{"Authorization", "Bearer x", "Authorization", "Bearer y"}, []string{"Authorization", "Bearer x"}, false},
		{"the order of headers", []string{"Api-Key", "a", "X-Api-Key", "b"}, []string{"X-Api-Key", "a", "Api-Key", "b"}, true},
		{"another scheme is part of it", []string{"Authorization", "Basic k"}, []string{"Authorization", "Bearer k"}, false},
	} {
		if a, b := of(tc.a...), of(tc.b...); a == "" || b == "" || (a == b) != tc.same {
			t.Errorf("%s: %s, %s", tc.name, a, b)
		}
	}
	if got := of("Authorization", "Bearer ", "X-Api-Key", " "); got != "" {
		t.Errorf("nothing is a credential: %s", got)
	}
}

// TestRequestsOfWebPages: in single mode a page of the web has no memory,
// neither by its origin nor by a name that its server resolves to this machine.
func TestRequestsOfWebPages(t *testing.T) {
	for _, tc := range []struct {
		host, origin string
		web          bool
	}{
		{"127.0.0.1:8787", "", false},
		{"localhost:8787", "", false},
		{"LOCALHOST", "", false},
		{"[::1]:8787", "", false},
		{"127.0.0.53:1", "", false},
		{"memory.localhost:8787", "", false},
		{"host.docker.internal:8787", "", false},
		{"127.0.0.1:8787", "http://localhost:3000", false},
		{"127.0.0.1:8787", "chrome-extension://abc", false},
		{"127.0.0.1:8787", "tauri://localhost", false},
		{"evil.example:8787", "", true},
		{"127.0.0.1.evil.example", "", true},
		{"localhost.evil.example:8787", "", true},
		{"192.0.2.1:8787", "", true},
		{"127.0.0.1:8787", "https://evil.example", true},
		{"127.0.0.1:8787", "http://127.0.0.1.evil.example", true},
		{"127.0.0.1:8787", "null", true},
		{"127.0.0.1:8787", "NULL", true},
		{"127.0.0.1:8787", "localhost", true},
		{"127.0.0.1:8787", "//localhost", true},
		{"127.0.0.1:8787", "file://", true},
		{"127.0.0.1:8787", "http://localhost:3000/page", true},
		{"127.0.0.1:8787", "http://localhost@evil.example", true},
		{"127.0.0.1:8787", "http://evil@localhost", true},
		{"127.0.0.1:8787", "http://localhost https://evil.example", true},
		{"127.0.0.1:8787", "http://localhost, https://evil.example", true},
		{"127.0.0.1:8787", "%", true},
	} {
		var h fasthttp.RequestHeader
		h.SetHost(tc.host)
		if tc.origin != "" {
			h.Set("Origin", tc.origin)
		}
		if got := fromWeb(&h); got != tc.web {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	for _, tc := range []struct {
		lines []string
		web   bool
	}{
		{[]string{"Sec-Fetch-Site", "cross-site"}, true},
		{[]string{"Sec-Fetch-Site", " Cross-Site "}, true},
		{[]string{"Sec-Fetch-Site", "none", "Sec-Fetch-Site", "cross-site"}, true},
		{[]string{"Sec-Fetch-Site", "cross-site", "Origin", "http://localhost:3000"}, true},
		{[]string{"Sec-Fetch-Site", "same-origin"}, false},
		{[]string{"Sec-Fetch-Site", "none"}, false},
		{[]string{"Origin", "http://localhost", "Origin", "https://evil.example"}, true},
		{[]string{"Origin", "http://localhost", "Origin", "http://localhost"}, true},
		{[]string{"Origin", ""}, true},
	} {
		var h fasthttp.RequestHeader
		h.SetHost("127.0.0.1:8787")
		for i := 0; i < len(tc.lines); i += 2 {
			h.Add(tc.lines[i], tc.lines[i+1])
		}
		if got := fromWeb(&h); got != tc.web {
			t.Errorf("%q: %v", tc.lines, got)
		}
	}
}

// TestHeadersThatContradictThemselves name nobody: whoever appends to what
// another has written is not believed, and the request has no memory. The same
// value twice says one thing.
func TestHeadersThatContradictThemselves(t *testing.T) {
	trusted, err := NewFingerprints([]string{"sk-gateway"})
	if err != nil {
		t.Fatal(err)
	}
	people := &Registry{}
	people.Set([]Person{{ID: "josh", Keys: []string{graphiti.Fingerprint([]byte("sk-josh"))}}})
	values := map[string][2]string{"X-Litellm-User_api_key_user_id": {"u-1", "u-2"}, "X-Acme-Session-Id": {"session-1", "session-2"}}
	for name := range headerIDs {
		if _, ok := values[name]; !ok {
			values[name] = [2]string{"ann", "bob"}
		}
	}
	for name, v := range values {
		for _, key := range []string{"sk-gateway", "sk-any", "sk-josh", ""} {
			for _, twice := range []bool{true, false} {
				second := v[0]
				if twice {
					second = v[1]
				}
				header := map[string][]string{name: {v[0], second}, "Authorization": {"Bearer " + key}, "User-Agent": {"codex_cli_rs/0.98"}}
				if key == "sk-gateway" && name != "X-Graphiti-User" && strings.HasPrefix(name, "X-Graphiti-") {
					header["X-Graphiti-User"] = []string{"carol"}
				}
				id := Identity{Multi: key != "", Owner: "user:o", Trusted: trusted, People: people}
				var h fasthttp.RequestHeader
				for n, list := range header {
					for _, one := range list {
						h.Add(n, one)
					}
				}
				var cl claimant
				c := id.who(&cl, &h, &inject.Conversation{Last: -1})
				user := slices.ContainsFunc(userSources, func(s Source) bool { return s.header == name })
				if want := twice && (key != "sk-josh" || !user); c.Contradicts != want || want && c.Known {
					t.Errorf("%s, key %q, twice %v: contradicts %v, known %v", name, key, twice, c.Contradicts, c.Known)
				}
				if key == "sk-josh" && user && (!c.Known || c.Who.User != "user:josh") {
					t.Errorf("%s: a registered person is %+v", name, c)
				}
			}
		}
	}
	people.Set([]Person{{ID: "ann", Identities: map[string]string{"openwebui": "ann@example.com"}}})
	var h fasthttp.RequestHeader
	for _, line := range [][2]string{{"Authorization", "Bearer sk-gateway"}, {"X-OpenWebUI-User-Id", "5f2c"}, {"X-OpenWebUI-User-Email", "ann@example.com"}, {"X-OpenWebUI-User-Email", "bob@example.com"}} {
		h.Add(line[0], line[1])
	}
	id := Identity{Multi: true, Trusted: trusted, People: people}
	if c := id.who(&claimant{}, &h, &inject.Conversation{Last: -1}); !c.Contradicts || c.Known {
		t.Errorf("two addresses beside an id: %+v", c)
	}
	e := (&Memory{Recall: true, Ingest: true, Identity: Identity{Owner: "user:o"}}).Explain(graphiti.Namer{}, chatPath+"?userId=a&userId=b", nil, []byte(said("", "")))
	if e.Off == "" || len(e.Reads)+len(e.Writes) > 0 {
		t.Errorf("two people in the query: %+v", e)
	}
}

// TestBodyNamesNobodyBehindAGateway, unless the operator says that the
// gateway's callers do not choose it.
func TestBodyNamesNobodyBehindAGateway(t *testing.T) {
	trusted, err := NewFingerprints([]string{"sk-gateway"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, members string }{
		{chatPath + "?userId=josh", ""},
		{chatPath, `"user":"josh"`},
		{chatPath, `"safety_identifier":"josh"`},
		{chatPath, `"metadata":{"user_id":"josh"}`},
		{chatPath, `"litellm_metadata":{"user":"josh"}`},
	} {
		for _, allowed := range []bool{false, true} {
			m := &Memory{Recall: true, Ingest: true, Identity: Identity{Multi: true, Trusted: trusted, BodyUsers: allowed}}
			header := map[string][]string{"Authorization": {"Bearer sk-gateway"}}
			e := m.Explain(graphiti.Namer{}, tc.path, header, []byte(said(tc.members, "")))
			if named := e.Claims[claimUser].Key != ""; named != allowed || (len(e.Reads) > 0) != allowed {
				t.Errorf("%+v, allowed %v: %+v", tc, allowed, e)
			}
			header["Authorization"] = []string{"Bearer sk-any"} // which names people below itself
			if e = m.Explain(graphiti.Namer{}, tc.path, header, []byte(said(tc.members, ""))); e.Claims[claimUser].Key == "user:credential" {
				t.Errorf("%+v: below a credential of its own: %+v", tc, e)
			}
		}
	}
}

// TestMemoryHeader: the most careful reading of it counts.
func TestMemoryHeader(t *testing.T) {
	for _, tc := range []struct {
		values         []string
		recall, ingest bool
	}{
		{nil, true, true},
		{[]string{"on"}, true, true},
		{[]string{" Recall "}, true, false},
		{[]string{"ingest"}, false, true},
		{[]string{"off"}, false, false},
		{[]string{"off, off"}, false, false},
		{[]string{"on", "off"}, false, false},
		{[]string{"recall,ingest"}, false, false},
		{[]string{"OFF;"}, false, false},
		{[]string{"none"}, false, false},
		{[]string{"false"}, false, false},
		{[]string{""}, true, true},
	} {
		e := (&Memory{Identity: Identity{Owner: "user:o"}, Recall: true, Ingest: true}).Explain(graphiti.Namer{}, chatPath, map[string][]string{memoryHeader: tc.values}, []byte(said("", "")))
		if len(e.Reads) > 0 != tc.recall || len(e.Writes) > 0 != tc.ingest {
			t.Errorf("%q: reads %d, writes %d (%s)", tc.values, len(e.Reads), len(e.Writes), e.Off)
		}
	}
}

// TestExplanationFollowsTheConfiguration and what a request is for.
func TestExplanationFollowsTheConfiguration(t *testing.T) {
	title := `{"model":"m","messages":[{"role":"user","content":"hello"}],"input":0}`
	for _, tc := range []struct {
		name          string
		memory        Memory
		header        string
		reads, writes bool
		off           string
	}{
		{"all", Memory{Recall: true, Ingest: true}, "", true, true, ""},
		{"recall alone", Memory{Recall: true}, "", true, false, ""},
		{"ingest alone", Memory{Ingest: true}, "", false, true, ""},
		{"neither", Memory{}, "", false, false, "recall.enabled and ingest.enabled"},
		{"no consent", Memory{Off: inject.ReasonConsent, Recall: true, Ingest: true}, "", false, false, "consent"},
		{"a title", Memory{Recall: true, Ingest: true}, "auxiliary", false, false, "title"},
		{"a subagent", Memory{Recall: true, Ingest: true}, "subagent", true, false, ""},
	} {
		tc.memory.Identity.Owner = "user:o"
		header := map[string][]string{}
		if tc.header != "" {
			header["X-Claude-Code-Request-Class"] = []string{tc.header}
		}
		e := tc.memory.Explain(graphiti.Namer{}, chatPath, header, []byte(title))
		if len(e.Reads) > 0 != tc.reads || len(e.Writes) > 0 != tc.writes || e.Off != tc.off {
			t.Errorf("%s: %+v", tc.name, e)
		}
	}
}

// identityNotes end docs/identity.md.
const identityNotes = `
## What contradicts itself

A header of these tables that stands twice, with different values, names nobody: such a request has no memory (` + "`off; reason=untrusted`" + `). The same value twice is fine. A person whom ` + "`identity.users_file`" + ` knows by the credential stays that person.

In single mode a request that a page of the web may have sent has no memory either: ` + "`Sec-Fetch-Site: cross-site`" + `, an ` + "`Origin`" + ` of another machine, several of them, or one that cannot be read (` + "`null`" + ` is one).

## Tenants

In multi mode conversations and projects, and persons whom nobody vouches for, lie below a tenant. It is a SHA-256 over ` + "`graphiti-proxy.identity.2`" + `, the kind (` + "`credential`, `credentials`, `person`" + `) and its parts, each behind its length in eight bytes, so that no credential can be spelt so that it is a person or several credentials. The parts are the SHA-256 of a credential in hex digits, those of several credentials in order, or a person's key.

**Old groups.** The first version named tenants otherwise. Groups with those names are still read by recall, ` + "`memory show`, `search` and `export`" + `, and deleted by ` + "`memory forget`" + `, canonical and raw ones; new turns are written to new groups alone. That is one more search for each scope that has a tenant in its name: none in single mode, none for a person's own group. A credential that begins with ` + "`person:`" + `, or looks like several fingerprints, finds no old groups, because they could be another's. What such a credential wrote into them before cannot be told apart.

` + "`memory forget --credential sha256:<hex>`" + ` takes several with commas between them, for callers who send several together.

## Credentials that an upstream accepts

An answer 401 or 403 has no ` + "`X-Graphiti-Memory`" + ` header, and nothing of its request is kept.

In multi mode a credential is searched with nobody's memory (` + "`empty; facts=0`" + `) until an upstream has answered it with a 2xx once. That is remembered in the state store, for the 100,000 tenants that were accepted last. Keys in ` + "`identity.trusted_keys` and `identity.users_file`" + ` need no such proof. A new credential has no memory of its own yet, so that nobody loses anything, but for one request of each credential after the update that brought this, or after the state was lost. That request's message stays without a block; blocks that a conversation was given before are repeated.
`

// TestReferenceOfSources keeps docs/identity.md current: UPDATE=1 writes it.
func TestReferenceOfSources(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Who a request is from\n\nThe first source that says something counts. `graphiti-proxy status --header … --body …` explains it for a request.\n")
	for _, table := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n| source | note |\n| --- | --- |\n", strings.ToUpper(table.What[:1])+table.What[1:])
		for _, s := range table.Sources {
			note := s.Note
			if s.Platform != "" {
				note = strings.TrimPrefix(note+"; a person is `user:"+s.Platform+":<id>`", "; ")
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", s.Name, note)
		}
		switch table.What {
		case "session":
			b.WriteString("\nThen the conversation itself: after a turn it is known how the next request begins: with the same messages of the person and the same answers to them, in the same directory or workspace. An answer before the first message of the person, such as a greeting, does not count.\n\nA session belongs to a person and a workspace: where the same id is used in two projects, what was decided and what is remembered in one of them is not used in the other. A request that names its directory is in that one. One that does not is where its session was, by its id or by the answer that it refers to.\n")
		case "user":
			b.WriteString("\nBehind a key in `identity.trusted_keys` only headers name a person: what stands in the body or in `?userId=` a gateway passes on as its caller wrote it. `identity.body_users` lets those sources count too, for servers that write the body themselves ([OpenAI SDKs](../deploy/recipes/openai-sdks.md)).\n")
			b.WriteString("\nThen `identity.owner` (single mode) or the credential (multi mode). In multi mode a name lies below the credential it came with, unless the credential is in `identity.trusted_keys`, or `identity.users_file` gives it to a person, who then is that person whatever the request says.\n")
		case "workspace":
			b.WriteString("\nThe working directory is the one that the client's own prompt names (Claude Code, opencode, Copilot, Cline, Continue, pi, Roo, Kilo, Qwen Code, Codex): in a turn of the conversation, only where that client writes it itself, and Codex's last. Where a file of the repository may have written it, there is no memory (`reason=untrusted`). Clones that came from one address share, however it is written down, if they share its history: [privacy.md](privacy.md) says what a hostile repository can and cannot do. A file `.graphiti-proxy-ignore` and `workspace.ignored` count for all of these, and not only for the one that names the project.\n")
		}
	}
	b.WriteString(identityNotes)
	path := filepath.Join("..", "docs", "identity.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { // #nosec G306 -- documentation
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/identity.md is not current; run UPDATE=1 go test ./proxy -run Reference (%v)", err)
	}
	if len(headerIDs) > maxHeaders {
		t.Errorf("%d headers", len(headerIDs))
	}
}
