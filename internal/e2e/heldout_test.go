//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/sjson"
)

// heldOut are clients that the proxy has no special case for.
var heldOut = []coder{
	{name: "Grok CLI", run: func(t *testing.T, url, home, repo, prompt string, _ how) string {
		url = without(t, url, "search_parameters") // a field that OpenAI's API does not have
		return program(t, repo, append(os.Environ(), "HOME="+home), nil, "clients/heldout/node_modules/.bin/grok", "-k", "sk-test", "-u", url+"/v1", "-m", "m", "-d", repo, "-p", prompt)
	}},
}

// without returns the address of a server that forwards requests without a field.
func without(t *testing.T, target, field string) string {
	u, err := url.Parse(target)
	must(t, err)
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

// TestUnknownClients checks that an unknown client's turns are stored in the
// memory of the project whose directory it states, and are recalled only there. Turns in an
// ignored directory are not stored.
func TestUnknownClients(t *testing.T) {
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

const told = "The staging database is called Miso. Remember it."

// agents are programs in Python that name no directory, begin every conversation with the
// same text, have subagents, or request titles.
var agents = []struct {
	coder
	header []string // each X-Graphiti-Memory of the answers, without numbers
	kept   []string // each conversation's memory, number of messages and first words
}{
	{
		coder: coder{name: "aider with an unknown model", run: func(t *testing.T, url, home, repo, prompt string, _ how) string {
			return python(t, "agents", url, home, repo, "agents/bin/aider", "--model", "openai/m", "--no-check-update", "--analytics-disable", "--no-show-release-notes",
				"--no-show-model-warnings", "--no-gitignore", "--yes-always", "--no-pretty", "--no-auto-commits", "-m", prompt)
		}},
		header: []string{`empty; source=live; reason=nothing; earlier="client=1"`, `recalled; source=live; earlier="client=1"`},
		kept:   []string{"you 2 " + told, "you 2 " + asking},
	},
	{
		coder: coder{name: "mini-SWE-agent", run: func(t *testing.T, url, home, repo, prompt string, _ how) string {
			return python(t, "agents", url, home, repo, "agents/bin/mini", "-m", "openai/m", "-y", "--exit-immediately", "-c", "mini.yaml", "-c", "agent.step_limit=1",
				"-o", filepath.Join(home, "trajectory.json"), "-t", prompt)
		}},
		header: []string{"empty; source=live; reason=place"},
		kept: []string{ // a conversation with tools and without a directory has a memory of its own
			"conversation 2 Please solve this issue: The staging database is called Miso. Remember it. You …",
			"conversation 2 " + asking,
		},
	},
	{
		coder: coder{name: "deepagents", tool: `task {"description":"Count the sheep on the hill.","subagent_type":"general-purpose"}`, run: func(t *testing.T, url, home, repo, prompt string, _ how) string {
			return python(t, "agents", url, home, repo, "../agents/deep.py", url, filepath.Base(repo), prompt)
		}},
		header: []string{"empty; source=live; reason=nothing", "empty; source=live; reason=subagent", "empty; source=sticky; reason=nothing"},
		kept:   []string{"other 2 " + asking, "repo 2 " + told},
	},
	{
		coder: coder{name: "gptme", run: func(t *testing.T, url, home, repo, prompt string, _ how) string {
			return python(t, "gptme", url, home, repo, "gptme/bin/gptme", "-n", "--tools", "none", "-m", "local/m", prompt)
		}},
		header: []string{"empty; source=live; reason=nothing", "empty; source=sticky; reason=nothing", "skipped; reason=title"},
		kept:   []string{"acme/gadgets 2 " + asking, "acme/widgets 2 " + told},
	},
}

// python runs a program with the packages of a folder below .cache, without network access.
func python(t *testing.T, folder, url, home, repo, name string, args ...string) string {
	packages, err := filepath.Abs(filepath.Join(".cache", folder))
	must(t, err)
	if _, err := os.Stat(filepath.Join(packages, "requirements.txt")); err != nil {
		t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh where PyPI is reached", folder)
	}
	return program(t, repo, append(os.Environ(), "HOME="+home, "PYTHONPATH="+packages, "HTTPS_PROXY=http://127.0.0.1:9", "LITELLM_LOCAL_MODEL_COST_MAP=True",
		"OPENAI_API_KEY=sk-test", "OPENAI_API_BASE="+url+"/v1", "OPENAI_BASE_URL="+url+"/v1", "MSWEA_CONFIGURED=true", "MSWEA_COST_TRACKING=ignore_errors"), nil, name, args...)
}

// isSession matches the random name of a conversation with a memory of its own.
var isSession = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// TestAgents runs each agent in one project with a fact and in another with a question for
// it. Each run is a conversation of its own, which holds only the person's words and the
// answer, and is stored in its project's memory or not at all.
func TestAgents(t *testing.T) {
	t.Parallel()
	for _, c := range agents {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh")
			w.model.SetAnswer(coderModel)
			tap := newTap(t, w.url)
			dir := t.TempDir()
			home, repo, other := filepath.Join(dir, "home"), clone(t, filepath.Join(dir, "repo")), clone(t, filepath.Join(dir, "other"))
			write(t, "", home, ".keep")
			write(t, "Widgets for all.\n", repo, "README.md") // aider sends it, the same in both projects
			write(t, "Widgets for all.\n", other, "README.md")
			for _, args := range [][]string{{repo, "add", "."}, {other, "add", "."}, {other, "remote", "set-url", "origin", "https://github.com/acme/gadgets.git"}} {
				if out, err := git(args[0], args[1:]...); err != nil {
					t.Fatalf("git %v: %v %s", args, err, out)
				}
			}
			prompt := told
			if c.tool != "" {
				prompt += " [[tool " + c.tool + "]]"
			}
			c.run(t, tap.url, home, repo, prompt, how{})
			if len(c.kept) > 0 {
				w.until(t, "the turn", func(q queue) bool { return q.Delivered > 0 && q.Pending == 0 })
			}
			c.run(t, tap.url, home, other, asking, how{})
			w.stop(t) // the proxy stores captured turns before it exits
			var list struct {
				Conversations []struct {
					Hash, In, Begins string
					Messages         int
				}
			}
			must(t, json.Unmarshal([]byte(w.command(t, "memory", "list", "--json")), &list))
			var kept []string
			for _, c := range list.Conversations {
				begins, _, _ := strings.Cut(c.Begins, " [[")
				if isSession.MatchString(c.In) {
					c.In = "conversation"
				}
				kept = append(kept, fmt.Sprintf("%s %d %s", c.In, c.Messages, begins))
			}
			slices.Sort(kept)
			if diff := cmp.Diff(c.kept, kept); diff != "" {
				t.Errorf("memory list (-want +got):\n%s", diff)
			}
			slices.Sort(tap.memory)
			if diff := cmp.Diff(c.header, slices.Compact(tap.memory)); diff != "" {
				t.Errorf("X-Graphiti-Memory (-want +got):\n%s", diff)
			}
			for _, wrong := range tap.differs(w.model) {
				t.Error(wrong)
			}
		})
	}
}
