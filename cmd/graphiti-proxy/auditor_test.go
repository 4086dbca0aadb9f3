package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestAuditor checks that an auditor sees people, status and counts, and no text of others.
func TestAuditor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	users := "users:\n  - {id: josh, keys: [\"sha256:" + sha("sk-josh") + "\"]}\n  - {id: eve, auditor: true, keys: [\"sha256:" + sha("sk-eve") + "\"]}\n"
	writeFile(t, file, users)
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "identity.group_ids": "raw", "admin.token": "secret", "identity.users_file": file})
	w.say("My cat is called Miso.", "Authorization", "Bearer sk-josh")
	waitUntil(t, "the turn", func() bool { return w.app.memory().queue().Delivered > 0 })
	read := func(key, path string) int {
		t.Helper()
		req, _ := http.NewRequest(http.MethodGet, "http://"+w.app.admin.Addr().String()+"/api/v1/"+path, http.NoBody)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for _, path := range []string{"status", "queue", "memory/retention"} {
		if status := read("sk-eve", path); status != http.StatusOK {
			t.Errorf("%s: got %d, want 200", path, status)
		}
		if status := read("sk-josh", path); status != http.StatusForbidden {
			t.Errorf("%s of another person: got %d, want 403", path, status)
		}
	}
	if status, answer := w.asks("sk-eve", "memory/people", m{}); status != http.StatusOK || !strings.Contains(answer, "user:josh") || strings.Contains(answer, "Miso") {
		t.Errorf("people: got %d %s", status, answer)
	}
	for operation, in := range map[string]m{
		"memory/show": {"user": "josh"}, "memory/search": {"user": "josh", "query": "cat"}, "memory/list": {"user": "josh"}, "memory/history": {"user": "josh"},
		"memory/forget": {"group": "user_josh"}, "memory/groups": {"user": "josh"}, "registry/accept": {"id": "josh"}, "queue/drop": {"numbers": []int{1}},
	} {
		if status, answer := w.asks("sk-eve", operation, in); status != http.StatusForbidden || strings.Contains(answer, "Miso") {
			t.Errorf("%s: got %d %s, want 403", operation, status, answer)
		}
	}
	for _, path := range []string{"memory/export?group=user_josh", "queue/turns?text=true"} {
		if status := read("sk-eve", path); status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", path, status)
		}
	}
}

// TestAuditorNeedsMultiMode checks that config check says in which mode keys of auditors work.
func TestAuditorNeedsMultiMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "users.yaml")
	writeFile(t, file, "users:\n  - {id: eve, auditor: true, keys: [\"sha256:"+sha("sk-eve")+"\"]}\n")
	for mode, want := range map[string]bool{"single": true, "multi": false} {
		out, err := command(t, dir, "config", "check", "--set", "identity.users_file="+file, "--set", "identity.mode="+mode)
		if err != nil || strings.Contains(out, "auditors open the admin side only with identity.mode: multi") != want {
			t.Errorf("%s: %v, %s", mode, err, out)
		}
	}
}
