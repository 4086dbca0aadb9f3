package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
)

// asks posts an operation's input to the admin side with a credential.
func (w *world) asks(key, operation string, in m) (int, string) {
	w.t.Helper()
	b, _ := json.Marshal(in)
	req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.admin.Addr().String()+"/api/v1/"+operation, bytes.NewReader(b))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestWhoACredentialProves on the admin side is whom it proves with a client: registered
// people and accepted credentials see their own memory, and those with admin: true
// everything; a gateway, and people without a memory, get a reason.
func TestWhoACredentialProves(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	register := func(josh string) {
		t.Helper()
		text := fmt.Sprintf("users:\n- id: josh\n  %s\n  keys: [\"sha256:%s\"]\n- id: ann\n  memoryEnabled: false\n  keys: [\"sha256:%s\"]\n- id: root\n  admin: true\n  memoryEnabled: false\n  keys: [\"sha256:%s\"]\n",
			josh, sha("sk-josh"), sha("sk-ann"), sha("sk-root"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	register("displayName: Josh")
	other := local(t)
	w := start(t, t.TempDir(), map[string]string{
		"identity.mode": "multi", "identity.group_ids": "raw", "admin.token": "secret", "identity.users_file": file, "identity.trusted_keys": "sk-gateway", "upstreams": "local=" + other.URL(),
	})
	reload := func() {
		t.Helper()
		if _, err := w.app.reload(w.app.cfg); err != nil {
			t.Fatal(err)
		}
	}
	w.say("My cat is called Miso.", "Authorization", "Bearer sk-josh")
	w.say("My dog is called Rex.", "Authorization", "Bearer sk-b")
	w.post(other, "/u/local/v1/chat/completions", "sk-c", "My parrot is called Kiwi.")
	w.delivered(3)
	for _, tc := range []struct {
		key    string
		status int
		says   string
	}{
		{"sk-josh", 200, "Miso"},
		{"sk-b", 200, "Rex"},
		{"sk-c", 200, "Kiwi"},
		{"sk-gateway", 403, "gateway"},
		{"sk-ann", 403, "turned off"},
		{"sk-never", 401, ""},
		{"sha256:" + sha("sk-josh"), 401, ""},
	} {
		polltest.Until(t, tc.key+" to be known", func() bool { // that it was accepted is noted behind the answer
			status, _ := w.asks(tc.key, "memory/show", m{})
			return status == tc.status
		})
		_, answer := w.asks(tc.key, "memory/show", m{})
		if !strings.Contains(answer, tc.says) {
			t.Errorf("%s: %s, want %q", tc.key, answer, tc.says)
		}
		for _, secret := range []string{"Miso", "Rex", "Kiwi"} {
			if secret != tc.says && strings.Contains(answer, secret) {
				t.Errorf("%s sees %s: %s", tc.key, secret, answer)
			}
		}
		if tc.key != "sk-josh" {
			if status, answer := w.asks(tc.key, "memory/show", m{"user": "josh"}); status < 400 || strings.Contains(answer, "Miso") {
				t.Errorf("%s asks for josh's: %d %s", tc.key, status, answer)
			}
		}
	}
	if status, answer := w.asks("sk-root", "memory/show", m{"user": "josh"}); status != 200 || !strings.Contains(answer, "Miso") {
		t.Errorf("admin: true: %d %s", status, answer)
	}
	if got := w.api(t, "sk-josh"); got != http.StatusForbidden {
		t.Errorf("the queue: %d", got)
	}
	register("admin: true")
	if reload(); w.api(t, "sk-josh") != http.StatusOK {
		t.Error("josh is no operator after a reload")
	}
	register("memoryEnabled: false")
	reload()
	if status, answer := w.asks("sk-josh", "memory/show", m{}); status != 403 || strings.Contains(answer, "Miso") {
		t.Errorf("without memory: %d %s", status, answer)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "users:\n- id: josh\n  keys: [\"sha256:%s\"]\n", sha("sk-ann")), 0o600); err != nil {
		t.Fatal(err)
	}
	reload()
	if status, answer := w.asks("sk-ann", "memory/show", m{}); status != 403 || !strings.Contains(answer, "not certain") {
		t.Errorf("the id is given to somebody else, whose memory is in doubt: %d %s", status, answer)
	}
	for _, key := range []string{"sk-josh", "sk-ann", "sk-b", "sk-gateway", "sk-never"} {
		if strings.Contains(w.log.String(), key+"\"") || strings.Contains(w.log.String(), "Bearer "+key) {
			t.Errorf("%s is in the log", key)
		}
	}
}

// TestSingleModeKnowsNoPeople: only the token lets anybody in.
func TestSingleModeKnowsNoPeople(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"admin.token": "secret", "identity.users_file": usersFile(t)})
	w.say("My cat is called Miso.", "Authorization", "Bearer sk-josh")
	if got := w.api(t, "sk-josh"); got != http.StatusUnauthorized {
		t.Errorf("a credential: %d", got)
	}
}
