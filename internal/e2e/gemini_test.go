//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// google sends a request to Google's API, or to the proxy, without an SDK.
func google(t *testing.T, base, method, path, body string, headers ...string) (status int, memory, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	b := helptest.Body(t, resp, err)
	return resp.StatusCode, resp.Header.Get("X-Graphiti-Memory"), string(b)
}

func contents(turns ...string) string {
	var list []string
	for i, text := range turns {
		role := []string{"user", "model"}[i%2]
		b, _ := json.Marshal(text)
		list = append(list, `{"role":"`+role+`","parts":[{"text":`+string(b)+`}]}`)
	}
	return `{"contents":[` + strings.Join(list, ",") + `]}`
}

// TestGeminiStreams checks that an answer streamed as an array, which no SDK requests, is
// stored and reaches the client byte for byte, and that the block stays in its place in later
// turns.
func TestGeminiStreams(t *testing.T) {
	t.Parallel()
	const path = "/v1beta/models/gemini-3-pro:streamGenerateContent"
	w := serve(t)
	key := []string{"X-Goog-Api-Key", "k-test"}
	if status, memory, _ := google(t, w.url, http.MethodPost, path, contents("My cat is called Miso."), key...); status != http.StatusOK || !strings.HasPrefix(memory, "empty") {
		t.Errorf("got %d %s, want status 200, \"empty\" at its beginning", status, memory)
	}
	w.until(t, "the first turn", func(q queue) bool { return q.Delivered == 1 })
	const question = "What is my cat called?"
	w.model.Forget()
	_, memory, answer := google(t, w.url, http.MethodPost, path, contents(question), key...)
	if !strings.HasPrefix(memory, "recalled; facts=1") || !strings.Contains(answer, "Miso") {
		t.Errorf("%s: got %s, want \"recalled; facts=1\" at its beginning, \"Miso\" in it", memory, answer)
	}
	w.until(t, "the second turn", func(q queue) bool { return q.Delivered == 2 })
	first := lastBlock(t, w.model)
	saw := string(w.model.Requests()[0].Body)
	_, _, direct := google(t, w.model.URL(), http.MethodPost, path, saw, key...)
	if diff := cmp.Diff(direct, answer); diff != "" {
		t.Errorf("the answer (-direct +proxied):\n%s", diff)
	}
	if diff := cmp.Diff(contents(question), blockInJSON.ReplaceAllString(saw, "")); diff != "" {
		t.Errorf("the body differs by more than the block:\n%s", diff)
	}
	next := contents(question, "You told me: My cat is called Miso.", "Thanks. Where does it sleep?")
	google(t, w.url, http.MethodPost, path, next, key...)
	if again := lastBlock(t, w.model); first == "" || again != first {
		t.Errorf("the block became\n%s\nfrom\n%s", again, first)
	}
	w.until(t, "the third turn", func(q queue) bool { return q.Delivered == 3 })
}

// TestGeminiKeys checks that a key in the query identifies a tenant like a key in a header,
// and that the proxy never logs, shows or stores it.
func TestGeminiKeys(t *testing.T) {
	t.Parallel()
	model, err := proxytest.Start()
	must(t, err)
	defer model.Close()
	var log bytes.Buffer
	w := &world{model: model, dir: t.TempDir(), log: &log, program: binary}
	w.start(t, "GRAPHITI_PROXY_IDENTITY_MODE=multi", "GRAPHITI_PROXY_LOG_LEVEL=debug")
	const path, one, two = "/v1beta/models/m:generateContent", "AIzaSyOneOneOneOneOneOneOneOneOneOneOne", "AIzaSyTwoTwoTwoTwoTwoTwoTwoTwoTwoTwoTwo"
	say := func(text, query string, headers ...string) string {
		t.Helper()
		status, memory, answer := google(t, w.url, http.MethodPost, path+query, contents(text), headers...)
		if status != http.StatusOK {
			t.Errorf("got %d, want 200", status)
		}
		return memory + answer
	}
	say("Good morning.", "?key="+one) // the provider accepts the key
	say("Good morning.", "?key="+two)
	w.until(t, "the greetings", func(q queue) bool { return q.Delivered == 2 })
	say("My cat is called Miso.", "?key="+one)
	w.until(t, "the fact", func(q queue) bool { return q.Delivered == 3 })
	const question = "What is my cat called?"
	for _, tc := range []struct {
		name, query string
		headers     []string
		knows       bool
	}{
		{"the key in the query", "?key=" + one, nil, true},
		{"the key in the query, behind another field", "?alt=json&key=" + one, nil, true},
		{"the key in Google's header", "", []string{"X-Goog-Api-Key", one}, true},
		{"the key as a bearer's", "", []string{"Authorization", "Bearer " + one}, true},
		{"another key", "?key=" + two, nil, false},
		{"both keys", "?key=" + one, []string{"X-Goog-Api-Key", two}, false},
	} {
		if got := say(question, tc.query, tc.headers...); strings.Contains(got, "Miso") != tc.knows {
			t.Errorf("%s: got %s, want Miso in it: %v", tc.name, got, tc.knows)
		}
	}
	for _, r := range model.Requests() {
		if r.Headers.Get("X-Goog-Api-Key") == "" && r.Headers.Get("Authorization") == "" && !strings.Contains(r.Query, "key=AIza") {
			t.Errorf("the provider got %s?%s without a key", r.Path, r.Query)
		}
	}
	var shown strings.Builder
	for _, page := range []string{"/metrics", "/api/v1/status", "/api/v1/queue"} {
		_, _, b := google(t, w.admin, http.MethodGet, page, "")
		shown.WriteString(b)
	}
	_ = model.Close()
	if status, _, answer := google(t, w.url, http.MethodPost, path+"?key="+one, contents(question)); status != http.StatusBadGateway || !strings.Contains(answer, `"status":"UNAVAILABLE"`) {
		t.Errorf("without a provider: %d %s", status, answer)
	}
	if status, _, answer := google(t, w.url, http.MethodPost, "/v1beta/models/m:countTokens?key="+one, contents(question)); status != http.StatusBadGateway || !strings.Contains(answer, `"status":"UNAVAILABLE"`) {
		t.Errorf("a count without a provider: %d %s", status, answer)
	}
	w.stop(t)
	kept := map[string]string{"the log": log.String(), "the admin side": shown.String()}
	err = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		kept[path] = path + string(b)
		return err
	})
	if err != nil || log.Len() == 0 {
		t.Errorf("%v; %d bytes of log", err, log.Len())
	}
	for where, text := range kept {
		if strings.Contains(text, "AIza") {
			t.Errorf("%s holds a key", where)
		}
	}
}
