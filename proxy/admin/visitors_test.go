package admin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// errGate is the error for the key of a gateway.
var errGate = errors.New("this is the key of a gateway")

// house is an admin server in multi mode that knows the credentials of josh, ann and root.
type house struct {
	*Server
	t     *testing.T
	log   bytes.Buffer
	known map[string]service.Caller // by fingerprint
}

func newHouse(t *testing.T, token string) *house {
	t.Helper()
	h := &house{t: t, known: map[string]service.Caller{
		sumOf("josh's").digits(): {Name: "josh", Own: service.Selector{User: "user:josh"}},
		sumOf("ann's").digits():  {Name: "ann", Own: service.Selector{User: "user:ann"}},
		sumOf("root's").digits(): {Name: "root", Operator: true},
	}}
	log := slog.New(slog.NewTextHandler(&h.log, nil))
	var err error
	h.Server, err = New(Options{
		Listen: "127.0.0.1:0", Token: token, Log: log, Audit: log, Metrics: http.NotFoundHandler(),
		Host:    servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true}).Host,
		Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Callers: func(ctx context.Context, fingerprint string, head http.Header) (service.Caller, error) {
			if fingerprint == sumOf("gateway's").digits() {
				if user := head.Get("X-Graphiti-User"); user != "" {
					return service.Caller{Name: user + ", named by the gateway", Own: service.Selector{User: "user:" + user}}, nil
				}
				return service.Caller{}, errGate
			}
			if fingerprint == sumOf("tenant's").digits() && ctx.Err() == nil { // only a store knows this caller
				return service.Caller{Name: "tenant", Own: service.Selector{User: "user:tenant"}}, nil
			}
			if c, ok := h.known[fingerprint]; ok {
				return c, nil
			}
			return service.Caller{}, ErrUnknown
		},
	})
	must(t, err)
	h.stopClock()
	t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	return h
}

// browser is a client with cookies.
type browser struct {
	h       *house
	cookies map[string]string
	peer    string
}

func (h *house) browser() *browser { return &browser{h, make(map[string]string), "127.0.0.1:5"} }

// send sends a request like one of the proxy's own pages. A body is a form. Headers replace
// the default ones; an empty value removes a header.
func (b *browser) send(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	host := b.h.Addr().String()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = host, b.peer
	set := map[string]string{"Sec-Fetch-Site": "same-origin"}
	if body != "" {
		set["Content-Type"] = "application/x-www-form-urlencoded"
	}
	if method != http.MethodGet {
		set["Origin"] = "http://" + host
	}
	for i := 0; i < len(headers); i += 2 {
		set[headers[i]] = headers[i+1]
	}
	for name, v := range set {
		if name == "Host" {
			r.Host = v
		} else if v != "" {
			r.Header.Set(name, v)
		}
	}
	for name, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	w := httptest.NewRecorder()
	b.h.http.Handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || !c.Expires.IsZero() && c.MaxAge >= 0 {
			b.h.t.Errorf("the cookie %s", c.Raw)
		}
	}
	return w
}

// login submits the login form with a secret.
func (b *browser) login(secret string) *httptest.ResponseRecorder {
	b.send("GET", "/login", "")
	return b.send("POST", "/login", url.Values{"token": {secret}}.Encode())
}

func (b *browser) name() string { return b.h.loginCookie(&http.Request{Host: b.h.Addr().String()}) }

func (b *browser) session() string { return b.cookies[b.name()] }

// who returns the name of the browser's caller, or "" if the browser has no access.
func (b *browser) who() string {
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = b.h.Addr().String()
	for name, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	v, _, ok := b.h.visit(httptest.NewRecorder(), r)
	if ok != (v.Caller.Name != "") {
		b.h.t.Errorf("let in %v: %+v", ok, v)
	}
	return v.Caller.Name
}

// in reports whether a page was served or a form accepted, whatever its result.
func in(w *httptest.ResponseRecorder) bool {
	return w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden && w.Code != http.StatusTooManyRequests
}

// TestLogin checks that the token and the credentials of people give access to their own
// caller, that the key of a gateway is refused, and that no secret is logged.
func TestLogin(t *testing.T) {
	h := newHouse(t, "secret")
	for _, tc := range []struct {
		secret, who string
		status      int
	}{
		{"secret", "the operator", http.StatusSeeOther},
		{" secret\n", "the operator", http.StatusSeeOther},
		{"josh's", "josh", http.StatusSeeOther},
		{"root's", "root", http.StatusSeeOther},
		{"gateway's", "", http.StatusForbidden},
		{"made up", "", http.StatusUnauthorized},
		{sumOf("josh's").digits(), "", http.StatusUnauthorized},
		{"sha256:" + sumOf("josh's").digits(), "", http.StatusUnauthorized},
		{"", "", http.StatusBadRequest},
	} {
		b := h.browser()
		if w := b.send("GET", "/", ""); w.Code != http.StatusUnauthorized {
			t.Fatalf("without a session: %d", w.Code)
		}
		w := b.login(tc.secret)
		if w.Code != tc.status || b.who() != tc.who || (b.session() != "") != (tc.who != "") || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%q: %d, let in as %q, want %d, %q", tc.secret, w.Code, b.who(), tc.status, tc.who)
		}
		if got := in(b.send("GET", "/", "")); got != (tc.who != "") {
			t.Errorf("%q: a page is served: %v", tc.secret, got)
		}
		if tc.secret != "" && strings.Contains(h.log.String(), strings.TrimSpace(tc.secret)+"\"") {
			t.Errorf("%q is in the log: %s", tc.secret, h.log.String())
		}
	}
	for _, want := range []string{`what="log in" who=josh by=josh peer=127.0.0.1 groups=[] done=true`, `what="log in" who="" by="" peer=127.0.0.1 groups=[] done=false`} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("no %s in %s", want, h.log.String())
		}
	}
}

// TestALoginHasANewSession checks that a login starts a session with a new id and ends the
// previous one.
func TestALoginHasANewSession(t *testing.T) {
	h := newHouse(t, "secret")
	b := h.browser()
	b.cookies[b.name()] = "chosen by somebody else"
	b.login("josh's")
	first := *b
	first.cookies = map[string]string{b.name(): b.session()}
	if b.session() == "chosen by somebody else" || len(b.session()) < 26 || b.who() != "josh" {
		t.Fatalf("the session %q", b.session())
	}
	b.login("secret")
	if b.who() != "the operator" || first.who() != "" || b.session() == first.session() {
		t.Errorf("after another login: %q, and %q with the session before", b.who(), first.who())
	}
}

// TestGuesses checks that guesses at the form and at the API are counted together, by
// address. A right credential is accepted after any number of guesses, unless only a store
// knows it.
func TestGuesses(t *testing.T) {
	h := newHouse(t, "secret")
	b := h.browser()
	asks := func(b *browser, secret string) int {
		return b.send("GET", root+"queue", "", "Authorization", "Bearer "+secret).Code
	}
	limited := false
	for range 10 * guessesPerSecond {
		limited = limited || b.login("a guess").Code == http.StatusTooManyRequests
	}
	if got := asks(b, "a guess"); !limited || got != http.StatusTooManyRequests {
		t.Errorf("guesses at the form are limited: %v; another at the API: %d, want true, 429", limited, got)
	}
	for secret, want := range map[string]int{"secret": 200, "root's": 200, "josh's": 403, "gateway's": 403, "tenant's": 429} {
		if got := asks(b, secret); got != want {
			t.Errorf("%s, after too many guesses: %d, want %d", secret, got, want)
		}
	}
	for _, secret := range []string{"secret", "josh's"} {
		if w := b.login(secret); w.Code != http.StatusSeeOther {
			t.Errorf("login of %s, after too many guesses: %d, want 303", secret, w.Code)
		}
	}
	elsewhere := h.browser()
	elsewhere.peer = "198.51.100.1:5"
	if got := asks(elsewhere, "tenant's"); got != http.StatusForbidden {
		t.Errorf("from another address: %d, want 403", got)
	}
}

// TestForwardedAddresses checks that the last untrusted address of X-Forwarded-For counts
// as the peer if a trusted proxy sent it, and that guesses are counted by that address.
func TestForwardedAddresses(t *testing.T) {
	h := newHouse(t, "secret")
	for _, tc := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"203.0.113.9:5", nil, "203.0.113.9"},
		{"203.0.113.9:5", []string{"198.51.100.7"}, "203.0.113.9"},
		{"192.0.2.1:5", nil, "192.0.2.1"},
		{"192.0.2.1:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"192.0.2.1:5", []string{"10.0.0.1, 198.51.100.7"}, "198.51.100.7"},
		{"192.0.2.1:5", []string{"198.51.100.7", "192.0.2.2"}, "198.51.100.7"},
		{"192.0.2.1:5", []string{"10.0.0.1, 198.51.100.7 , 192.0.2.2"}, "198.51.100.7"},
		{"192.0.2.1:5", []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{"192.0.2.1:5", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"192.0.2.1:5", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{"[::ffff:192.0.2.1]:5", []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{"192.0.2.1:5", []string{"198.51.100.7, unknown"}, "192.0.2.1"},
		{"192.0.2.1:5", []string{"198.51.100.7, <script>", "192.0.2.2"}, "192.0.2.2"},
		{"192.0.2.1:5", []string{""}, "192.0.2.1"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.peer
		r.Header["X-Forwarded-For"] = tc.forwarded
		if got := h.peerOf(r); got != tc.want {
			t.Errorf("peerOf of %s with %q = %s, want %s", tc.peer, tc.forwarded, got, tc.want)
		}
	}
	guess := func(from string) int {
		b := h.browser()
		b.peer = "192.0.2.1:5"
		return b.send("GET", root+"queue", "", "Authorization", "Bearer a guess", "X-Forwarded-For", from).Code
	}
	for range 10 * guessesPerSecond {
		guess("198.51.100.7")
	}
	if one, other := guess("198.51.100.7"), guess("198.51.100.8"); one != http.StatusTooManyRequests || other != http.StatusUnauthorized {
		t.Errorf("a guess of a client of the proxy: %d, and of another: %d, want 429, 401", one, other)
	}
}

// TestCallsCountForEachCaller checks that a caller who exceeds the limit on pages is also
// refused at the API, and that other callers are not affected.
func TestCallsCountForEachCaller(t *testing.T) {
	h := newHouse(t, "secret")
	josh, ann := h.browser(), h.browser()
	josh.login("josh's")
	ann.login("ann's")
	refused := 0
	for range 20 * callsPerSecond {
		if josh.send("GET", "/", "").Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("pages are not limited")
	}
	if w := josh.send("POST", root+"memory/show", `{}`, "Content-Type", "application/json", "Authorization", "Bearer josh's"); w.Code != http.StatusTooManyRequests {
		t.Errorf("the API, after too many pages: %d, want 429", w.Code)
	}
	if w := ann.send("GET", "/", ""); !in(w) {
		t.Errorf("another person's page: %d, want 200", w.Code)
	}
	if w := h.browser().send("GET", root+"queue", "", "Authorization", "Bearer secret"); w.Code != http.StatusOK {
		t.Errorf("an operator's program: %d, want 200", w.Code)
	}
}

// TestLogout checks that only a POST of our own pages ends the session.
func TestLogout(t *testing.T) {
	h := newHouse(t, "secret")
	b := h.browser()
	b.login("josh's")
	stolen := h.browser()
	stolen.cookies[b.name()] = b.session()
	for _, w := range []*httptest.ResponseRecorder{b.send("GET", "/logout", ""), b.send("POST", "/logout", "", "Sec-Fetch-Site", "", "Origin", "https://evil.example")} {
		if w.Code < 400 || b.who() != "josh" {
			t.Errorf("%d, and then %q", w.Code, b.who())
		}
	}
	if w := b.send("POST", "/logout", ""); w.Code != http.StatusSeeOther || b.session() != "" || stolen.who() != "" {
		t.Errorf("%d; the session is still %q's", w.Code, stolen.who())
	}
}

// TestSessionPermissionsAreRechecked checks that a changed token, a removed person and a
// new operator take effect with the next request of a session.
func TestSessionPermissionsAreRechecked(t *testing.T) {
	h := newHouse(t, "secret")
	operator, josh := h.browser(), h.browser()
	operator.login("secret")
	josh.login("josh's")
	fingerprint := sumOf("josh's").digits()
	before := h.known[fingerprint]
	h.known[fingerprint] = service.Caller{Name: "josh", Operator: true}
	if w := josh.send("GET", "/", ""); !in(w) || josh.who() != "josh" {
		t.Errorf("as an operator: %d", w.Code)
	}
	delete(h.known, fingerprint)
	if w := josh.send("GET", "/", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("who is not registered any more is answered %d", w.Code)
	}
	h.known[fingerprint] = before
	if josh.who() != "" {
		t.Error("a session that has ended goes on")
	}
	h.SetToken("another")
	if operator.who() != "" {
		t.Error("the old token's session goes on")
	}
	h.SetToken("secret")
	operator.login("secret")
	h.SetToken("")
	if w := operator.send("GET", "/", ""); !in(w) || operator.who() != "the operator" {
		t.Errorf("without a token: %d", w.Code)
	}
	h.SetToken("secret")
	if h.browser().who() != "" {
		t.Error("what let everybody in without a token lets them in with one")
	}
}

// TestLocalClientsAreOperatorsWithoutToken checks that without a token every local
// client is the operator, without a login.
func TestLocalClientsAreOperatorsWithoutToken(t *testing.T) {
	h := newHouse(t, "")
	b := h.browser()
	if w := b.send("GET", "/", "", "Sec-Fetch-Site", "none"); !in(w) || b.who() != "the operator" || len(b.cookies) > 0 {
		t.Errorf("the first visit: %d, %v", w.Code, b.cookies)
	}
	if w := b.send("POST", "/memory", ""); !in(w) {
		t.Errorf("a change: %d", w.Code)
	}
	for _, path := range []string{"/login", "/logout"} {
		if w := b.send("GET", path, ""); in(w) && w.Code == http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := h.browser().send("GET", root+"queue", "", "Sec-Fetch-Site", ""); w.Code != http.StatusOK {
		t.Errorf("a program: %d", w.Code)
	}
}

// TestTheAPITakesCredentials checks that the API accepts people's credentials in its
// header, but no cookie, and limits them to their own memory.
func TestTheAPITakesCredentials(t *testing.T) {
	h := newHouse(t, "secret")
	b := h.browser()
	b.login("secret")
	for _, tc := range []struct {
		path, body, secret string
		status             int
		says               string
	}{
		{"queue", "", "", 401, ""},
		{"queue", "", "secret", 200, ""},
		{"queue", "", "root's", 200, ""},
		{"queue", "", "josh's", 403, "only operators"},
		{"queue/drop", `{"all":true}`, "josh's", 403, "only operators"},
		{"status", "", "josh's", 403, "only operators"},
		{"queue", "", "gateway's", 403, "gateway"},
		{"queue", "", "gateway's for ann", 403, "only operators"},
		{"memory/show", `{}`, "gateway's for ann", 200, ""},
		{"memory/show", `{"user":"josh"}`, "gateway's for ann", 403, "not your memory"},
		{"queue", "", "made up", 401, ""},
		{"memory/show", `{}`, "josh's", 200, ""},
		{"memory/show", `{"user":"ann"}`, "josh's", 403, "not your memory"},
		{"memory/show", `{"user":"ann"}`, "ann's", 200, ""},
		{"memory/export?group=user_ann", "", "josh's", 403, "not your memory"},
		{"memory/export?group=user_josh", "", "josh's", 200, ""},
	} {
		method, headers := "GET", []string{"Sec-Fetch-Site", "", "Origin", ""}
		if tc.body != "" {
			method, headers = "POST", append(headers, "Content-Type", "application/json")
		}
		if secret, user, named := strings.Cut(tc.secret, " for "); named {
			headers = append(headers, "Authorization", "Bearer "+secret, "X-Graphiti-User", user)
		} else if tc.secret != "" {
			headers = append(headers, "Authorization", "Bearer "+tc.secret)
		}
		if w := b.send(method, root+tc.path, tc.body, headers...); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s %s with %q: %d %s, want %d %s", tc.path, tc.body, tc.secret, w.Code, w.Body, tc.status, tc.says)
		}
	}
	for _, want := range []string{`what=queue/drop who="" by=josh peer=127.0.0.1 groups=[] done=false`, `what=show who="user=user:ann" by=ann `, `what=show who="user=user:ann" by="ann, named by the gateway" `} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("no %s in %s", want, h.log.String())
		}
	}
}
