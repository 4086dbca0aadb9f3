package admin

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestPagesOfOthersAreKeptOut checks that only the proxy's own pages can change data, and
// that other sites can only link to a page in a tab. Without a token, only local host names
// are accepted.
func TestPagesOfOthersAreKeptOut(t *testing.T) {
	for _, token := range []string{"", "secret"} {
		h := newHouse(t, token)
		b := h.browser()
		if token != "" {
			b.login(token)
			b.cookies[h.loginCookie(&http.Request{Host: "admin.example"})] = b.session() // without a port
		}
		host := h.Addr().String()
		port := strings.TrimPrefix(host, "127.0.0.1")
		tab := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
		for _, tc := range []struct {
			name, method string
			headers      []string
			let          bool
		}{
			{"our page", "GET", nil, true},
			{"our form", "POST", nil, true},
			{"typed", "GET", []string{"Sec-Fetch-Site", "none"}, true},
			{"an old browser", "GET", []string{"Sec-Fetch-Site", ""}, true},
			{"a link from elsewhere", "GET", tab, true},
			{"a form from elsewhere", "POST", append(tab, "Origin", "https://evil.example"), false},
			{"a form that hides it", "POST", append(tab, "Origin", "null"), false},
			{"a form with our origin from elsewhere", "POST", tab, false},
			{"a script from elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, false},
			{"an image from elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, false},
			{"a frame from elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, false},
			{"another port reads", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, false},
			{"another port links", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
			{"another port posts", "POST", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}, false},
			{"another port, an old browser", "POST", []string{"Sec-Fetch-Site", "", "Origin", "http://127.0.0.1:1"}, false},
			{"another name of this machine, an old browser", "POST", []string{"Sec-Fetch-Site", "", "Origin", "http://localhost" + port}, false},
			{"a name that begins as ours", "POST", []string{"Sec-Fetch-Site", "", "Origin", "http://" + host + ".evil.example"}, false},
			{"null", "POST", []string{"Sec-Fetch-Site", "", "Origin", "null"}, false},
			{"null reads", "GET", []string{"Sec-Fetch-Site", "", "Origin", "null"}, false},
			{"a name pointed here", "GET", []string{"Host", "evil.example" + port}, token != ""},
			{"a name pointed here posts", "POST", []string{"Host", "evil.example" + port, "Origin", "http://evil.example" + port}, token != ""},
			{"a name that begins as this machine's", "GET", []string{"Host", "localhost.evil.example"}, token != ""},
			{"localhost", "GET", []string{"Host", "localhost" + port}, true},
			{"localhost posts", "POST", []string{"Host", "localhost" + port, "Origin", "http://localhost" + port}, true},
			{"IPv6", "GET", []string{"Host", "[::1]" + port}, true},
			{"TLS that ends in front of us", "POST", []string{"Host", "admin.example", "Origin", "https://admin.example"}, token != ""},
		} {
			w := b.send(tc.method, "/memory", "", tc.headers...)
			if in(w) != tc.let {
				t.Errorf("token %q, %s: %d, want that it is let in: %v", token, tc.name, w.Code, tc.let)
			}
			hardened(t, tc.name, w)
			if !tc.let && w.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s: is given a cookie", tc.name)
			}
		}
	}
}

func hardened(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	for header, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if got := w.Header().Get(header); !strings.Contains(got, want) {
			t.Errorf("%s: %s is %q", name, header, got)
		}
	}
	for _, never := range []string{"unsafe", "*", "http"} {
		if got := w.Header().Get("Content-Security-Policy"); strings.Contains(got, never) || !strings.HasPrefix(got, "default-src 'none'") {
			t.Errorf("%s: the policy is %q", name, got)
		}
	}
}

// TestEndpointsStayEndpoints checks that unknown API paths and wrong methods do not return
// a page, and that static files and the login need no credentials.
func TestEndpointsStayEndpoints(t *testing.T) {
	h := newHouse(t, "secret")
	for _, tc := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/healthz", 200}, {"HEAD", "/healthz", 200}, {"POST", "/healthz", 405}, {"DELETE", "/metrics", 405},
		{"GET", "/api/v1/other", 404}, {"GET", "/api/", 404}, {"GET", "/api/v1/memory/show", 405}, {"POST", "/api/v1/queue", 405},
		{"GET", "/anything", 401}, {"GET", "/", 401}, {"GET", "/login", 200},
	} {
		w := h.browser().send(tc.method, tc.path, "")
		if w.Code != tc.status || tc.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: %d, want %d", tc.method, tc.path, w.Code, tc.status)
		}
	}
	w := h.browser().send("GET", "/static/none", "", "Sec-Fetch-Site", "none")
	if w.Code != 404 || w.Header().Get("Cross-Origin-Resource-Policy") != "same-origin" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// TestCookiesWithTLS checks that cookies are secure and bound to the host if the proxy or a
// trusted proxy in front of it uses TLS.
func TestCookiesWithTLS(t *testing.T) {
	h := newHouse(t, "secret")
	for _, tc := range []struct {
		name, peer, proto string
		ours, want        bool
	}{
		{"no TLS", "203.0.113.9:5", "", false, false},
		{"our TLS", "203.0.113.9:5", "", true, true},
		{"somebody says so", "203.0.113.9:5", "https", false, false},
		{"a trusted proxy's", "192.0.2.1:5", "https", false, true},
		{"a trusted proxy without", "192.0.2.1:5", "http", false, false},
		{"a trusted proxy that says both", "192.0.2.1:5", "https, http", false, false},
	} {
		if h.o.TLS = nil; tc.ours {
			h.o.TLS = &tls.Config{}
		}
		r := httptest.NewRequest("POST", "/login", strings.NewReader("token=secret"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = tc.peer
		r.Header.Set("X-Forwarded-Proto", tc.proto)
		w := httptest.NewRecorder()
		h.login(w, r)
		got := w.Result().Cookies()
		if len(got) != 1 || got[0].Secure != tc.want || strings.HasPrefix(got[0].Name, "__Host-graphiti-session-") != tc.want {
			t.Errorf("%s: %v, want that it is secure: %v", tc.name, got, tc.want)
		}
	}
	h.o.TLS = nil
	for _, tc := range []struct {
		cookies int
		want    bool
	}{{0, false}, {1, true}, {2, false}} { // two cookies with one name are both rejected
		r := httptest.NewRequest("GET", "/", nil)
		for range tc.cookies {
			r.AddCookie(&http.Cookie{Name: h.loginCookie(r), Value: h.token.Load().sealed(begin(sumOf("secret")))})
		}
		if _, ok := h.loginOf(r); ok != tc.want {
			t.Errorf("%d cookies of one name: let in %v, want %v", tc.cookies, ok, tc.want)
		}
	}
}

// TestAPanicIsContained checks that the panic's text is neither in the answer nor in the log,
// and that the answer is cut off.
func TestAPanicIsContained(t *testing.T) {
	var log bytes.Buffer
	s := &Server{o: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	web := httptest.NewServer(s.contained(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half a page")
		_ = http.NewResponseController(w).Flush()
		panic("My cat is called Miso.")
	})))
	defer web.Close()
	resp, err := http.Get(web.URL)
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	web.Close() // waits for the log
	if err == nil || strings.Contains(string(body)+log.String(), "Miso") || !strings.Contains(log.String(), "TestAPanicIsContained") {
		t.Errorf("the body is %q, %v, the log %s", body, err, log.String())
	}
}

// TestOperationsNeedACaller checks that every operation is forbidden for a request
// without a caller.
func TestOperationsNeedACaller(t *testing.T) {
	h := newHouse(t, "secret")
	for _, op := range service.Operations() {
		spec, in, _, _ := op.Describe()
		method, path, body, err := Request(spec, in)
		must(t, err)
		r := httptest.NewRequest(method, path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if h.serve(op)(w, r); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", spec.Name, w.Code, w.Body)
		}
	}
}
