package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestRejectedCredentialLearnsNothing checks that a 401 or 403 answer does not reveal the
// result of a search, and that its request stores neither a turn nor a directive. After
// another error, a directive is stored when the client tries again with success.
func TestRejectedCredentialLearnsNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"single", "multi"} {
		w := start(t, t.TempDir(), map[string]string{"identity.mode": mode, "identity.users_file": usersFile(t), "promote.directives": "true"})
		key := []string{"Authorization", "Bearer sk-josh"}
		w.say(fact, key...)
		w.delivered(1)
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError} {
			w.model.SetFaults(proxytest.Faults{Status: status})
			text := question + "\npreference (user): I want " + http.StatusText(status)
			got, header := w.exchange("/v1/chat/completions", chat(user(text)), key...)
			said := header.Get("X-Graphiti-Memory")
			refused := status != http.StatusInternalServerError
			if got != status || (said == "") != refused || !refused && !strings.HasPrefix(said, "recalled; facts=1") || header.Get("X-Graphiti-Request-Id") == "" {
				t.Errorf("%s: %d says %q", mode, got, said)
			}
		}
		if lines := w.waitingLines(mode, "user:josh"); lines != "" {
			t.Errorf("%s: waiting are %q before any request with a directive was accepted", mode, lines)
		}
		w.model.SetFaults(proxytest.Faults{})
		again := question + "\npreference (user): I want " + http.StatusText(http.StatusInternalServerError)
		if _, header, _ := w.say(again, key...); !strings.HasSuffix(header, "; pending=1") { // the client tries again
			t.Errorf("%s: got %s, want \"; pending=1\" at its end", mode, header)
		}
		w.say("Good night.", key...)
		w.delivered(3)
		all := w.waitingLines(mode, "user:josh")
		if n := strings.Count(all, "I want"); n != 1 {
			t.Errorf("%s: waiting are %q, want the directive of the accepted request only", mode, all)
		}
		for _, g := range w.groups() {
			for _, e := range w.heldIn(g) {
				all += e.Text + "\n"
			}
		}
		if strings.Contains(all, "Unauthorized") || strings.Contains(all, "Forbidden") || !strings.Contains(all, "I want Internal Server Error") {
			t.Errorf("%s: kept is %s", mode, all)
		}
		w.stop()
	}
}

// waitingLines returns the lines that wait for their person's decision; user selects the
// person in multi mode.
func (w *world) waitingLines(mode, user string) (lines string) {
	w.t.Helper()
	in := service.PendingRequest{}
	if mode == "multi" {
		in.User = user
	}
	got, err := service.Pending.Run(w.t.Context(), w.remembers().host(), &in)
	must(w.t, err)
	for _, l := range got.Lines {
		lines += l.Text + "\n"
	}
	return lines
}

// TestRejectedOverWebSocket checks that a request that the upstream refuses in an event stores
// neither a turn, nor a directive, nor the turns of its history.
func TestRejectedOverWebSocket(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, 0} {
		w := start(t, t.TempDir(), map[string]string{"websocket": "intercept", "promote.directives": "true"})
		s := w.socket()
		w.model.SetFaults(proxytest.Faults{Status: status})
		history := []m{said("We use Postgres."), {"type": "message", "role": "assistant", "content": []m{{"type": "output_text", "text": "Noted: Postgres it is."}}}, said("Hello.\npreference (user): I want Postgres.")}
		if _, _, last := s.create(m{"input": history}); (last == "error") != (status != 0) {
			t.Errorf("%d: got %s, want an error only where there is a status", status, last)
		}
		if status != 0 {
			w.model.SetFaults(proxytest.Faults{})
			s.create(m{"input": []m{said("Good night.")}})
			w.delivered(1)
		} else {
			more := []m{{"type": "message", "role": "assistant", "content": []m{{"type": "output_text", "text": "Hi."}}}, said("Good night.")}
			s.create(m{"input": append(slices.Clone(history), more...)}) // the history continues
			w.delivered(3)
		}
		if lines := w.waitingLines("single", ""); strings.Contains(lines, "I want") != (status == 0) {
			t.Errorf("%d: waiting are %q, want the directive of an accepted request only", status, lines)
		}
		w.stop()
		again := start(t, w.app.cfg.DataDir, nil)
		all := ""
		for _, g := range again.groups() {
			for _, e := range again.heldIn(g) {
				all += e.Text + "\n"
			}
		}
		if strings.Contains(all, "Postgres") != (status == 0) {
			t.Errorf("%d: kept is %s", status, all)
		}
		again.stop()
	}
}

// post posts a chat to a path with some credential, and returns the answer and
// the body that the model saw.
func (w *world) post(model *proxytest.Provider, path, key, text string) (status int, header, saw string) {
	w.t.Helper()
	model.Forget()
	req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+path, bytes.NewReader(chatBody(text)))
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := w.client.Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	must(w.t, helptest.ErrorOf(io.Copy(io.Discard, resp.Body)))
	if got := model.Requests(); len(got) > 0 {
		saw = string(got[len(got)-1].Body)
	}
	return resp.StatusCode, resp.Header.Get("X-Graphiti-Memory"), saw
}

// local is a second model.
func local(t *testing.T) *proxytest.Provider {
	t.Helper()
	model := startModel(t)
	return model
}

// TestNamedUpstreamIsAnotherTenant: a credential that two servers take may be
// two people's. Whom the registry names by it is one person everywhere.
func TestNamedUpstreamIsAnotherTenant(t *testing.T) {
	t.Parallel()
	model := local(t)
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "identity.users_file": usersFile(t), "upstreams": "local=" + model.URL() + ",more=" + model.URL()})
	const path = "/v1/chat/completions"
	places := map[string]*proxytest.Provider{path: w.model, "/u/local" + path: model, "/u/more" + path: model}
	for at, m := range places {
		w.post(m, at, "dummy", "Hello.") // its tenant is known then
	}
	w.post(model, "/u/local"+path, "dummy", fact)
	w.post(w.model, path, "sk-josh", "My dog is called Rex.")
	w.delivered(5)
	for at, m := range places {
		_, _, saw := w.post(m, at, "dummy", question)
		if own := at == "/u/local"+path; strings.Contains(saw, "Miso") != own {
			t.Errorf("%s recalls a turn of /u/local: %s", at, saw)
		}
		if _, header, saw := w.post(m, at, "sk-josh", "What is my dog called?"); !strings.Contains(saw, "Rex") {
			t.Errorf("%s does not know a registered person: %s %s", at, header, saw)
		}
	}
	for credential, want := range map[string]bool{"local/sha256:" + sha("dummy"): true, "more/sha256:" + sha("dummy"): false, "sha256:" + sha("dummy"): false} {
		found, err := w.remembers().service.Search(t.Context(), &service.SearchRequest{Selector: service.Selector{Credential: credential}, Query: "What is my cat called?", All: true})
		if b, _ := json.Marshal(found); err != nil || strings.Contains(string(b), "Miso") != want {
			t.Errorf("%s: got %s, %v, want no error, Miso found: %v", credential, b, err, want)
		}
	}
}

// TestKeyGoesWhereClientsSendTheirs checks that the test command sends no key if the status
// on the admin side names another listener than the configuration.
func TestKeyGoesWhereClientsSendTheirs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.MkdirAll(dir, 0o700))
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

// TestStrangerIsSearchedWithNobodysMemory checks that a credential recalls no facts of its
// memory until an upstream has accepted it, and recalls them from then on, also after a
// restart. The blocks of earlier turns must not change.
func TestStrangerIsSearchedWithNobodysMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := map[string]string{"identity.mode": "multi", "identity.users_file": usersFile(t), "identity.trusted_keys": "sk-gateway"}
	b, josh, carol := []string{"Authorization", "Bearer sk-b"}, []string{"Authorization", "Bearer sk-josh"}, []string{"Authorization", "Bearer sk-gateway", "X-Graphiti-User", "carol"}
	w := start(t, dir, settings)
	for _, key := range [][]string{b, josh, carol} {
		w.say(fact, key...)
	}
	w.delivered(3)
	w.stop()
	for _, name := range []string{"state.db", "state.db-wal", "state.db-shm"} { // the state is lost
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	w = start(t, dir, settings)
	for _, key := range [][]string{josh, carol} { // the operator vouches for them
		if _, header, _ := w.say(question, key...); !strings.HasPrefix(header, "recalled; facts=1") {
			t.Errorf("%q: got %s, want \"recalled; facts=1\" at its beginning", key, header)
		}
	}
	session := append(slices.Clone(b), "X-Graphiti-Session", "s")
	w.model.SetFaults(proxytest.Faults{Status: http.StatusBadRequest}) // some providers answer so to a wrong key
	if _, header := w.exchange("/v1/chat/completions", chat(user(question)), session...); !strings.HasPrefix(header.Get("X-Graphiti-Memory"), "empty; facts=0") {
		t.Errorf("a stranger that is refused: %s", header.Get("X-Graphiti-Memory"))
	}
	w.model.SetFaults(proxytest.Faults{})
	answer, header, saw := w.say("And what else do you know of my cat?", session...)
	if !strings.HasPrefix(header, "empty; facts=0") || strings.Contains(saw, "Miso") {
		t.Errorf("a stranger: %s: %s", header, saw)
	}
	first := user("And what else do you know of my cat?")
	w.model.Forget()
	w.request(chat(first, answered(answer), user(question+" Again.")), session...)
	if saw := string(w.model.Requests()[0].Body); strings.Count(saw, "graphiti_memory>") != 2 || !strings.Contains(saw, "Miso") ||
		strings.Index(saw, "graphiti_memory>") < strings.Index(saw, "And what else") {
		t.Errorf("accepted: %s", saw)
	}
	w.stop()
	w = start(t, dir, settings)
	if _, header, _ := w.say(question+" Once more.", b...); !strings.HasPrefix(header, "recalled") {
		t.Errorf("after a restart: %s", header)
	}
}
