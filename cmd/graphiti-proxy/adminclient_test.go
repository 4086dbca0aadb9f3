package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestCommandsUseNoProxy checks that a command calls the running proxy directly and not
// over HTTP_PROXY, which would see its token, even if it listens on all addresses, as in a
// container.
func TestCommandsUseNoProxy(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"admin.token": "secret"})
	var asked atomic.Int32
	between := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer between.Close()
	_, port, err := net.SplitHostPort(w.app.admin.Addr().String())
	must(t, err)
	for _, host := range []string{"0.0.0.0", "", "127.0.0.1"} {
		for _, args := range [][]string{{"status"}, {"status", "--health"}} {
			c := exec.Command(os.Args[0], append(args, "--set", "admin.listen="+net.JoinHostPort(host, port), "--set", "admin.token=secret", "--set", "data_dir="+w.app.cfg.DataDir)...) // #nosec G204 -- ourselves
			c.Env = append(os.Environ(), "TEST_BINARY_RUNS=the program", "HTTP_PROXY="+between.URL, "http_proxy="+between.URL, "NO_PROXY=", "no_proxy=")
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%q %v: %v\n%s", host, args, err, out)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("a proxy was asked %d times", n)
	}
}

// TestOpen checks that open prints the address of the running proxy's inspector, even
// without a browser, and that without a proxy its error names the remedy.
func TestOpen(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	at := "http://" + w.app.admin.Addr().String() + "\n"
	for _, args := range [][]string{
		{"open", "--set", "data_dir=" + w.app.cfg.DataDir},
		{"open", "--set", "admin.listen=" + w.app.admin.Addr().String()},
	} {
		out, beside, err := commandIn(t, t.TempDir(), t.TempDir(), args...)
		if err != nil || out != at || !strings.Contains(beside, "open the address in a browser") {
			t.Errorf("%q: %q, %q, %v", args, out, beside, err)
		}
	}
	out, err := command(t, t.TempDir(), "open")
	if err == nil || out != "" || !strings.Contains(err.Error(), "graphiti-proxy serve") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without a proxy: %q, %v", out, err)
	}
}

// TestBrowse checks that browse starts the program that opens addresses on each system, and
// that its error reports a missing display or browser.
func TestBrowse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := browse("linux", "", "http://x"); err == nil || !strings.Contains(err.Error(), "no display") {
		t.Errorf("without a display: %v", err)
	}
	if err := browse("linux", ":0", "http://x"); err == nil || !strings.Contains(err.Error(), "found no browser") {
		t.Errorf("without xdg-open: %v", err)
	}
	for system, name := range map[string]string{"linux": "xdg-open", "darwin": "open", "windows": "rundll32"} {
		to := filepath.Join(dir, system)
		// #nosec G306 -- a program
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho \"$@\" > "+to+".part; /bin/mv "+to+".part "+to+"\n"), 0o700))
		must(t, browse(system, ":0", "http://x"))
		var got []byte
		helptest.Until(t, name+" to be called", func() (ok bool) {
			b, err := os.ReadFile(to)
			got = b
			return err == nil
		})
		if !strings.HasSuffix(string(got), "http://x\n") {
			t.Errorf("%s was called with %q", name, got)
		}
	}
}

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
			must(t, err)
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
		must(t, err)
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

// TestAddressesThatWork: a listener on all addresses is reached on this machine, in
// the family that it was set to.
func TestAddressesThatWork(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"0.0.0.0:0": "http://127.0.0.1:9", ":0": "http://127.0.0.1:9", "[::]:0": "http://[::1]:9", "127.0.0.1:0": "http://127.0.0.1:9", "localhost:0": "http://localhost:9", "10.0.0.1:9": "http://10.0.0.1:9",
	} {
		if got := address(&config.Config{}, "client", set, &net.TCPAddr{IP: net.IPv6zero, Port: 9}); got != want {
			t.Errorf("%s is reached at %s, want %s", set, got, want)
		}
	}
}
