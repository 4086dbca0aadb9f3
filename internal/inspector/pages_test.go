package inspector

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// hostile is a text that attacks the reader of a page that shows it.
const hostile = `<script>alert(1)</script><img src=x onerror=alert(2)>"'><b>javascript:alert(3)` + "\u202e\u2066\x1b[31m"

// pageAddresses are the addresses of all pages.
var pageAddresses = []string{
	"/", "/live", "/conversations", "/conversations?skip=50", "/conversations?skip=x", "/memory", "/memory/show?group=user_josh", "/search?kind=fact&project=user_josh&state=valid&sort=time",
	"/search?kind=fact", "/changes", "/memory/show?group=user_josh&before=2020-01-01T00:00:00Z", "/memory/show?group=user_josh&before=never", "/search", "/search?q=alert+cat", "/search?since=2020-01-01&kind=message&sort=time", "/search?kind=x", "/search?q=alert&sort=chat", "/delivery", "/delivery?text=1",
	"/memory/import", "/memory/forget", "/memory/forget?group=user_josh", "/memory/forget?group=another", "/?done=corrected", "/?done=" + "%3Cb%3E",
	"/nothing", "/conversation/0123", "/message/0123",
}

// TestEveryPage checks that each page has one heading, a title and the token in its forms,
// links only to existing pages, and escapes stored texts: without data, with a little and
// with hostile data.
func TestEveryPage(t *testing.T) {
	fill := map[string]func(*testing.T, *servicetest.Fixture){
		"nothing": func(*testing.T, *servicetest.Fixture) {},
		"a little": func(t *testing.T, m *servicetest.Fixture) {
			m.Say(t, "", "s1", "", "My cat is called Miso.")
			m.Say(t, "", "s2", "github_repo:github.com/acme/widgets", "Priya uses Postgres in Berlin.")
		},
		"hostile": func(t *testing.T, m *servicetest.Fixture) {
			for i := range 30 {
				m.Say(t, "", `s"><b>`+fmt.Sprint(i%7), "", hostile+strings.Repeat("W", 300)+fmt.Sprint(i)+strings.Repeat(" and so on", 500))
			}
			m.Say(t, "", "s", `path:/<script>alert(4)</script>`, hostile)
			must(t, helptest.ErrorOf(m.Memory.Promote(t.Context(), &service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "Always " + hostile}})))
			m.Settle(t)
		},
	}
	for name, fill := range fill {
		t.Run(name, func(t *testing.T) {
			m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
			fill(t, m)
			s := newSite(t, m)
			for _, at := range pageAddresses {
				status, body := s.get(t, at)
				if status == http.StatusInternalServerError {
					t.Errorf("%s: %d", at, status)
				}
				s.wellFormed(t, at, body)
				s.harmless(t, at, body)
				if n := len(body) + s.filesOf(body); n > maxPageBytes {
					t.Errorf("%s has %d bytes with its files; %d are the most", at, n, maxPageBytes)
				}
			}
		})
	}
}

// maxPageBytes bounds a page with all files that it loads.
const maxPageBytes = 200 << 10

// filesOf returns the number of bytes that a page loads.
func (s *site) filesOf(body string) (n int) {
	for _, l := range links.FindAllStringSubmatch(body, -1) {
		body, _ := staticFiles.ReadFile(strings.TrimPrefix(l[1], "/")) // another link has no size
		n += len(body)
	}
	return n
}

// harmless checks that a page holds no part of hostile unescaped.
func (s *site) harmless(t testing.TB, at, body string) {
	t.Helper()
	for _, bad := range []string{"<script>", "<img src=x", "<b>javascript", `"'>`, "alert(4)</script>"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s shows %q as it was said", at, bad)
		}
	}
}

// TestStaticFiles checks that the static files are small in total, have a type, and are not
// sent again to a browser that has cached them.
func TestStaticFiles(t *testing.T) {
	s := newSite(t, servicetest.Open(t, t.TempDir(), servicetest.Options{}))
	all := 0
	files, _ := staticFiles.ReadDir("static") // cannot fail
	for _, f := range files {
		at := "/static/" + f.Name()
		body, _ := staticFiles.ReadFile(at[1:])
		all += len(body)
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		s.pages.ServeStatic(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") == "" || w.Body.Len() != len(body) {
			t.Errorf("%s: %d, %s", at, w.Code, w.Header().Get("Content-Type"))
		}
		r.Header.Set("If-None-Match", w.Header().Get("ETag"))
		w = httptest.NewRecorder()
		if s.pages.ServeStatic(w, r); w.Code != http.StatusNotModified {
			t.Errorf("%s again: %d", at, w.Code)
		}
	}
	if all > maxPageBytes/2 {
		t.Errorf("%d bytes", all)
	}
	w := httptest.NewRecorder()
	if s.pages.ServeStatic(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/static/../pages.go", nil)); w.Code != http.StatusNotFound {
		t.Errorf("another file: %d", w.Code)
	}
}

// TestLoginPage checks the login form, and that pages are well-formed.
func TestLoginPage(t *testing.T) {
	s := newSite(t, servicetest.Open(t, t.TempDir(), servicetest.Options{}))
	login := httptest.NewRecorder()
	s.pages.ServeLogin(login, http.StatusUnauthorized, "that was not the token", true, "")
	for at, w := range map[string]*httptest.ResponseRecorder{
		"/":        s.serve(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)),
		"/nothing": s.serve(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/nothing", nil)),
		"/login":   login,
	} {
		s.wellFormed(t, at, w.Body.String())
	}
	if body := login.Body.String(); login.Code != http.StatusUnauthorized || !strings.Contains(body, "That was not the token.") || !strings.Contains(body, `type="password"`) || !strings.Contains(body, `autocomplete="current-password"`) {
		t.Errorf("%d %s", login.Code, body)
	}
}

// TestNewcomersSeeHowToConnect checks that the first page explains how to connect a client
// until a turn is stored.
func TestNewcomersSeeHowToConnect(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	if _, body := s.get(t, "/"); !strings.Contains(body, "graphiti-proxy connect") || !strings.Contains(body, "OPENAI_BASE_URL=http://") || strings.Contains(body, "This week") {
		t.Errorf("got %s", body)
	}
	m.Say(t, "", "s", "", "My cat is called Miso.")
	turn := service.Line{Where: "memory", Role: "user", Content: "We moved to Berlin.", Episode: "graphiti-proxy.turn.t1.user", Source: `{"session":"abc"}`}
	must(t, helptest.ErrorOf(m.Memory.Import(t.Context(), &service.ImportRequest{Lines: []service.Line{turn}})))
	m.Settle(t)
	if _, body := s.get(t, "/"); strings.Contains(body, "OPENAI_BASE_URL") || !strings.Contains(body, "This week") {
		t.Errorf("got %s", body)
	}
}

// TestNeedsHaveRemedies checks that every need in a status has a text and a
// remedy.
func TestNeedsHaveRemedies(t *testing.T) {
	st := health.Status{Memory: health.MemoryStatus{State: health.StateTrouble, Why: "it does not answer", Remedy: "start it"},
		Unconfirmed: []health.Unconfirmed{{ID: "ann", Why: "somebody had the id", Remedy: "say who it is"}}, Blocked: []string{"g"},
		Clients: []graphiti.ClientSigns{{Name: "Codex", Version: "9", NoPlace: 1, NoDirectory: 2, NotHere: 1}}, Waiting: []string{"admin.listen"}}
	st.Apart = []graphiti.Apart{{Directory: "/clone", Workspace: "github_repo:github.com/acme/app", Remedy: "join it"}}
	st.Queue.Dead = 3
	list := needs(&st)
	if len(list) != 9 {
		t.Errorf("%d needs: %+v", len(list), list)
	}
	for _, n := range list {
		if n.What == "" || n.Remedy == "" {
			t.Errorf("got %+v", n)
		}
	}
}

// TestMemoryThatIsOff checks that pages report a disabled memory with its remedy, and that
// a form changes nothing.
func TestMemoryThatIsOff(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	off := service.Host{Counts: m.Counts}
	off.Status = status(func(st *health.Status) {
		st.Memory.TurnOff(health.FaultSetting, st.Started, "memory.backend is off", "set memory.backend to embedded")
	})
	s.pages.o.Host = &off
	for _, at := range []string{"/conversations", "/memory", "/search", "/memory/show?group=g", "/memory/import", "/memory/forget"} {
		status, body := s.get(t, at)
		if status != http.StatusOK || !strings.Contains(body, "memory.backend is off.") || !strings.Contains(body, "Set memory.backend to embedded.") {
			t.Errorf("%s: %d %s", at, status, body)
		}
		s.wellFormed(t, at, body)
	}
	for _, at := range []string{"/", "/delivery"} {
		if status, body := s.get(t, at); status != http.StatusOK || !strings.Contains(body, "emory is off") {
			t.Errorf("%s: %d %s", at, status, body)
		}
	}
	if w := s.post(t, "/memory/forget", "group", "user_josh", "typed", "your own memory"); !strings.Contains(w.Body.String(), "memory.backend is off") {
		t.Errorf("forget: %d %s", w.Code, w.Body)
	}
}

// TestPeopleSeeTheirPlaces checks that a person who is no operator gets neither the
// operators' pages nor links to them.
func TestPeopleSeeTheirPlaces(t *testing.T) {
	s := newSite(t, servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true}))
	s.caller = service.Caller{Name: "ann", Own: service.Selector{User: "user:ann"}}
	for _, at := range []string{"/delivery", "/people"} {
		if status, body := s.get(t, at); status != http.StatusForbidden || strings.Contains(body, `href="`+at+`"`) {
			t.Errorf("%s: %d %s", at, status, body)
		}
	}
	if w := s.post(t, "/delivery/drop", "all", "1", "sure", "1"); w.Code != http.StatusForbidden {
		t.Errorf("drop: %d", w.Code)
	}
	if w := s.post(t, "/people/accept", "id", "ann"); w.Code != http.StatusForbidden {
		t.Errorf("accept: %d", w.Code)
	}
	if slices.Contains(s.audit, "drop turns") {
		t.Errorf("audited: %v", s.audit)
	}
}

// TestFormsReturnToInspectorPages checks that a form redirects only to pages of the inspector,
// even if its field names another address.
func TestFormsReturnToInspectorPages(t *testing.T) {
	for back, want := range map[string]string{
		"/conversation/abc?user=josh#t-1": "/conversation/abc?user=josh#t-1",
		"https://example.com/":            "/x",
		"//example.com/":                  "/x",
		`/\example.com/`:                  "/x",
		"javascript:alert(1)":             "/x",
		"memory":                          "/x",
		"":                                "/x",
		"/%5cexample.com":                 "/x",
		"/%2fexample.com":                 "/x",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Form = map[string][]string{"back": {back}}
		if got := (&visit{r: r}).back("/x"); got != want {
			t.Errorf("%q: got %q, want %q", back, got, want)
		}
	}
}

// TestAnOperatorSearchesByPerson checks that an operator chooses the person of a search, that its words
// and filters stay, and that the filter of another person's project does not.
func TestAnOperatorSearchesByPerson(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	m.Say(t, "ann", "s1", "", "The vault is in Oslo.")
	m.Say(t, "ben", "s2", "", "The vault is in Rome.")
	s := newSite(t, m)
	const anns = "/search?kind=message&amp;q=vault&amp;user=user%3Aann"
	s.has(t, "/search?q=vault&kind=message", "Oslo", false)
	s.has(t, "/search?q=vault&kind=message&project=p", `href="`+anns+`"`, true)
	_, body := s.get(t, strings.ReplaceAll(anns, "&amp;", "&"))
	if !strings.Contains(body, "in Oslo") || strings.Contains(body, "in Rome") || !strings.Contains(body, `<b>ann</b> <a class="button small" href="/search?kind=message&amp;q=vault">`) {
		t.Errorf("of ann: %s", body)
	}
	s.caller = service.Caller{Name: "ben", Own: service.Selector{User: "ben"}}
	if status, body := s.get(t, strings.ReplaceAll(anns, "&amp;", "&")); status != http.StatusForbidden || strings.Contains(body, "in Oslo") {
		t.Errorf("ben: %d, %s", status, body)
	}
	s.has(t, "/search?q=vault", "Another person", false)
}
