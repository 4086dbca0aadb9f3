//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/sjson"
)

// heldOut are clients that no table of ours knows.
var heldOut = []coder{
	{name: "Grok CLI", run: func(t *testing.T, url, home, repo, prompt string, _ how) string {
		url = without(t, url, "search_parameters") // which OpenAI's API does not have
		return program(t, repo, append(os.Environ(), "HOME="+home), nil, "clients/heldout/node_modules/.bin/grok", "-k", "sk-test", "-u", url+"/v1", "-m", "m", "-d", repo, "-p", prompt)
	}},
}

// without returns the address of a server that passes requests on without a field.
func without(t *testing.T, target, field string) string {
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = sjson.DeleteBytes(body, field)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestClientsThatNoTableKnows state their directory as others do, and what is
// said in a project stays there; where they state none, or it is ignored, nothing
// is kept in a project's memory.
func TestClientsThatNoTableKnows(t *testing.T) {
	t.Parallel()
	for _, c := range heldOut {
		t.Run(c.name, func(t *testing.T) {
			w := serve(t, "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw")
			w.model.SetAnswer(coderModel)
			dir := t.TempDir()
			home, repo, ignored := filepath.Join(dir, "home"), clone(t, filepath.Join(dir, "repo")), clone(t, filepath.Join(dir, "ignored"))
			other := clone(t, filepath.Join(dir, "other"))
			if out, err := git(other, "remote", "set-url", "origin", "https://github.com/acme/gadgets.git"); err != nil {
				t.Fatalf("git remote set-url: %v %s", err, out)
			}
			write(t, "", ignored, ".graphiti-proxy-ignore")
			write(t, "", home, ".keep")
			c.run(t, w.url, home, repo, "The staging database is called Miso. Remember it.", how{})
			for _, r := range w.model.Requests() {
				if r.Refused != "" {
					t.Fatalf("%s was refused: %s", r.Path, r.Refused)
				}
			}
			w.until(t, "the turn", func(q queue) bool { return q.Delivered == 1 })
			c.run(t, w.url, home, ignored, "The production database is called Zanzibar. Remember it.", how{})
			w.model.Forget()
			if out := c.run(t, w.url, home, other, asking, how{}); strings.Contains(out, "Miso") || lastBlock(t, w.model) != "" {
				t.Errorf("in another project it printed %q", out)
			}
			w.until(t, "the other project's turn", func(q queue) bool { return q.Delivered == 2 })
			if out := c.run(t, w.url, home, repo, asking, how{}); !strings.Contains(out, "It is called Miso.") {
				t.Errorf("in a second conversation it printed %q", out)
			}
			w.until(t, "the second conversation", func(q queue) bool { return q.Delivered == 3 })
			if kept := w.export(t, widgets) + w.export(t, gadgets); strings.Contains(kept, "Zanzibar") {
				t.Errorf("what was said in an ignored directory is kept: %s", kept)
			}
			if kept := w.export(t, "user_josh"); kept != "" {
				t.Errorf("the person's memory holds %s", kept)
			}
		})
	}
}
