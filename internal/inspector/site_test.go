package inspector

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// site is the inspector's pages of a memory, for one visitor.
type site struct {
	*servicetest.Fixture
	pages  *Pages
	caller service.Caller
	audit  []string // audited operations, with " failed" after those with an error
}

func newSite(t testing.TB, m *servicetest.Fixture) *site {
	t.Helper()
	s := &site{Fixture: m, caller: service.Operator}
	s.pages = New(Options{Host: m.Host, Log: slog.New(slog.DiscardHandler), Audit: func(_ *http.Request, e *service.Entry, err error) {
		what := e.What
		if err != nil {
			what += " failed"
		}
		s.audit = append(s.audit, what)
	}})
	return s
}

func (s *site) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.pages.Serve(w, r, Visit{Caller: s.caller, Leave: true})
	return w
}

// get returns the status and the body of a page.
func (s *site) get(t testing.TB, at string) (int, string) {
	t.Helper()
	w := s.serve(httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil))
	return w.Code, w.Body.String()
}

// post sends a form; names and values alternate.
func (s *site) post(t testing.TB, at string, fields ...string) *httptest.ResponseRecorder {
	t.Helper()
	form := make(url.Values)
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.serve(r)
}

var (
	links     = regexp.MustCompile(`(?:href|action|formaction|src)="([^"]*)"`)
	ids       = regexp.MustCompile(` id="([^"]*)"`)
	inline    = regexp.MustCompile(`(?i)<[^>]* (?:style|on[a-z]+)=|<style|<script>`)
	invisible = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)
)

// wellFormed checks the properties that all pages share: structure, tokens, unique ids, no
// inline code or invisible characters, and working links.
func (s *site) wellFormed(t testing.TB, at string, body string) {
	t.Helper()
	for what, want := range map[string]int{"<h1>": 1, "<main ": 1, "</html>": 1, `<html lang="en">`: 1} {
		if got := strings.Count(body, what); got != want {
			t.Errorf("%s has %d %s, want %d", at, got, what, want)
		}
	}
	if title := between(body, "<title>", " · graphiti-proxy</title><link"); strings.TrimSpace(title) == "" || strings.Contains(title, "<") {
		t.Errorf("%s has no title", at)
	}
	if bad := inline.FindString(body); bad != "" {
		t.Errorf("%s has %.200q", at, bad)
	}
	if i := invisible.FindStringIndex(body); i != nil {
		t.Errorf("%s has %q", at, body[max(0, i[0]-40):i[1]])
	}
	seen := make(map[string]bool)
	for _, id := range ids.FindAllStringSubmatch(body, -1) {
		if seen[id[1]] {
			t.Errorf("%s has the id %q twice", at, id[1])
		}
		seen[id[1]] = true
	}
	for _, l := range links.FindAllStringSubmatch(body, -1) {
		s.leads(t, at, strings.ReplaceAll(l[1], "&amp;", "&"))
	}
}

// leads checks that an address on a page is a page or a file of the inspector.
func (s *site) leads(t testing.TB, on, to string) {
	t.Helper()
	to, _, _ = strings.Cut(to, "#")
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || u.Scheme != "" {
		t.Errorf("%s leads to %q", on, to)
		return
	}
	if strings.HasPrefix(u.Path, "/static/") {
		if _, err := staticFiles.ReadFile(u.Path[1:]); err != nil {
			t.Errorf("%s: %v", on, err)
		}
		return
	}
	if u.Path == "" || u.Path == "/login" || u.Path == "/logout" {
		return
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, pattern := s.pages.mux.Handler(httptest.NewRequestWithContext(t.Context(), method, to, nil)); pattern != "" {
			return
		}
	}
	t.Errorf("%s leads to %q, where nothing is", on, to)
}

func between(s, from, to string) string {
	_, rest, _ := strings.Cut(s, from)
	in, _, _ := strings.Cut(rest, to)
	return in
}
