package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// asks posts the input of an operation to the admin side with a credential, and returns the
// status and the answer. headers are names and values.
func (w *world) asks(key, operation string, in m, headers ...string) (int, string) {
	w.t.Helper()
	b, _ := json.Marshal(in)
	req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.admin.Addr().String()+"/api/v1/"+operation, bytes.NewReader(b))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return resp.StatusCode, string(answer)
}

// TestWhoACredentialProves checks that a credential proves the same person on the admin
// side as in a request to the proxy: registered people and accepted credentials see their
// own memory, and people with admin: true see every memory. A gateway, and people without
// memory, get a reason.
func TestWhoACredentialProves(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	register := func(josh string) {
		t.Helper()
		text := fmt.Sprintf("users:\n- id: josh\n  %s\n  keys: [\"sha256:%s\"]\n- id: ann\n  memoryEnabled: false\n  keys: [\"sha256:%s\"]\n- id: root\n  admin: true\n  memoryEnabled: false\n  keys: [\"sha256:%s\"]\n",
			josh, sha("sk-josh"), sha("sk-ann"), sha("sk-root"))
		writeFile(t, file, text)
	}
	register("displayName: Josh")
	other := local(t)
	w := start(t, t.TempDir(), map[string]string{
		"identity.mode": "multi", "identity.group_ids": "raw", "admin.token": "secret", "identity.users_file": file, "identity.trusted_keys": "sk-gateway", "upstreams": "local=" + other.URL(),
	})
	reload := func() {
		t.Helper()
		must(t, helptest.ErrorOf(w.app.reload(w.app.cfg)))
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
		helptest.Until(t, tc.key+" to be known", func() bool { // the proxy records an accepted key after the answer
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
	writeFile(t, file, fmt.Sprintf("users:\n- id: josh\n  keys: [\"sha256:%s\"]\n", sha("sk-ann")))
	reload()
	if status, answer := w.asks("sk-ann", "memory/show", m{}); status != 403 || !strings.Contains(answer, "in doubt") {
		t.Errorf("the id is given to somebody else, whose memory is in doubt: %d %s", status, answer)
	}
	for _, key := range []string{"sk-josh", "sk-ann", "sk-b", "sk-gateway", "sk-never"} {
		if strings.Contains(w.log.String(), key+"\"") || strings.Contains(w.log.String(), "Bearer "+key) {
			t.Errorf("%s is in the log", key)
		}
	}
}

// TestSingleModeKnowsNoPeople checks that the admin side of single mode refuses the
// credential of a registered person.
func TestSingleModeKnowsNoPeople(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"admin.token": "secret", "identity.users_file": usersFile(t)})
	w.say("My cat is called Miso.", "Authorization", "Bearer sk-josh")
	if got := w.api(t, "sk-josh"); got != http.StatusUnauthorized {
		t.Errorf("a credential: %d", got)
	}
}

// TestPeopleOfAGateway checks that people see, search, correct and forget only their own
// memory through a gateway, whichever header names them.
func TestPeopleOfAGateway(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	text := fmt.Sprintf("users:\n- id: josh\n  identities: {openwebui: josh@example.org}\n  keys: [\"sha256:%s\"]\n- id: ann\n  memoryEnabled: false\n- id: root\n  admin: true\n", sha("sk-josh"))
	writeFile(t, file, text)
	w := start(t, t.TempDir(), map[string]string{
		"identity.mode": "multi", "admin.token": "secret", "identity.users_file": file, "identity.trusted_keys": "sk-gateway",
	})
	w.say("My parrot is called Kiwi.", "Authorization", "Bearer sk-josh")
	w.say("My cat is called Miso.", "Authorization", "Bearer sk-gateway", "X-Graphiti-User", "carol")
	w.say("My dog is called Rex.", "Authorization", "Bearer sk-gateway", "X-OpenWebUI-User-Id", "ow-7")
	w.say("My horse is called Ajax.", "Authorization", "Bearer sk-other", "X-Graphiti-User", "carol")
	w.delivered(4)
	for _, tc := range []struct {
		key     string
		headers []string
		status  int
		says    string
	}{
		{"sk-gateway", []string{"X-Graphiti-User", "carol"}, 200, "Miso"},
		{"sk-gateway", []string{"X-Graphiti-User", "openwebui:ow-7"}, 200, "Rex"},
		{"sk-gateway", []string{"X-OpenWebUI-User-Id", "ow-7"}, 200, "Rex"},
		{"sk-gateway", []string{"X-Graphiti-User", "josh"}, 200, "Kiwi"},
		{"sk-gateway", []string{"X-OpenWebUI-User-Id", "ow-josh", "X-OpenWebUI-User-Email", "josh@example.org"}, 200, "Kiwi"},
		{"sk-gateway", []string{"x-litellm-end-user-id", "dave"}, 200, ""},
		{"sk-gateway", nil, 403, "names no person"},
		{"sk-gateway", []string{"X-Graphiti-User", ""}, 403, "names no person"},
		{"sk-gateway", []string{"X-Graphiti-System-Actor", "nightly"}, 403, "names no person"},
		{"sk-gateway", []string{"X-Graphiti-User", "carol", "X-Api-Key", "sk-josh"}, 403, "names no person"},
		{"sk-gateway", []string{"X-Graphiti-User", "carol", "X-Graphiti-User", "josh"}, 403, "contradict"},
		{"sk-gateway", []string{"X-OpenWebUI-User-Jwt", "a.b.c"}, 403, "not signed"},
		{"sk-gateway", []string{"X-Graphiti-User", "ann"}, 403, "turned off"},
		{"sk-other", []string{"X-Graphiti-User", "carol"}, 200, ""}, // no gateway: the memory of its own key is empty
		{"sk-josh", []string{"X-Graphiti-User", "carol"}, 200, "Kiwi"},
		{"sk-never", []string{"X-Graphiti-User", "carol"}, 401, ""},
	} {
		helptest.Until(t, tc.key+" to be known", func() bool { // the proxy records an accepted key after the answer
			status, _ := w.asks(tc.key, "memory/show", m{}, tc.headers...)
			return status == tc.status
		})
		_, answer := w.asks(tc.key, "memory/show", m{}, tc.headers...)
		if !strings.Contains(answer, tc.says) {
			t.Errorf("%s %q: %s, want %q", tc.key, tc.headers, answer, tc.says)
		}
		for _, secret := range []string{"Miso", "Rex", "Kiwi", "Ajax"} {
			if secret != tc.says && strings.Contains(answer, secret) {
				t.Errorf("%s %q sees %s: %s", tc.key, tc.headers, secret, answer)
			}
		}
	}
	carol := func(operation string, in m) (int, string) {
		return w.asks("sk-gateway", operation, in, "X-Graphiti-User", "carol")
	}
	for _, op := range service.Operations() {
		spec, _, _, _ := op.Describe()
		status, answer := carol(spec.Name, m{"user": "josh"})
		if status < 400 || strings.Contains(answer, "Kiwi") {
			t.Errorf("%s of another person: %d %s", spec.Name, status, answer)
		}
	}
	if status, answer := w.asks("sk-gateway", "registry/accept", m{"id": "josh"}, "X-Graphiti-User", "root"); status != 403 || !strings.Contains(answer, "only operators") {
		t.Errorf("an operator whom a gateway names: %d %s, want 403", status, answer)
	}
	if status, answer := carol("memory/search", m{"query": "What is my cat called?"}); status != 200 || !strings.Contains(answer, "Miso") {
		t.Errorf("search: %d %s, want Miso", status, answer)
	}
	message := func() (found struct{ ID, Group string }) {
		var list struct {
			Messages []struct{ ID, Group, Text string }
		}
		_, answer := carol("memory/show", m{})
		if err := json.Unmarshal([]byte(answer), &list); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		for _, r := range list.Messages {
			if strings.Contains(r.Text, "cat is called") {
				found.ID, found.Group = r.ID, r.Group
			}
		}
		return found
	}
	if status, answer := carol("memory/correct", m{"message": message().ID, "text": "My cat is called Nori.", "now": true}); status != 200 {
		t.Errorf("correct: %d %s", status, answer)
	}
	if _, answer := carol("memory/show", m{}); !strings.Contains(answer, "Nori") || strings.Contains(answer, "Miso") {
		t.Errorf("corrected: %s, want Nori in place of Miso", answer)
	}
	if status, answer := carol("memory/forget", m{"group": message().Group}); status != 200 {
		t.Errorf("forget: %d %s", status, answer)
	}
	if _, answer := carol("memory/show", m{}); strings.Contains(answer, "Nori") {
		t.Errorf("forgotten: %s", answer)
	}
	if _, answer := w.asks("sk-josh", "memory/show", m{}); !strings.Contains(answer, "Kiwi") {
		t.Errorf("another person's, after all of that: %s, want Kiwi", answer)
	}
	for _, want := range []string{"correct", "forget"} {
		entry := regexp.MustCompile(`msg=audit what=` + want + ` .*by="carol, named by the gateway sha256:` + sha("sk-gateway")[:12])
		if !entry.MatchString(w.log.String()) {
			t.Errorf("no %s in the log", entry)
		}
	}
}
