package identity

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// TestRequestsOfWebPages checks that FromWeb detects requests of web pages, by their
// origin, by Sec-Fetch-Site, or by a host name that a page's server resolves to this
// machine.
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
		{"127.0.0.1:8787", "http://127.0.0.1:8787", false},
		{"127.0.0.1:8787", "http://localhost:8787", true},
		{"127.0.0.1:8787", "http://localhost:3000", true},
		{"127.0.0.1:8787", "http://127.0.0.1:3000", true},
		{"127.0.0.1:8787", "https://[::1]:5173", true},
		{"127.0.0.1:8787", "http://127.0.0.1", true},
		{"localhost:8787", "http://app.localhost:8787", true},
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
		{"127.0.0.1:8787", "file://", false},
		{"127.0.0.1:8787", "file://evil.example", true},
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
		if got := FromWeb(&h); got != tc.web {
			t.Errorf("FromWeb with host %q, origin %q: %v, want %v", tc.host, tc.origin, got, tc.web)
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
		{[]string{"Sec-Fetch-Site", "same-site"}, true},
		{[]string{"Sec-Fetch-Site", "new-site"}, true},
		{[]string{"Origin", "http://localhost", "Origin", "https://evil.example"}, true},
		{[]string{"Origin", "http://localhost", "Origin", "http://localhost"}, true},
		{[]string{"Origin", ""}, true},
	} {
		var h fasthttp.RequestHeader
		h.SetHost("127.0.0.1:8787")
		for i := 0; i < len(tc.lines); i += 2 {
			h.Add(tc.lines[i], tc.lines[i+1])
		}
		if got := FromWeb(&h); got != tc.web {
			t.Errorf("FromWeb with %q: %v, want %v", tc.lines, got, tc.web)
		}
	}
}

// TestHeadersThatContradictThemselves checks that a header with two different values
// identifies no person, because a client may have appended to it. The same value twice is
// accepted.
func TestHeadersThatContradictThemselves(t *testing.T) {
	trusted := NewFingerprints([]string{"sk-gateway"})
	people := &Registry{}
	people.Set([]Person{{ID: "josh", Keys: []string{graphiti.Fingerprint([]byte("sk-josh"))}}})
	signed := func(who string) string {
		return token(sha256.New, "secret", `{"alg":"HS256"}`, fmt.Sprintf(`{"sub":%q,"iss":"open-webui","exp":%d}`, who, time.Now().Unix()+300))
	}
	values := map[string][2]string{"X-Litellm-User_api_key_user_id": {"u-1", "u-2"}, "X-Acme-Session-Id": {"session-1", "session-2"}, openWebUIUser: {signed("ann"), signed("bob")}}
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
				header := map[string][]string{name: {v[0], second}, "Authorization": {"Bearer " + key}, "User-Agent": {agentOf(name)}}
				if key == "sk-gateway" && name != "X-Graphiti-User" && strings.HasPrefix(name, "X-Graphiti-") {
					header["X-Graphiti-User"] = []string{"carol"}
				}
				id := Settings{Multi: key != "", Owner: "user:o", Trusted: trusted, People: people, OpenWebUI: "secret"}
				var h fasthttp.RequestHeader
				for n, list := range header {
					for _, one := range list {
						h.Add(n, one)
					}
				}
				c := id.Identify(claimsIn(&h, &dialect.Conversation{Last: -1}), "")
				user := slices.ContainsFunc(userSources, func(s Source) bool { return s.header == name })
				if want := twice && (key != "sk-josh" || !user); c.Contradicts != want || want && c.Known {
					t.Errorf("%s, key %q, different values %v: contradicts %v, known %v; want contradicts %v", name, key, twice, c.Contradicts, c.Known, want)
				}
				if key == "sk-josh" && user && (!c.Known || c.Who.User != "user:josh") {
					t.Errorf("%s with the key of a registered person: %+v, want user:josh, known", name, c)
				}
			}
		}
	}
	people.Set([]Person{{ID: "ann", Identities: map[string]string{"openwebui": "ann@example.com"}}})
	var h fasthttp.RequestHeader
	for _, line := range [][2]string{{"Authorization", "Bearer sk-gateway"}, {"X-OpenWebUI-User-Id", "5f2c"}, {"X-OpenWebUI-User-Email", "ann@example.com"}, {"X-OpenWebUI-User-Email", "bob@example.com"}} {
		h.Add(line[0], line[1])
	}
	id := Settings{Multi: true, Trusted: trusted, People: people}
	if c := id.Identify(claimsIn(&h, &dialect.Conversation{Last: -1}), ""); !c.Contradicts || c.Known {
		t.Errorf("two e-mail addresses beside an id: %+v; want contradicts, not known", c)
	}
}

// agentOf returns the User-Agent of a client that uses a session header.
func agentOf(header string) string {
	for _, s := range sessionSources {
		if s.header == header && s.of != nil {
			return map[string]string{dialect.Codex: "codex_cli_rs/0.98", "opencode": "opencode/1.18", "Mistral Vibe": "Mistral-Vibe/3.0"}[s.of[0]]
		}
	}
	return "codex_cli_rs/0.98"
}

// TestSessionHeadersOfSomeClients checks that a header identifies the session only for
// clients that set it for each conversation, and not for each process.
func TestSessionHeadersOfSomeClients(t *testing.T) {
	const id, vibe = "3e223dd5-94b7-22fa-b14e-e7ed72fe0bca", "You help users get complex tasks done. Act directly and proactively. Find skills."
	for _, tc := range []struct{ header, agent, prompt, want string }{
		{"X-Session-Affinity", "opencode/1.18.33 ai-sdk/provider-utils/4", "", "session:" + id},
		{"X-Session-Affinity", "Kilo-Code/7.7.9 ai-sdk/provider-utils/4", "", "session:" + id},
		{"X-Session-Affinity", "OpenAI/JS 6.26.0", "You are an expert coding assistant operating inside pi, a harness.", "session:" + id},
		{"X-Session-Affinity", "AsyncOpenAI/Python 3.54.0", "## Runtime", ""},
		{"X-Session-Affinity", "", "", ""},
		{"X-Affinity", "python-httpx/0.28.1", vibe, "session:" + id},
		{"X-Affinity", "Mistral-Vibe/3.0.2", "", "session:" + id},
		{"X-Affinity", "python-httpx/0.28.1", "Be brief.", ""},
		{"X-Session-Id", "AsyncOpenAI/Python 3.54.0", "", "session:" + id},
	} {
		var conv dialect.Conversation
		body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "system", "content": tc.prompt}, {"role": "user", "content": "hello"}}})
		if err != nil || !(chat.Dialect{}).Parse(body, &conv) {
			t.Fatalf("%s of %q: the body %s is not read: %v", tc.header, tc.agent, body, err)
		}
		var h fasthttp.RequestHeader
		h.Set(tc.header, id)
		h.Set("User-Agent", tc.agent)
		if c := (&Settings{Owner: "user:o"}).Identify(claimsIn(&h, &conv), ""); c.Who.Session != tc.want {
			t.Errorf("%s of %q: session %q, want %q", tc.header, tc.agent, c.Who.Session, tc.want)
		}
	}
}

func TestClaims_Client(t *testing.T) {
	for _, tc := range []struct{ title, agent, want string }{
		{"", "codex_cli_rs/0.169.0 (linux)", "Codex"},
		{"", "my-tool/1.2 (linux)", "my-tool"},
		{"Kilo Code", "opencode/7.7.9 (linux; x64) ai-sdk/provider-utils/4.0.40", "Kilo"},
		{"Kilo Code", "Kilo-Code/7.7.9", "Kilo"},
		{"Kilo Code", "ai-sdk/openai/3", "Kilo"},
		{"My app", "opencode/1.18.33", "opencode"},
		{"", "opencode/1.18.33", "opencode"},
		{"", "", ""},
	} {
		var h fasthttp.RequestHeader
		h.Set("User-Agent", tc.agent)
		h.Set("x-title", tc.title)
		if got := new(Claims).ReadHead(&h).Client(); got != tc.want {
			t.Errorf("the title %q and the User-Agent %q are of %q, want %q", tc.title, tc.agent, got, tc.want)
		}
	}
}

// identityNotes is the end of docs/identity.md.
const identityNotes = `
## Contradictions

A request with two different values in one of these headers, or with an invalid or expired ` + "`X-OpenWebUI-User-Jwt`" + `, has no memory (` + "`off; reason=untrusted`" + `).

In single mode, neither has a request that may come from a web page, also of this machine, by its ` + "`Sec-Fetch-Site`" + `, ` + "`Origin`" + ` or ` + "`Host`" + `.

## Tenants

In multi mode, conversations, projects and unconfirmed persons are scoped to a tenant: a registered person, a credential, or several credentials that a request sends together. In ` + "`/u/<name>/…`" + ` the name is part of the tenant.

` + "`memory forget --credential sha256:<hex>`" + ` accepts the prefix ` + "`<name>/`" + ` for a named upstream.

## Accepted credentials

In multi mode, recall for a credential is empty (` + "`empty; reason=nobody`" + `) until an upstream has answered it with a 2xx. Keys in ` + "`identity.trusted_keys`" + ` and ` + "`identity.users_file`" + ` need no such proof.
`

// TestReferenceOfSources checks that docs/identity.md is current. UPDATE=1 writes it.
func TestReferenceOfSources(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Identity of a request\n\nThe first source with a value wins. The page Live shows the result.\n")
	for _, table := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.ToUpper(table.What[:1])+table.What[1:])
		for _, s := range table.Sources {
			note := s.Note
			if s.Platform != "" {
				note = strings.TrimPrefix(note+"; `"+s.Platform+"`", "; ")
			}
			if note != "" {
				note = ": " + note
			}
			fmt.Fprintf(&b, "- `%s`%s\n", s.Name, note)
		}
		switch table.What {
		case "session":
			b.WriteString("\nThen the conversation's history, in the same directory or project.\n\nThe same ID in two projects means two sessions. A request without a directory takes the project of its session.\n")
		case "user":
			b.WriteString("\nThen `identity.owner` (single mode) or the credential (multi mode). A platform at the end of a line means the person `user:<platform>:<id>`. E-mail addresses are also looked up in `identity.users_file`.\n\nIn single mode, and with a key in `identity.trusted_keys`, only headers name a person, unless `identity.body_users` is set. In multi mode, a name is scoped to its credential, except for [gateways and registered people](teams.md).\n")
		case "workspace":
			b.WriteString("\n[privacy.md](privacy.md) describes the working directory.\n")
		}
	}
	b.WriteString(identityNotes)
	path := filepath.Join("..", "..", "docs", "identity.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { // #nosec G306 -- documentation
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/identity.md is not current; run UPDATE=1 go test ./proxy/identity -run Reference (%v)", err)
	}
	if len(headerIDs) > maxHeaders {
		t.Errorf("%d headers in the tables, want %d at most", len(headerIDs), maxHeaders)
	}
}

// claimsIn returns the claims in a request's header and body.
func claimsIn(h *fasthttp.RequestHeader, conv *dialect.Conversation) *Claims {
	cl := new(Claims).ReadHead(h)
	cl.ReadBody(conv)
	return cl
}
