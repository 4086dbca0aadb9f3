package proxy

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// TestNamedUpstream checks that the name is removed and the rest of the target goes to that
// upstream unchanged. An unknown name, or another spelling of one, is answered 404.
func TestNamedUpstream(t *testing.T) {
	usual, local := newStub(t, say(okAnswer)), newStub(t, say(okAnswer))
	s, _ := start(t, usual.url(), func(o *Options) { o.Routes.Upstreams["local"] = local.url() + "/base/" })
	plain, _ := start(t, usual.url())
	for _, tc := range []struct {
		target string
		to     *stub // nil for a 404
		want   string
		in     *Server
	}{
		{"/u/local/v1/chat/completions", local, "/base/v1/chat/completions", s},
		{"/u/local/v1/messages?beta=true", local, "/base/v1/messages?beta=true", s},
		{"/u/local/a%2Fb//c?x=/u/else/", local, "/base/a%2Fb//c?x=/u/else/", s},
		{"/u/local/", local, "/base/", s},
		{"/u/local/u/local/x", local, "/base/u/local/x", s},
		{"http://proxy/u/local/v1/models", local, "/base/v1/models", s},
		{"/u/local/.well-known/x", local, "/base/.well-known/x", s},
		{"/u/local", nil, "", s},
		{"/u/local?a/b", nil, "", s},
		{"/u", nil, "", s},
		{"//u/local/v1/models", nil, "", s},
		{"/./u/local/v1/models", nil, "", s},
		{"/U/local/v1/models", nil, "", s},
		{"/u//local/v1/models", nil, "", s},
		{"/%75/local/v1/models", nil, "", s},
		{"/u%2Flocal/v1/models", nil, "", s},
		{"/%2575/local/v1/models", nil, "", s},
		{"/v1/../u/local/v1/models", nil, "", s},
		{"/\\u\\local/v1/models", nil, "", s},
		{"http://proxy//u/local/v1/models", nil, "", s},
		{"/u/local/../else/v1/models", nil, "", s},
		{"/u/local/../../v1/models", nil, "", s},
		{"/v1/u/local/x", usual, "/v1/u/local/x", s},
		{"/u/locl/v1/models", nil, "", s},
		{"/u/Local/v1/models", nil, "", s},
		{"/u/openai/v1/models", nil, "", s},
		{"/u//v1/models", nil, "", s},
		{"/users/local/v1/models", usual, "/users/local/v1/models", s},
		{"/v1//models/%75/./x?/u/local/", usual, "/v1//models/%75/./x?/u/local/", s},
		{"/u/local/v1/models", usual, "/u/local/v1/models", plain}, // has no named upstreams
		{"//u/local/v1/models", usual, "//u/local/v1/models", plain},
	} {
		before := len(usual.requests()) + len(local.requests())
		answer, err := talk(t, tc.in, "GET "+tc.target+" HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n")
		must(t, err)
		if tc.to == nil {
			if !strings.HasPrefix(answer, "HTTP/1.1 404 ") || !strings.Contains(answer, "the setting upstreams") || len(usual.requests())+len(local.requests()) != before {
				t.Errorf("%s: got %s, want 404 with the setting's name, and no request passed on", tc.target, answer)
			}
			continue
		}
		got := tc.to.requests()
		if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "GET "+tc.want+" HTTP/1.1\r\n") || len(usual.requests())+len(local.requests()) != before+1 {
			t.Errorf("%s: got %q, want one request, for %s", tc.target, got, tc.want)
		}
	}
}

// TestNobodysNameIsAnsweredInTheAPIsShape checks that the error for an unknown name has the
// format of the requested API.
func TestNobodysNameIsAnsweredInTheAPIsShape(t *testing.T) {
	w := newStub(t, say(okAnswer))
	s, _ := start(t, w.url(), func(o *Options) { o.Routes.Upstreams["local"] = w.url() })
	for target, want := range map[string]string{
		"/u/locl/v1beta/models/m:generateContent":   `"status":"NOT_FOUND"`,
		"//u/local/v1beta/models/m:generateContent": `"status":"NOT_FOUND"`,
		"/U/local/v1/messages":                      `{"type":"error","error":{"message":"`,
		"/u/locl/v1/chat/completions":               `"param":null`,
	} {
		answer, err := talk(t, s, "POST "+target+" HTTP/1.1\r\nHost: proxy\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		if err != nil || !strings.HasPrefix(answer, "HTTP/1.1 404 ") || !strings.Contains(answer, want) {
			t.Errorf("%s: got %s %v, want no error, 404, %q in it", target, answer, err, want)
		}
	}
}

// TestClientKeys checks that a request without a client key is answered 401 and not
// forwarded.
func TestClientKeys(t *testing.T) {
	w := newStub(t, say(okAnswer))
	keys := identity.NewFingerprints([]string{"mine", "sha256:" + graphiti.Fingerprint([]byte("hashed"))})
	s, _ := start(t, w.url(), func(o *Options) { o.Routes.Limits.Keys = keys })
	for _, tc := range []struct {
		field string
		ok    bool
	}{
		{"Authorization: Bearer mine", true},
		{"X-Api-Key: hashed", true},
		{"Authorization: Bearer other\r\nX-Api-Key: mine", true},
		{"Authorization: Bearer other", false},
		{"X-Other: mine", false},
	} {
		before := len(w.requests())
		answer, err := talk(t, s, "GET /v1/models HTTP/1.1\r\nHost: proxy\r\n"+tc.field+"\r\nConnection: close\r\n\r\n")
		must(t, err)
		if ok := len(w.requests()) > before; ok != tc.ok || strings.HasPrefix(answer, "HTTP/1.1 401 ") == tc.ok || !tc.ok && !strings.Contains(answer, "client.keys") {
			t.Errorf("%s: %s", tc.field, answer)
		}
	}
}

func TestChatBase(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": "/v1",
		"/v1/responses":        "/v1",
		"/v1/messages":         "/v1",
		"/v1beta/models/gemini-pro:streamGenerateContent": "/v1beta/openai",
		"/v1/embeddings": "",
	} {
		if got, ok := chatBase(path); got != want || ok != (want != "") {
			t.Errorf("chatBase(%q) = %q, %v; want %q", path, got, ok, want)
		}
	}
}
