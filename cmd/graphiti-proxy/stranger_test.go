package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// stranger answers where the admin side of a proxy is expected.
type stranger struct {
	*httptest.Server
	mu  sync.Mutex
	got strings.Builder // all that it was sent
}

// newStranger says that it owns a data directory, and that clients are served at an
// address of its own. relay is the admin side of the real proxy, which it passes
// challenges on to; empty: there is none.
func newStranger(t *testing.T, dir, relay string) *stranger {
	t.Helper()
	s := &stranger{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		fmt.Fprintf(&s.got, "%s %s %v %s\n", r.Method, r.URL, r.Header, body)
		s.mu.Unlock()
		w.Header().Set(admin.InstanceHeader, datadir.Instance(dir))
		if relay != "" {
			req, _ := http.NewRequest(http.MethodGet, "http://"+relay+r.URL.Path, nil)
			req.Header = r.Header.Clone()
			if resp, err := http.DefaultClient.Do(req); err == nil {
				w.Header().Set(admin.ProofHeader, resp.Header.Get(admin.ProofHeader))
				resp.Body.Close()
			}
		}
		if r.URL.Path == "/healthz" {
			_, _ = io.WriteString(w, "ok\n")
			return
		}
		fmt.Fprintf(w, `{"listen":%q,"data_dir":%q,"memory":{"state":"on"},"messages":[],"facts":[]}`, s.Listener.Addr().String(), dir)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *stranger) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// TestStrangerOnTheAdminPort: whoever answers there, echoes the instance or passes
// the challenge on to the real proxy gets neither the token nor a word.
func TestStrangerOnTheAdminPort(t *testing.T) {
	t.Parallel()
	const token, words = "token-of-the-admin", "My cat is called Miso."
	w := start(t, t.TempDir(), map[string]string{"admin.token": token})
	dir, real := w.app.cfg.DataDir, w.app.admin.Addr().String()
	lone := filepath.Join(t.TempDir(), "data") // of a proxy that is stopped
	if err := os.MkdirAll(lone, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.MakeSecret(lone); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*stranger{"echoes": newStranger(t, lone, ""), "passes on": newStranger(t, dir, real)} {
		its, at := lone, s.Listener.Addr().String()
		if name == "passes on" {
			its = dir
		}
		for _, args := range [][]string{
			{"status"}, {"status", "--health"}, {"test"}, {"memory", "show"}, {"memory", "search", words}, {"memory", "promote", words}, {"queue", "status"},
		} {
			for _, more := range [][]string{{"--set", "data_dir=" + its}, nil} { // and named by its address alone
				// A command may use the files itself, or refuse: what counts is what is sent.
				_, err := command(t, t.TempDir(), append(append(args, "--set", "admin.listen="+at, "--set", "admin.token="+token), more...)...)
				if err != nil && strings.Contains(err.Error(), "panic") {
					t.Error(err)
				}
			}
		}
		if got := s.heard(); strings.Contains(got, token) || strings.Contains(got, "Miso") || got == "" {
			t.Errorf("a stranger that %s was sent:\n%s", name, got)
		}
	}
	// The provider's key goes where clients send theirs, whatever a status says.
	elsewhere := newStranger(t, lone, "").Listener.Addr().String()
	if _, err := command(t, t.TempDir(), "test", "--upstream", "openai", "--set", "admin.listen="+elsewhere); err == nil || !strings.Contains(err.Error(), "no key is sent") {
		t.Errorf("test, where the status names another listener: %v", err)
	}
	// The proxy itself is asked as before, also where a stranger answers first.
	if out, err := command(t, t.TempDir(), "status", "--set", "admin.listen="+newStranger(t, dir, real).Listener.Addr().String(), "--set", "data_dir="+dir, "--set", "admin.token="+token); err != nil || !strings.Contains(out, "proxy     running") {
		t.Errorf("behind a stranger: %v: %s", err, out)
	}
	out, err := command(t, t.TempDir(), "status", "--set", "admin.listen="+real, "--set", "data_dir="+dir, "--set", "admin.token="+token)
	if err != nil || !strings.Contains(out, "proxy     running") {
		t.Errorf("%v: %s", err, out)
	}
	if b, err := os.Stat(filepath.Join(dir, "secret")); err != nil || b.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v, %v", b, err)
	}
}

// TestCommandsThatReadMakeNoDirectory: a mistyped data_dir is named, and not made.
func TestCommandsThatReadMakeNoDirectory(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"memory", "show"}, {"memory", "search", "cat"}, {"memory", "export"}, {"memory", "forget", "--user", "me", "--yes"},
		{"memory", "show", "--set", "memory.endpoint=http://127.0.0.1:1", "--set", "memory.consent=true"},
		{"queue", "status"}, {"queue", "list"}, {"queue", "retry", "--all"}, {"status", "--header", "X-Graphiti-Session: s"}, {"repair"}, {"workspace", "join", "."},
		{"status"}, {"test"}, {"test-connection"}, {"config", "check"}, {"config", "print"},
		{"status", "--header", "X-Graphiti-User: josh", "--set", "identity.mode=multi"},
	} {
		home := t.TempDir()
		dir := filepath.Join(home, "typo")
		_, err := command(t, home, append(args, "--set", "data_dir="+dir)...)
		if _, made := os.Stat(dir); made == nil {
			t.Errorf("%v made the directory", args)
		}
		uses := slices.Contains([]string{"memory", "queue", "repair", "workspace"}, args[0]) || len(args) == 3
		if uses && (err == nil || !strings.HasPrefix(err.Error(), "data_dir: there is no directory "+dir) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
