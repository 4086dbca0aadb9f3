package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// post posts a chat to a path with some credential, and returns the answer and
// the body that the model saw.
func (w *world) post(model *proxytest.Provider, path, key, text string) (status int, header, saw string) {
	w.t.Helper()
	model.Forget()
	req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+path, bytes.NewReader(chatBody(text)))
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		w.t.Fatal(err)
	}
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

// TestNamedUpstreamsShareOnePersonsMemory, whatever server they talk to; a
// reload adds and removes names.
func TestNamedUpstreamsShareOnePersonsMemory(t *testing.T) {
	t.Parallel()
	model := local(t)
	w := start(t, t.TempDir(), map[string]string{"upstreams": "local=" + model.URL()})
	w.say(fact)
	w.delivered(1)
	if status, header, saw := w.post(model, "/u/local/v1/chat/completions", "k", question); status != http.StatusOK || !strings.HasPrefix(header, "recalled; facts=1") || !strings.Contains(saw, "Miso") {
		t.Errorf("%d %q: got %s, want status 200, \"recalled; facts=1\" at its beginning, \"Miso\" in it", status, header, saw)
	}
	if line := cli.UpstreamLine(w.app.status(t.Context(), false).Upstreams); !strings.Contains(line, ", local "+model.URL()) {
		t.Errorf("got %q, want local and its address in it", line)
	}
	cfg := *w.app.cfg
	cfg.Named = map[string]string{"other": model.URL()}
	if waiting, err := w.app.reload(&cfg); err != nil || len(waiting) > 0 {
		t.Fatalf("got %v, %v, want no error, none", waiting, err)
	}
	for path, want := range map[string]int{"/u/local/v1/chat/completions": http.StatusNotFound, "/u/other/v1/chat/completions": http.StatusOK} {
		if status, _, saw := w.post(model, path, "k", "Hello."); status != want || (saw != "") != (want == http.StatusOK) {
			t.Errorf("%s: got %d, %s, want %d", path, status, saw, want)
		}
	}
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
