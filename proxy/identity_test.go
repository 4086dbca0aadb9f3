package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// recorded is a recorded request of a client, reduced to the parts that identify the
// person, the session and the workspace, with the expected keys.
type recorded struct {
	client, path string
	headers      map[string]string
	body         string
	session      string // expected key, like user and workspace, or "" if there is none
	user         string
	workspace    string
	actor, agent string
}

const chatPath = "/v1/chat/completions"

// said returns a chat body with the given members and system prompt.
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
		body: said("", "You are a coding agent.\n<env>\n  Working directory: /nowhere/widgets\n  Is directory a git repo: yes\n</env>"), session: "session:ses_e048776adffeJLVywTK2jw7fdK", workspace: "path:/nowhere/widgets"},
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

// id32 returns the digits of a canonical group id, computed without the code under test.
func id32(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// TestClientsModesAndTricks checks the groups that each recorded client reads and writes,
// in every mode and with every set of forged headers.
func TestClientsModesAndTricks(t *testing.T) {
	const key = "sk-caller"
	full := sha256.Sum256([]byte(key))
	digits := hex.EncodeToString(full[:])
	tenant := tenant64("credential", digits)
	registry := &identity.Registry{}
	registry.Set([]identity.Person{{ID: "josh", Keys: []string{"sha256:" + digits}}})
	trusted := identity.NewFingerprints([]string{key})
	modes := []struct {
		name     string
		identity identity.Settings
		person   func(claimed string) string // the person's key
		below    func(person, key string) string
		proven   bool
	}{
		{"single", identity.Settings{Owner: "user:owner", BodyUsers: true}, func(c string) string { return or(c, "user:owner") }, func(_, k string) string { return k }, true},
		{"multi", identity.Settings{Multi: true}, func(c string) string { return or(c, "user:credential") }, func(_, k string) string { return "tenant:" + tenant + "|" + k }, false},
		{"multi, registered", identity.Settings{Multi: true, People: registry}, func(string) string { return "user:josh" }, personal, true},
		{"multi, gateway", identity.Settings{Multi: true, Trusted: trusted, BodyUsers: true}, func(c string) string { return c }, personal, true},
	}
	tricks := []struct {
		name    string
		headers map[string]string
		apply   func(*recorded)
	}{
		{"none", nil, func(*recorded) {}},
		{"claims a person", map[string]string{"X-Graphiti-User": "mallory"}, func(r *recorded) { r.user = "user:mallory" }},
		{"claims a session", map[string]string{"X-Graphiti-Session": "stolen"}, func(r *recorded) {
			if r.session == "session:abc" { // the user in the body no longer equals the session
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
					continue // it would replace the client's own header
				}
				all, err := graphiti.ParseScopes([]string{"session", "workspace", "user", "agent"})
				must(t, err)
				namer := graphiti.Namer{Recall: all, Ingest: all}
				e := explained(t, &Memory{MemorySettings: MemorySettings{Identity: mode.identity, Recall: true, Ingest: true, Rules: Rules{RemotePaths: true}}}, namer, rec.path, header, []byte(rec.body))
				person := mode.person(want.user)
				var groups []graphiti.Target
				add := func(s graphiti.Scope, key string) {
					groups = append(groups, graphiti.Target{Scope: s, Group: "graphiti_" + string(s) + "_" + id32(key)})
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
				if rec.headers["x-parent-session-id"] != "" { // a model wrote the messages of a subagent
					writes = nil
				}
				if want.session == "" { // the messages identify the session, which gets a new id
					e.Reads, e.Writes = without(e.Reads, graphiti.ScopeSession), without(e.Writes, graphiti.ScopeSession)
				}
				if diff := cmp.Diff([][]graphiti.Target{groups, writes}, [][]graphiti.Target{e.Reads, e.Writes}); diff != "" {
					t.Errorf("%s, %s, %s (-want +got):\n%s%+v", rec.client, mode.name, trick.name, diff, e.Claims)
				}
				n++
			}
		}
	}
	t.Logf("%d cases", n)
}

func without(list []graphiti.Target, scope graphiti.Scope) []graphiti.Target {
	return slices.DeleteFunc(list, func(t graphiti.Target) bool { return t.Scope == scope })
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// personal returns a key in the tenant of a proven person.
func personal(person, key string) string {
	return "tenant:" + tenant64("person", person) + "|" + key
}

func hash64(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// tenant64 returns the digits of a tenant, computed without the code under test. Each part
// follows its length in eight bytes.
func tenant64(parts ...string) string {
	text := ""
	for _, p := range append([]string{"graphiti-proxy.identity.2"}, parts...) {
		text += fmt.Sprintf("\x00\x00\x00\x00\x00\x00%c%c", len(p)>>8, len(p)&0x7f) + p
	}
	return hash64(text)
}

// TestNamesOfTheRegistry checks that each registered identity finds its person, in any case
// if the platform ignores case, and that no other name does.
func TestNamesOfTheRegistry(t *testing.T) {
	registry := &identity.Registry{}
	registry.Set([]identity.Person{
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
		e := explained(t, &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: identity.Settings{Owner: "user:o", People: registry}}}, graphiti.Namer{}, chatPath, headers, []byte(said("", "")))
		if got := e.Claims[identity.User].Key; got != tc.user || (e.Off != "") != tc.off {
			t.Errorf("%s: %s, off %q", tc.name, got, e.Off)
		}
	}
}

// TestTemporaryChatIsNotKept checks that temporary chats of Open WebUI are not stored.
// Their ids begin with "local:".
func TestTemporaryChatIsNotKept(t *testing.T) {
	e := explained(t, &Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:o"}, Recall: true, Ingest: true}}, graphiti.Namer{}, chatPath, map[string][]string{"X-OpenWebUI-Chat-Id": {"local:1"}}, []byte(said("", "")))
	if len(e.Writes) != 0 || len(e.Reads) == 0 {
		t.Errorf("got %+v, want no writes, some reads", e)
	}
	e = explained(t, &Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:o"}, Recall: true, Ingest: true}}, graphiti.Namer{}, chatPath, map[string][]string{"X-OpenWebUI-Chat-Id": {"local:1"}, "x-litellm-session-id": {"s"}}, []byte(said("", "")))
	if len(e.Writes) != 0 || len(e.Reads) == 0 {
		t.Errorf("beside another session: %+v", e)
	}
}

// TestBodyNamesNoPerson checks that the body and the query of a gateway's request, or in single mode,
// name no person, unless the operator allows it with BodyUsers.
func TestBodyNamesNoPerson(t *testing.T) {
	trusted := identity.NewFingerprints([]string{"sk-gateway"})
	for _, tc := range []struct{ path, members string }{
		{chatPath + "?userId=josh", ""},
		{chatPath, `"user":"josh"`},
		{chatPath, `"safety_identifier":"josh"`},
		{chatPath, `"metadata":{"user_id":"josh"}`},
		{chatPath, `"metadata":{"user_id":"{\"account_uuid\":\"josh\"}"}`},
		{chatPath, `"litellm_metadata":{"user":"josh"}`},
	} {
		for _, allowed := range []bool{false, true} {
			m := &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: identity.Settings{Multi: true, Trusted: trusted, BodyUsers: allowed}}}
			header := map[string][]string{"Authorization": {"Bearer sk-gateway"}}
			e := explained(t, m, graphiti.Namer{}, tc.path, header, []byte(said(tc.members, "")))
			if named := e.Claims[identity.User].Key != ""; named != allowed || (len(e.Reads) > 0) != allowed {
				t.Errorf("%+v, allowed %v: %+v", tc, allowed, e)
			}
			m.Identity.Multi, m.Identity.Owner = false, "user:owner"
			e = explained(t, m, graphiti.Namer{}, tc.path, header, []byte(said(tc.members, "")))
			if named := e.Claims[identity.User].Key != "user:owner"; named != allowed {
				t.Errorf("%+v, single mode, allowed %v: %+v", tc, allowed, e)
			}
			m.Identity.Multi = true
			header["Authorization"] = []string{"Bearer sk-any"} // names people in its own tenant
			if e = explained(t, m, graphiti.Namer{}, tc.path, header, []byte(said(tc.members, ""))); e.Claims[identity.User].Key == "user:credential" {
				t.Errorf("%+v: below a credential of its own: %+v", tc, e)
			}
		}
	}
}

// TestMemoryHeader checks that the strictest reading of a memory header counts.
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
		e := explained(t, &Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:o"}, Recall: true, Ingest: true}}, graphiti.Namer{}, chatPath, map[string][]string{memoryHeader: tc.values}, []byte(said("", "")))
		if len(e.Reads) > 0 != tc.recall || len(e.Writes) > 0 != tc.ingest {
			t.Errorf("%q: reads %d, writes %d (%s)", tc.values, len(e.Reads), len(e.Writes), e.Off)
		}
	}
}

// TestExplanationFollowsTheConfiguration checks that an explanation depends on the settings
// and on the kind of the request.
func TestExplanationFollowsTheConfiguration(t *testing.T) {
	title := `{"model":"m","messages":[{"role":"user","content":"hello"}],"input":0}`
	for _, tc := range []struct {
		name          string
		memory        Memory
		header        string
		reads, writes bool
		off           string
	}{
		{"all", Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true}}, "", true, true, ""},
		{"recall alone", Memory{MemorySettings: MemorySettings{Recall: true}}, "", true, false, ""},
		{"ingest alone", Memory{MemorySettings: MemorySettings{Ingest: true}}, "", false, true, ""},
		{"neither", Memory{}, "", false, false, "recall.enabled and ingest.enabled"},
		{"no consent", Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true}, Off: Off{Reason: inject.ReasonConsent}}, "", false, false, "consent"},
		{"a title", Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true}}, "auxiliary", false, false, "title"},
		{"a subagent", Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true}}, "subagent", true, false, ""},
	} {
		tc.memory.Identity.Owner = "user:o"
		header := map[string][]string{}
		if tc.header != "" {
			header["X-Claude-Code-Request-Class"] = []string{tc.header}
		}
		e := explained(t, &tc.memory, graphiti.Namer{}, chatPath, header, []byte(title))
		if len(e.Reads) > 0 != tc.reads || len(e.Writes) > 0 != tc.writes || e.Off != tc.off {
			t.Errorf("%s: %+v", tc.name, e)
		}
	}
}

// TestQueryThatContradictsItself checks that two different users in a query turn memory
// off.
func TestQueryThatContradictsItself(t *testing.T) {
	e := explained(t, &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: identity.Settings{Owner: "user:o", BodyUsers: true}}}, graphiti.Namer{}, chatPath+"?userId=a&userId=b", nil, []byte(said("", "")))
	if e.Off == "" || len(e.Reads)+len(e.Writes) > 0 {
		t.Errorf("two people in the query: %+v", e)
	}
}
