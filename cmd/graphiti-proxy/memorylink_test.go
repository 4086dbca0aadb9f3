package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestMemoryLink checks that a person whom a gateway names sees only their own memory with a link of
// the gateway or of the operator, that the link opens pages and no API, and that a visit needs its form.
func TestMemoryLink(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "identity.group_ids": "raw", "admin.token": "secret", "identity.trusted_keys": "gateway"})
	w.say("My cat is called Miso.", "Authorization", "Bearer gateway", "X-Graphiti-User", "mira")
	w.say("My dog is called Rex.", "Authorization", "Bearer gateway", "X-Graphiti-User", "bob")
	w.delivered(2)
	base := "http://" + w.app.admin.Addr().String()
	link := func(key string, in m, headers ...string) string {
		t.Helper()
		status, answer := w.asks(key, "memory/link", in, headers...)
		var l service.Link
		if err := json.Unmarshal([]byte(answer), &l); status != http.StatusOK || err != nil {
			t.Fatalf("got %d %s", status, answer)
		}
		return l.Path
	}
	for name, path := range map[string]string{
		"of the gateway":  link("gateway", m{}, "X-Graphiti-User", "mira"),
		"of the operator": link("secret", m{"user": "mira"}),
	} {
		jar, _ := cookiejar.New(nil) // never fails
		browser := &http.Client{Jar: jar}
		page := func(resp *http.Response, err error) (int, string) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(text)
		}
		_, secret, _ := strings.Cut(path, "link=")
		if _, form := page(browser.Get(base + path)); !strings.Contains(form, `value="`+secret+`"`) {
			t.Errorf("%s: the form lacks the secret: %s", name, form)
		}
		if status, _ := page(browser.Get(base + "/memory")); status != http.StatusUnauthorized {
			t.Errorf("%s: a page before the form is sent has status %d", name, status)
		}
		req, err := http.NewRequest(http.MethodPost, base+"/login", strings.NewReader(url.Values{"token": {secret}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", base)
		page(browser.Do(req))
		if status, found := page(browser.Get(base + "/search?q=cat")); status != http.StatusOK || !strings.Contains(found, "Miso") {
			t.Errorf("%s: got %d %s", name, status, found)
		}
		for _, at := range []string{"/search?q=dog", "/search?q=dog&user=bob", "/memory?user=bob", "/people", "/delivery"} {
			if _, found := page(browser.Get(base + at)); strings.Contains(found, "Rex") {
				t.Errorf("%s: %s shows another person's memory", name, at)
			}
		}
		if status, answer := w.asks(secret, "memory/search", m{"query": "cat"}); status != http.StatusUnauthorized {
			t.Errorf("%s: the API accepts it: %d %s", name, status, answer)
		}
	}
	for name, in := range map[string]m{"another person": {"user": "bob"}, "a group": {"group": "user_bob"}} {
		if status, answer := w.asks("gateway", "memory/link", in, "X-Graphiti-User", "mira"); status == http.StatusOK {
			t.Errorf("%s: got %s", name, answer)
		}
	}
	if status, answer := w.asks("secret", "memory/link", m{}); status != http.StatusBadRequest {
		t.Errorf("nobody: got %d %s", status, answer)
	}
}
