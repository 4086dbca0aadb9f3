package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
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
		{"raw session", true, ScopeSession, Who{Session: "session:a-b"}, "session_a-b"},
		{"raw session, cleaned", true, ScopeSession, Who{Session: "session:a.b"}, "session_a_b-" + sum("session:a.b")[:16]},
		{"raw workspace", true, ScopeWorkspace, Who{Workspace: "shop"}, "workspace_shop"},
		{"raw workspace, cleaned", true, ScopeWorkspace, Who{Workspace: "path:/home/x"}, "workspace_path__home_x-" + sum("path:/home/x")[:16]},
		{"raw user, unchanged", true, ScopeUser, Who{User: "user:jo_sh"}, "user_jo_sh"},
		{"raw user, cleaned", true, ScopeUser, Who{User: "user:jo.sh"}, "user_jo_sh-" + sum("user:jo.sh")[:16]},
		{"raw user, cleaned, of a tenant", true, ScopeUser, Who{Tenant: "abc", User: "user:jo.sh"}, "tabc_user_jo_sh-" + sum("tenant:abc|user:jo.sh")[:16]},
		{"raw user who is called like one of a platform", true, ScopeUser, Who{User: "user:discord_123"}, "user_discord_123-" + sum("user:discord_123")[:16]},
		{"raw user who is called like one with a hash", true, ScopeUser, Who{User: "user:jo-0123456789abcdef"}, "user_jo-0123456789abcdef-" + sum("user:jo-0123456789abcdef")[:16]},
		{"raw agent that is called like one of a person", true, ScopeAgent, Who{User: "user:josh", Agent: "ava__user_x"}, "agent_ava__user_x__user_josh-" + sum("agent:ava__user_x|user:josh")[:16]},
		{"raw tenant", true, ScopeUser, Who{Tenant: "0123456789abcdef0123456789abcdef", User: "user:josh"}, "t0123456789abcdef01234567_user_josh"},
		{"a person who is proven", true, ScopeUser, Who{Tenant: "abc", Proven: true, User: "user:josh"}, "user_josh"},
		{"the agent of one", true, ScopeAgent, Who{Tenant: "abc", Proven: true, User: "user:josh", Agent: "ava"}, "agent_ava__user_josh"},
		{"the project of one is theirs alone", true, ScopeWorkspace, Who{Tenant: "abc", Proven: true, User: "user:josh", Workspace: "w"}, "tabc_workspace_w"},
		{"raw, long", true, ScopeUser, Who{User: "user:" + long}, "user_" + strings.Repeat("_", 98) + "-" + sum("user:" + long)[:16]},
	} {
		got, ok := Namer{Raw: tc.raw}.Group(tc.scope, tc.who)
		if !ok || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, got, ok, tc.want)
		}
	}
}

// TestRawIDsAreUnique checks that different callers have different raw ids, even if one
// takes the id of another as its name.
func TestRawIDsAreUnique(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "b", "_", "__", ".", ":", "-", " ", "@", "1", "23", "discord", "github_login:", "user", "__user_", "session:", "|", strings.Repeat("x", 60),
	})
	rapid.Check(t, func(t *rapid.T) {
		ids := make(map[string]string)
		n := Namer{Raw: true}
		add := func(s Scope, w Who) string {
			key := fmt.Sprintf("%q", []string{string(s), w.Tenant, w.Session, w.Workspace, w.User, w.Agent, w.SystemActor})
			id, ok := n.Group(s, w)
			if before, used := ids[id]; !ok || used && before != key {
				t.Fatalf("%s and %s have one id: %s (%v)", before, key, id, ok)
			}
			ids[id] = key
			return id
		}
		for range 8 {
			text := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "text"), "")
			agent := strings.Join(rapid.SliceOfN(piece, 1, 3).Draw(t, "agent"), "")
			tenant := rapid.SampledFrom([]string{"", strings.Repeat("ab", 32), strings.Repeat("ac", 32)}).Draw(t, "tenant")
			user, ok := UserKey(text)
			session, known := SessionKey(text)
			if !ok || !known {
				continue
			}
			for _, id := range []string{
				add(ScopeUser, Who{Tenant: tenant, User: user}),
				add(ScopeSession, Who{Tenant: tenant, Session: session}),
				add(ScopeWorkspace, Who{Tenant: tenant, Workspace: text}),
			} {
				// A caller takes the end of another's id as its name.
				_, name, _ := strings.Cut(id, "_")
				add(ScopeUser, Who{User: "user:" + name})
				add(ScopeWorkspace, Who{Workspace: name})
			}
			if agent, ok := BareName(agent); ok {
				add(ScopeAgent, Who{Tenant: tenant, User: user, Agent: agent})
				add(ScopeSystem, Who{Tenant: tenant, SystemActor: agent})
			}
		}
	})
}

// TestNamedProjects checks that a project's group has its name, unless another group may
// have that name.
func TestNamedProjects(t *testing.T) {
	for workspace, want := range map[string]string{
		"opencode-app__main":       "opencode-app__main",
		"main":                     "main",
		"user_josh":                "graphiti_workspace_" + sum("user_josh"),
		"graphiti_proxy_check":     "graphiti_workspace_" + sum("graphiti_proxy_check"),
		"graphiti_user_" + joshSum: "graphiti_workspace_" + sum("graphiti_user_"+joshSum),
		"path:/home/x":             "graphiti_workspace_" + sum("path:/home/x"),
	} {
		if got, _ := (Namer{Named: true}).Group(ScopeWorkspace, Who{Workspace: workspace}); got != want {
			t.Errorf("%s: got %s, want %s", workspace, got, want)
		}
		if got, _ := (Namer{Named: true}).Group(ScopeWorkspace, Who{Tenant: "abc", Workspace: workspace}); got != "graphiti_workspace_"+sum("tenant:abc|"+workspace) {
			t.Errorf("%s, of a tenant: %s", workspace, got)
		}
	}
}

// joshSum is the first 32 digits of the output of sha256sum for "user:josh".
const joshSum = "84e301d7b382b2f8a83af2856c1b65c0"

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:16])
}

func TestKeys(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func(string) (string, bool)
		in   string
		want string // "" if refused
	}{
		{"user", UserKey, "josh", "user:josh"},
		{"user with prefix", UserKey, "user:discord:1", "user:discord:1"},
		{"login", UserKey, "github_login:OctoCat", "github_login:octocat"},
		{"login of a platform", UserKey, "GitHub:OctoCat", "user:github:octocat"},
		{"login of a platform, with prefix", UserKey, "user:github:OctoCat", "user:github:octocat"},
		{"other platforms may tell cases apart", UserKey, "slack:U1aB", "user:slack:U1aB"},
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
		{"token instead of a user", WorkspaceKey, "x+y://hunter2@host.io/x", "x+y://host.io/x"},
		{"IPv6", WorkspaceKey, "ssh://git@[::1]:22/o/@r", "github_repo:::1/o/@r"},
		{"path", WorkspaceKey, "path:/home/me@x:y", "path:/home/me@x:y"},
		{"name", WorkspaceKey, "my project", "my project"},
		{"name with @", WorkspaceKey, "project @home: x", "project @home: x"},
		{"other scheme, whose user is not kept", WorkspaceKey, "vscode://a@b:c", "vscode://b:c"},
		{"without a user", WorkspaceKey, "github.com:acme/app.git", "github_repo:github.com/acme/app"},
		{"without a user, one part", WorkspaceKey, "host.io:app.git", "github_repo:host.io/app"},
		{"a name with a colon is no address", WorkspaceKey, "notes.v2:app", "notes.v2:app"},
		{"nor is a drive", WorkspaceKey, `C:/src/acme/app`, `C:/src/acme/app`},
		{"absolute path of scp", WorkspaceKey, "git@github.com:/acme/app.git", "github_repo:github.com/acme/app"},
		{"git+ssh", WorkspaceKey, "git+ssh://git@github.com/acme/app.git", "github_repo:github.com/acme/app"},
		{"ssh+git", WorkspaceKey, "ssh+git://git@github.com/acme/app.git", "github_repo:github.com/acme/app"},
		{"ftp", WorkspaceKey, "ftp://u:hunter2@h.io/x.git", "github_repo:h.io/x"},
		{"GitHub's port 443 for ssh", WorkspaceKey, "ssh://git@ssh.github.com:443/acme/app.git", "github_repo:github.com/acme/app"},
		{"GitLab's", WorkspaceKey, "ssh://git@altssh.gitlab.com:443/acme/app.git", "github_repo:gitlab.com/acme/app"},
		{"www", WorkspaceKey, "https://www.github.com/acme/app", "github_repo:github.com/acme/app"},
		{"a host's last dot", WorkspaceKey, "https://github.com./acme/app", "github_repo:github.com/acme/app"},
		{"GitHub has one name in any case", WorkspaceKey, "https://github.com/Acme/App.git", "github_repo:github.com/acme/app"},
		{"GitLab too", WorkspaceKey, "git@gitlab.com:Acme/Team/App.git", "github_repo:gitlab.com/acme/team/app"},
		{"Bitbucket too", WorkspaceKey, "git@bitbucket.org:Acme/App", "github_repo:bitbucket.org/acme/app"},
		{"other hosts may tell cases apart", WorkspaceKey, "git@Host.io:Acme/App", "github_repo:host.io/Acme/App"},
		{"a key in another case", WorkspaceKey, "github_repo:GitHub.com/Acme/App", "github_repo:github.com/acme/app"},
		{"a checkout's own directory", WorkspaceKey, "ssh://host.io/srv/app/.git", "github_repo:host.io/srv/app"},
		{"password of a tool's address", WorkspaceKey, "git+https://tok:hunter2@github.com/acme/app", "github_repo:github.com/acme/app"},
		{"password of another scheme", WorkspaceKey, "svn+ssh://u:hunter2@h/x", "svn+ssh://h/x"},
		{"password with @", WorkspaceKey, "svn://u:hun@ter2@h:1/x", "svn://h:1/x"},
		{"password with a slash", WorkspaceKey, "svn://u:hunter2/x@h/x", ""},
		{"password of scp", WorkspaceKey, "u:hunter2@h:x", "github_repo:h/x"},
		{"password of scp with a slash", WorkspaceKey, "u:hun/ter2@h:x", "github_repo:h/x"},
		{"an e-mail address as user", WorkspaceKey, "me@corp.io:hunter2@h:x", "github_repo:h/x"},
		{"password before @ in the path", WorkspaceKey, "u:hunter2@host:o/r@x", "github_repo:host/o/r@x"},
		{"password without a scheme", WorkspaceKey, "u:hunter2@github.com/o/r", "github_repo:github.com/o/r"},
		{"password in a key", WorkspaceKey, "github_repo:u:hunter2@github.com/o/r", "github_repo:github.com/o/r"},
		{"password in a sentence", WorkspaceKey, "see http://u:hunter2@h/x", "see http://h/x"},
		{"a path with @ and a colon", WorkspaceKey, "/home/me@x:y", "/home/me@x:y"},
		{"agent", BareName, "ava", "ava"},
		{"agent that holds a person", BareName, "ava|user:josh", ""},
	} {
		got, ok := tc.f(tc.in)
		if ok != (tc.want != "") || ok && got != tc.want {
			t.Errorf("%s: key of %q: %q, %v; want %q", tc.name, tc.in, got, ok, tc.want)
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
				t.Errorf("scope %s of %+v: Graphiti does not take the id %q", s, w, id)
			}
		}
	})
}

// FuzzWorkspaceKey checks that WorkspaceKey returns a key unchanged, and that no key
// contains a password.
func FuzzWorkspaceKey(f *testing.F) {
	for _, s := range []string{"https://u:p@github.com/o/r", "git@h:o/r", "ssh://u:p@h:22/r", "path:/x", "x", "github_repo:h.git/r.git/.git", "h.io:o/r", "a@b.c:d@e:f"} {
		for _, password := range []string{"", "/", "@a:b/", "://", "?", "#%41", ":1"} {
			f.Add(s, password)
		}
	}
	f.Fuzz(func(t *testing.T, name, password string) {
		if key, ok := WorkspaceKey(name); ok {
			if again, ok := WorkspaceKey(key); !ok || again != key {
				t.Errorf("the key of %q is %q, and the key of that is %q, %v; want the same", name, key, again, ok)
			}
		}
		if !validKey("p"+password) || strings.ContainsFunc(password, unicode.IsSpace) {
			return
		}
		for _, address := range []string{"https://u:%s@host.io/o/r", "git+ssh://u:%s@host.io:22/o/r", "ftp://u:%s@host.io/o/r", "svn://u:%s@host.io/o/r", "u:%s@host.io:o/r", "u:%s@host.io/o/r"} {
			s := fmt.Sprintf(address, "hunter2"+password)
			key, ok := WorkspaceKey(s)
			if !ok {
				continue
			}
			if strings.Contains(key, "hunter2") {
				t.Errorf("the key of %q is %q, which holds the password", s, key)
			}
			if id, ok := (Namer{Raw: true}).Group(ScopeWorkspace, Who{Workspace: key}); ok && strings.Contains(id, "hunter2") {
				t.Errorf("the raw group id of %q is %q, which holds the password", s, id)
			}
		}
	})
}

// TestTenantsAreNeverAlike checks that tenants differ if their parts have other boundaries,
// if one spells another, or if they are of different kinds.
func TestTenantsAreNeverAlike(t *testing.T) {
	a, b := Fingerprint([]byte("a")), Fingerprint([]byte("b"))
	seen := make(map[string]string)
	add := func(name string, set func(*Who)) {
		var w Who
		set(&w)
		if other, ok := seen[w.Tenant]; ok || len(w.Tenant) != 64 {
			t.Errorf("the tenant of %s is %q, that of %q is the same: %v; want a different one of 64 digits", name, w.Tenant, other, ok)
		}
		seen[w.Tenant] = name
	}
	person := func(key string) func(*Who) { return func(w *Who) { w.User = key; w.SetPerson() } }
	shown := func(list ...string) func(*Who) { return func(w *Who) { w.SetCredentials("", list...) } }
	add("josh", person("user:josh"))
	add("who is called like a fingerprint", person(a))
	add("who is called like two", person(a+" "+b))
	add("a credential", shown(a))
	add("another", shown(b))
	add("both", shown(a, b))
	add("a credential at a named upstream", func(w *Who) { w.SetCredentials("local", a) })
	add("at another", func(w *Who) { w.SetCredentials("more", a) })
	add("two at a named upstream", func(w *Who) { w.SetCredentials("local", a, b) })
	add("one that spells both", shown(Fingerprint([]byte(a+" "+b))))
	add("one that spells josh", shown(Fingerprint([]byte("person:user:josh"))))
	add("one beside itself and another", shown(a, a, Fingerprint([]byte("c"))))
	if Digest("k", "ab", "c") == Digest("k", "a", "bc") || Digest("ka", "b") == Digest("k", "ab") || Digest("k", "a") == Digest("k", "a", "") {
		t.Error("Digest is the same for parts that end at different places")
	}
	var one, two Who
	one.SetCredentials("", a, b)
	two.SetCredentials("", b, a, b)
	if one != two {
		t.Errorf("the tenant of a, b is %q, that of b, a, b is %q; want the same", one.Tenant, two.Tenant)
	}
}

// TestAlsoReads checks that groups of other clients are read after the caller's own, in the
// scope that fits, and that a name with an unknown or ambiguous placeholder is skipped.
func TestAlsoReads(t *testing.T) {
	own := Target{ScopeWorkspace, "own"}
	there := Who{User: "user:josh", Workspace: "path:/home/j/My App", Directory: "/home/j/My App/"}
	all := Also{Names: []string{"main", "opencode-{directory}__main", "opencode-{directory}__user-{login}", "user_{user}", "own"}, Home: "/home/j.b"}
	strict := Also{Names: []string{"main", "user_{user}"}, Proven: true}
	for name, tc := range map[string]struct {
		also Also
		who  Who
		want []string
	}{
		"in a project":        {all, there, []string{"workspace main", "workspace opencode-My_App__main", "user opencode-My_App__user-j_b", "user user_josh"}},
		"in a named project":  {all, Who{User: "user:josh", Workspace: "path:/home/j/My App"}, []string{"workspace main", "workspace opencode-My_App__main", "user opencode-My_App__user-j_b", "user user_josh"}},
		"in a repository":     {all, Who{User: "user:josh", Workspace: "github_repo:github.com/j/app"}, []string{"workspace main", "user user_josh"}},
		"in none":             {all, Who{User: "user:josh"}, []string{"user main", "user user_josh"}},
		"nobody":              {all, Who{}, []string{"user main"}},
		"a bot":               {all, Who{SystemActor: "bot"}, nil},
		"another's by a sign": {all, Who{User: "user:jo.sh"}, []string{"user main"}},
		"by a joint":          {all, Who{User: "user:x__user_josh"}, []string{"user main"}},
		"of another platform": {all, Who{User: "github_login:josh"}, []string{"user main"}},
		"a proven person":     {strict, Who{Tenant: "t", User: "user:josh", Proven: true}, []string{"user main", "user user_josh"}},
		"named as a group":    {Also{Names: []string{"{user}", "{directory}"}}, Who{User: "user:user_ben", Directory: "/x/graphiti_user_0123456789abcdef"}, nil},
		"a claimed one":       {strict, Who{Tenant: "t", User: "user:josh"}, nil},
	} {
		var got []string
		for _, t := range (Namer{Also: tc.also}).AlsoReads(tc.who, []Target{own})[1:] {
			got = append(got, string(t.Scope)+" "+t.Group)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	if got := (Namer{Also: all}).AlsoReads(there, nil); got != nil {
		t.Errorf("without a group of their own: %v", got)
	}
}
