package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestOnlyWebSocketIsTunnelled checks that other upgrades are answered 501. A tunnel of
// HTTP/2 would carry requests past the proxy, with identity headers that it does not check.
func TestOnlyWebSocketIsTunnelled(t *testing.T) {
	w := newStub(t, say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"))
	s, _ := start(t, w.url())
	for name, request := range map[string]string{
		"h2c":                    "GET /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
		"h2c with a body":        "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nContent-Length: 2\r\n\r\n{}",
		"h2c behind websocket":   "GET /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n",
		"h2c in a second line":   "GET /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
		"in capitals":            "GET /v1/x HTTP/1.1\r\nHost: p\r\nCONNECTION: UPGRADE\r\nUPGRADE: H2C\r\n\r\n",
		"another protocol":       "GET /v1/x HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n",
		"HTTP/2 without upgrade": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := talk(t, s, request)
			if !strings.HasPrefix(got, "HTTP/1.1 501 ") || !strings.Contains(got, `"code":"not_implemented"`) {
				t.Errorf("answer %q, %v", got, err)
			}
		})
	}
	if got := w.requests(); len(got) > 0 {
		t.Errorf("the upstream got %q", got)
	}
	// Without Connection: Upgrade, the field is for another hop, and is removed.
	if got, _ := talk(t, s, "GET /v1/x HTTP/1.1\r\nHost: p\r\nUpgrade: h2c\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
		t.Errorf("answer %q", got) // the upstream switches without an upgrade
	}
	if got := w.requests(); len(got) != 1 || strings.Contains(got[0], "h2c") {
		t.Errorf("the upstream got %q", got)
	}
}

// TestTwoLengths checks that bytes after a body with an ambiguous length are not parsed as
// a request.
func TestTwoLengths(t *testing.T) {
	const chunks = "2\r\nhi\r\n0\r\n\r\n"
	const next = "GET /smuggled HTTP/1.1\r\nHost: p\r\n\r\n"
	for name, tc := range map[string]struct{ fields, want string }{
		"length first":           {"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "200"},
		"coding first":           {"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "200"},
		"in capitals":            {"TRANSFER-ENCODING: CHUNKED\r\nCONTENT-LENGTH: 3\r\n", "200"},
		"two lengths":            {"Content-Length: 2\r\nContent-Length: 3\r\n", "400"},
		"a length twice":         {"Content-Length: 2\r\nContent-Length: 2\r\n", "400"},
		"a list of lengths":      {"Content-Length: 2, 2\r\n", "400"},
		"identity":               {"Content-Length: 2\r\nTransfer-Encoding: identity\r\n", "400"},
		"identity alone":         {"Transfer-Encoding: identity\r\n", "400"},
		"identity last":          {"Transfer-Encoding: chunked, identity\r\n", "400"},
		"coding twice":           {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "400"},
		"blank before the colon": {"Transfer-Encoding : chunked\r\nContent-Length: 2\r\n", "400"},
		"folded":                 {"Transfer-Encoding:\r\n chunked\r\nContent-Length: 2\r\n", "400"},
		"unknown coding":         {"Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStub(t, say(okAnswer))
			s, _ := start(t, w.url())
			got, _ := talk(t, s, "POST /v1/x HTTP/1.1\r\nHost: p\r\n"+tc.fields+"\r\n"+chunks+next)
			if !strings.HasPrefix(got, "HTTP/1.1 "+tc.want+" ") || strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Errorf("answer %q", got)
			}
			if !strings.Contains(got, "Connection: close\r\n") {
				t.Errorf("the end of the connection is not said: %q", got)
			}
			for _, r := range w.requests() {
				if strings.Contains(r, "/smuggled") || strings.Count(strings.ToLower(r), "content-length:")+strings.Count(strings.ToLower(r), "transfer-encoding:") != 1 {
					t.Errorf("the upstream got %q", r)
				}
			}
		})
	}
}

// TestKeyInPathIsNotLogged checks that a key in the target of a request is not logged.
func TestKeyInPathIsNotLogged(t *testing.T) {
	w := newStub(t, say(okAnswer))
	var b lines
	s, _ := start(t, w.url(), func(o *Options) {
		o.Routes.Logged = true
		o.Log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	key := "sk-" + strings.Repeat("a1", 12)
	for _, target := range []string{"/" + key + "/v1/x", "/v1/x?key=" + key, "http://u:" + key + "@h/v1/x"} {
		if got, _ := talk(t, s, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", target)); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%s: got %q, want \"HTTP/1.1 200 \" at its beginning", target, got)
		}
	}
	must(t, s.Shutdown(context.Background()))
	if log := b.String(); strings.Contains(log, key) || strings.Count(log, "msg=request") != 3 {
		t.Errorf("got %s, want three requests and no key", log)
	}
}
