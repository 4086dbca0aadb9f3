package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// withToken adds a credential to each request.
type withToken string

// RoundTrip implements http.RoundTripper.
func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+string(token))
	}
	once := http.Transport{DisableKeepAlives: true} // Shutdown waits for unused connections
	return once.RoundTrip(r)                        //nolint:wrapcheck // the error of an http.RoundTripper
}

// mcpClient connects a client with a credential and returns its session.
func mcpClient(t *testing.T, base, token string) (*mcp.ClientSession, error) {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: withToken(token)}, DisableStandaloneSSE: true}
	c := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	c.AddRoots(&mcp.Root{URI: "file:///work/widgets"}) //nolint:staticcheck // clients still have them
	session, err := c.Connect(t.Context(), transport, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// servePeople serves a memory for an operator and two people and returns its URL. With a
// token the memory is in multi mode.
func servePeople(t *testing.T, token string, roots *[]string) string {
	t.Helper()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: token != ""})
	t.Cleanup(m.Close)
	return serve(t, Options{Token: token, Host: m.Host,
		Project: func(dir string) (string, error) {
			*roots = append(*roots, dir)
			return "path:" + dir, nil
		},
		Callers: func(_ context.Context, digits string, _ http.Header) (service.Caller, error) {
			for _, name := range []string{"ann", "bob"} {
				sum := sumOf(name + "-key")
				if sum.digits() == digits {
					return service.Caller{Name: name, Own: service.Selector{User: "user:" + name}}, nil
				}
			}
			return service.Caller{}, ErrUnknown
		},
	})
}

// TestMCP checks that a local client uses the memory of its root's project, that people
// have only their own memory, and that a session accepts only its own client.
func TestMCP(t *testing.T) {
	t.Parallel()
	var roots []string
	session, err := mcpClient(t, servePeople(t, "", &roots), "")
	must(t, err)
	say := func(s *mcp.ClientSession, tool string, args m) (string, error) {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			return "", err
		}
		text := r.Content[0].(*mcp.TextContent).Text
		if r.IsError {
			err = errors.New(text)
		}
		return text, err
	}
	if said, err := say(session, "add_memory", m{"episode_body": "The server is in Bergen."}); err != nil || len(roots) == 0 || roots[0] != "/work/widgets" {
		t.Errorf("add_memory = %s, %v with the roots %q, want success in /work/widgets", said, err, roots)
	}

	base := servePeople(t, "operator-token", &roots)
	for _, token := range []string{"", "wrong"} {
		if _, err := mcpClient(t, base, token); err == nil {
			t.Errorf("token %q: got a session, want none", token)
		}
	}
	ann, err := mcpClient(t, base, "ann-key")
	must(t, err)
	bob, err := mcpClient(t, base, "bob-key")
	must(t, err)
	said, err := say(ann, "add_memory", m{"episode_body": "Ann likes tea."})
	if err != nil || !strings.Contains(said, "pending_id") {
		t.Errorf("add_memory of Ann = %s, %v, want a pending text", said, err)
	}
	if said, err := say(ann, "confirm_memory", nil); err != nil || !strings.Contains(said, "tea") {
		t.Errorf("confirm_memory of Ann = %s, %v, want her text", said, err)
	}
	if said, err := say(bob, "confirm_memory", nil); err != nil || strings.Contains(said, "tea") {
		t.Errorf("confirm_memory of Bob = %s, %v, want no text of Ann", said, err)
	}
	if said, err := say(bob, "get_status", nil); err != nil || !strings.Contains(said, "ok") {
		t.Errorf("get_status of Bob = %s, %v, want ok", said, err)
	}
	code, _ := post(t, base+"/mcp", m{"jsonrpc": "2.0", "id": 9, "method": "tools/list"},
		"Authorization", "Bearer bob-key", "Accept", "application/json, text/event-stream", "Mcp-Session-Id", ann.ID())
	if code != http.StatusForbidden {
		t.Errorf("Bob in the session of Ann: got status %d, want 403", code)
	}
}

// TestMCP_Refusals checks that the server refuses pages of other sites, calls for another
// instance, large calls, calls without a credential, and streams without a call.
func TestMCP_Refusals(t *testing.T) {
	t.Parallel()
	var roots []string
	base := servePeople(t, "", &roots)
	with := servePeople(t, "operator-token", &roots)
	hello := m{"jsonrpc": "2.0", "id": 1, "method": "ping"}
	for _, tc := range []struct {
		base   string
		body   any
		header []string
		want   int
	}{
		{base, hello, []string{"Origin", "http://evil.example"}, http.StatusForbidden},
		{with, hello, []string{"Origin", "http://evil.example", "Authorization", "Bearer operator-token"}, http.StatusForbidden},
		{base, hello, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{base, nil, nil, http.StatusMethodNotAllowed},
		{with, hello, nil, http.StatusUnauthorized},
		{base, m{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": strings.Repeat("x", maxBody)}, nil, http.StatusRequestEntityTooLarge},
	} {
		code, said := post(t, tc.base+"/mcp", tc.body, append([]string{"Accept", "application/json, text/event-stream"}, tc.header...)...)
		if code != tc.want {
			t.Errorf("%q: got %d %.200s, want %d", tc.header, code, said, tc.want)
		}
	}
}
