package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var accepted = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func TestGroupIDs(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, tc := range []struct {
		name  string
		raw   bool
		scope Scope
		who   Who
		want  string
	}{
		// Computed with: printf %s KEY | sha256sum | cut -c1-32
		{"canonical user", false, ScopeUser, Who{User: "github_login:octocat"}, "graphiti_user_" + sum("github_login:octocat")},
		{"canonical workspace", false, ScopeWorkspace, Who{Workspace: "github_repo:github.com/org/repo"}, "graphiti_workspace_" + sum("github_repo:github.com/org/repo")},
		{"canonical, known digits", false, ScopeUser, Who{User: "user:josh"}, "graphiti_user_" + joshSum},
		{"tenant is part of the hash", false, ScopeUser, Who{Tenant: "abc", User: "user:josh"}, "graphiti_user_" + sum("tenant:abc|user:josh")},
		{"raw user", true, ScopeUser, Who{User: "user:josh"}, "user_josh"},
		{"raw user of a platform", true, ScopeUser, Who{User: "user:discord:123"}, "user_discord_123"},
		{"raw agent", true, ScopeAgent, Who{User: "user:josh", Agent: "ava"}, "agent_ava__user_josh"},
		{"raw system", true, ScopeSystem, Who{SystemActor: "pr-remediator"}, "system_pr-remediator"},
		{"raw session", true, ScopeSession, Who{Session: "session:a.b"}, "session_a_b"},
		{"raw workspace", true, ScopeWorkspace, Who{Workspace: "path:/home/x"}, "workspace_path__home_x"},
		{"raw tenant", true, ScopeUser, Who{Tenant: "0123456789abcdef0123456789abcdef", User: "user:josh"}, "t0123456789abcdef01234567_user_josh"},
		{"a person who is proven", true, ScopeUser, Who{Tenant: "abc", Proven: true, User: "user:josh"}, "user_josh"},
		{"the agent of one", true, ScopeAgent, Who{Tenant: "abc", Proven: true, User: "user:josh", Agent: "ava"}, "agent_ava__user_josh"},
		{"the project of one is theirs alone", true, ScopeWorkspace, Who{Tenant: "abc", Proven: true, User: "user:josh", Workspace: "w"}, "tabc_workspace_w"},
		{"raw, long", true, ScopeUser, Who{User: "user:" + long}, "user_" + strings.Repeat("_", 98) + "-" + sum("user_" + long)[:16]},
	} {
		got, ok := Namer{Raw: tc.raw}.Group(tc.scope, tc.who)
		if !ok || got != tc.want {
			t.Errorf("%s: %q (%v), want %q", tc.name, got, ok, tc.want)
		}
	}
}

// joshSum are the first 32 digits that sha256sum prints for "user:josh".
const joshSum = "84e301d7b382b2f8a83af2856c1b65c0"

func TestScopesThatAreReadAndWritten(t *testing.T) {
	full := Who{User: "user:josh", Session: "session:s", Workspace: "w", Agent: "ava"}
	without := func(f func(*Who)) Who { w := full; f(&w); return w }
	for _, tc := range []struct {
		name          string
		who           Who
		recall        []string
		reads, writes []Scope
	}{
		{"everything known", full, nil, []Scope{ScopeSession, ScopeWorkspace, ScopeAgent}, []Scope{ScopeWorkspace, ScopeAgent}},
		{"no workspace", without(func(w *Who) { w.Workspace = "" }), nil, []Scope{ScopeSession, ScopeUser, ScopeAgent}, []Scope{ScopeUser, ScopeAgent}},
		{"no agent", without(func(w *Who) { w.Agent, w.Workspace = "", "" }), nil, []Scope{ScopeSession, ScopeUser}, []Scope{ScopeUser}},
		{"a bot has only its own", without(func(w *Who) { w.SystemActor = "bot" }), nil, []Scope{ScopeSystem}, []Scope{ScopeSystem}},
		{"a list", full, []string{"user"}, []Scope{ScopeUser}, []Scope{ScopeWorkspace, ScopeAgent}},
		{"nobody", Who{}, nil, nil, nil},
	} {
		scopes, err := ParseScopes(tc.recall)
		if err != nil {
			t.Fatal(err)
		}
		n := Namer{Recall: scopes}
		if diff := cmp.Diff(tc.reads, scopesOf(n.Reads(tc.who, false))); diff != "" {
			t.Errorf("%s: reads (-want +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.writes, scopesOf(n.Writes(tc.who))); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, err := ParseScopes([]string{"galaxy"}); err == nil {
		t.Error("an unknown scope is accepted")
	}
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:16])
}

func scopesOf(targets []Target) []Scope {
	var out []Scope
	for _, t := range targets {
		out = append(out, t.Scope)
	}
	return out
}

func TestKeys(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func(string) (string, bool)
		in   string
		want string // empty: refused
	}{
		{"user", UserKey, "josh", "user:josh"},
		{"user with prefix", UserKey, "user:discord:1", "user:discord:1"},
		{"login", UserKey, "github_login:OctoCat", "github_login:octocat"},
		{"empty prefix", UserKey, "user:", ""},
		{"control", UserKey, "a\nb", ""},
		{"too long", UserKey, strings.Repeat("x", 513), ""},
		{"broken text", UserKey, "a\xffb", ""},
		{"session", SessionKey, "s1", "session:s1"},
		{"session with prefix", SessionKey, "session:s1", "session:s1"},
		{"repository", WorkspaceKey, "github_repo:github.com/o/r", "github_repo:github.com/o/r"},
		{"https remote", WorkspaceKey, "https://tok:en@GitHub.com/o/r.git", "github_repo:github.com/o/r"},
		{"ssh remote", WorkspaceKey, "git@github.com:o/r.git", "github_repo:github.com/o/r"},
		{"ssh address", WorkspaceKey, "ssh://git@host:22/o/r", "github_repo:host/o/r"},
		{"session without an id", SessionKey, "session:", ""},
		{"port, password, slash", WorkspaceKey, "https://u:p@GitHub.com:8443/o/r.git/", "github_repo:github.com/o/r"},
		{"any user of ssh", WorkspaceKey, "deploy@Host.io:o/r.git", "github_repo:host.io/o/r"},
		{"scheme in capitals", WorkspaceKey, "HTTPS://github.com/o/r", "github_repo:github.com/o/r"},
		{"@ in the path is no user", WorkspaceKey, "https://github.com/@scope/r", "github_repo:github.com/@scope/r"},
		{"@ in the path of ssh", WorkspaceKey, "git@host:o/r@x.git", "github_repo:host/o/r@x"},
		{"token in the query", WorkspaceKey, "https://github.com/o/r?access_token=SECRET#x", "github_repo:github.com/o/r"},
		{"address without a path", WorkspaceKey, "https://github.com/", ""},
		{"address that cannot be read", WorkspaceKey, "https://tok%en@github.com/o/r", ""},
		{"control character behind an escape", WorkspaceKey, "https://github.com/o/r%0A", ""},
		{"path", WorkspaceKey, "path:/home/me@x:y", "path:/home/me@x:y"},
		{"name", WorkspaceKey, "my project", "my project"},
		{"name with @", WorkspaceKey, "project @home: x", "project @home: x"},
		{"other scheme", WorkspaceKey, "vscode://a@b:c", "vscode://a@b:c"},
		{"agent", BareName, "ava", "ava"},
		{"agent that holds a person", BareName, "ava|user:josh", ""},
	} {
		got, ok := tc.f(tc.in)
		if ok != (tc.want != "") || ok && got != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, got, ok, tc.want)
		}
	}
}

func FuzzGroupIDIsAccepted(f *testing.F) {
	f.Add("user:josh", "ava", "t", true)
	f.Add("", "a:b", "\x00", false)
	f.Add(strings.Repeat("/", 300), "ü", "", true)
	f.Fuzz(func(t *testing.T, key, name, tenant string, raw bool) {
		w := Who{Tenant: tenant, User: key, Session: key, Workspace: key, Agent: name, SystemActor: name}
		for _, s := range []Scope{ScopeSession, ScopeWorkspace, ScopeUser, ScopeAgent, ScopeSystem} {
			if id, ok := (Namer{Raw: raw}).Group(s, w); ok && !accepted.MatchString(id) {
				t.Errorf("%s: %q", s, id)
			}
		}
	})
}

// FuzzWorkspaceKey: a key is accepted again as it is, and keeps no password.
func FuzzWorkspaceKey(f *testing.F) {
	for _, s := range []string{"https://u:hunter2@github.com/o/r", "git@h:o/r", "ssh://u:hunter2@h:22/r", "path:/x", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		key, ok := WorkspaceKey(name)
		if !ok {
			return
		}
		if again, ok := WorkspaceKey(key); !ok || again != key {
			t.Errorf("%q becomes %q, and that %q (%v)", name, key, again, ok)
		}
		if !validKey(key) && key != name {
			t.Errorf("%q is no key", key)
		}
	})
}
