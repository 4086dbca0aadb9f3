package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKeyGoesWhereClientsSendTheirs checks that the test command sends no key if the status
// on the admin side names another listener than the configuration.
func TestKeyGoesWhereClientsSendTheirs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			fmt.Fprintf(w, `{"listen":%q,"data_dir":%q,"memory":{"state":"on"}}`, s.Listener.Addr().String(), dir)
		}
	}))
	t.Cleanup(s.Close)
	if _, err := command(t, t.TempDir(), "test", "--set", "admin.listen="+s.Listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "no key is sent") {
		t.Errorf("test, where the status names another listener: %v, want that no key is sent", err)
	}
}

// TestCommandsThatReadMakeNoDirectory checks that commands that only read do not create a
// mistyped data_dir, and name it if they need it.
func TestCommandsThatReadMakeNoDirectory(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"memory", "show"}, {"memory", "search", "cat"}, {"memory", "export"}, {"memory", "forget", "--user", "me", "--yes"},
		{"memory", "show", "--set", "memory.endpoint=http://127.0.0.1:1", "--set", "memory.consent=true"},
		{"queue", "status"}, {"queue", "list"}, {"queue", "retry", "--all"}, {"repair"}, {"workspace", "join", "."},
		{"status"}, {"test"}, {"test-connection"}, {"config", "check"}, {"config", "print"},
	} {
		home := t.TempDir()
		dir := filepath.Join(home, "typo")
		_, err := command(t, home, append(args, "--set", "data_dir="+dir)...)
		if _, made := os.Stat(dir); made == nil {
			t.Errorf("%v made the directory", args)
		}
		uses := slices.Contains([]string{"memory", "queue", "repair", "workspace"}, args[0])
		if uses && (err == nil || !strings.HasPrefix(err.Error(), "data_dir: no directory "+dir) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v: got %v, want one line that there is no directory %s", args, err, dir)
		}
	}
}
