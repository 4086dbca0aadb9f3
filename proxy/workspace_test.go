package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// TestRulesOfPlaces checks that rules apply to the directory that a client names, to the
// target of a link, and to the repository, even if a header names another workspace.
func TestRulesOfPlaces(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	clone := "[remote \"origin\"]\n\turl = git@github.com:acme/app.git\n"
	write(t, dir, map[string]string{
		"app/.git/config": clone, "app/private/x/y": "", "app/open/y": "",
		"off/.git/config": clone, "off/" + workspace.IgnoreFile: "",
	})
	app := filepath.Join(dir, "app")
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(filepath.Join(app, "private", "x"), link))
	hung := make(chan struct{})
	defer close(hung)
	slow := workspace.NewPlaces()
	slow.Read = func(dir string) workspace.Repo { <-hung; return workspace.Repo{} }
	mine := map[string][]string{"X-Graphiti-Workspace": {"mine"}}
	codex := map[string][]string{"X-Codex-Turn-Metadata": {fmt.Sprintf(`{"workspaces":{%q:{"associated_remote_urls":{"origin":"https://github.com/acme/secret"}}}}`, app)}}
	copilot := "\n* Git repository: acme/secret"
	private := filepath.Join(app, "private", "x")
	for _, tc := range []struct {
		name    string
		in      string // the directory, and further text of the prompt
		headers map[string][]string
		rules   Rules
		id      identity.Settings
		want    string
	}{
		{name: "no rules", in: private},
		{name: "ignored: the directory", in: private, rules: Rules{Ignored: []string{app + "/private/*"}}, want: "opt_out"},
		{name: "ignored: the repository's root", in: private, rules: Rules{Ignored: []string{app}}, want: "opt_out"},
		{name: "ignored: what a link leads to", in: link, rules: Rules{Ignored: []string{app + "/private/*"}}, want: "opt_out"},
		{name: "ignored: the link", in: link, rules: Rules{Ignored: []string{link}}, want: "opt_out"},
		{name: "ignored: the repository", in: private, rules: Rules{Ignored: []string{"github_repo:github.com/acme/*"}}, want: "opt_out"},
		{name: "ignored: the repository, called otherwise", in: private, headers: mine, rules: Rules{Ignored: []string{"github_repo:github.com/acme/app"}}, want: "opt_out"},
		{name: "ignored: the directory, called otherwise", in: private, headers: mine, rules: Rules{Ignored: []string{app + "/private/*"}}, want: "opt_out"},
		{name: "ignored: what Codex tells", in: private, headers: codex, rules: Rules{Ignored: []string{"*/secret"}}, want: "opt_out"},
		{name: "ignored: what Copilot tells", in: private + copilot, rules: Rules{Ignored: []string{"*/secret"}}, want: "opt_out"},
		{name: "ignored: elsewhere", in: filepath.Join(app, "open"), rules: Rules{Ignored: []string{app + "/private/*"}}},
		{name: "ignored: a directory of another machine", in: "/nowhere/private", rules: Rules{Ignored: []string{"/nowhere/*"}}, want: "opt_out"},
		{name: "ignored: in multi mode", in: "/nowhere/private", id: identity.Settings{Multi: true}, rules: Rules{Ignored: []string{"/nowhere/*"}}, want: "opt_out"},
		{name: "ignore file, called otherwise", in: filepath.Join(dir, "off"), headers: mine, want: "opt_out"},
		{name: "trusted: the directory", in: private, rules: Rules{Trusted: []string{private + "*"}}},
		{name: "trusted: what a link leads to", in: link, rules: Rules{Trusted: []string{private}}},
		{name: "trusted: the repository's root", in: private, rules: Rules{Trusted: []string{app}}},
		{name: "trusted: the repository", in: private, rules: Rules{Trusted: []string{"github_repo:github.com/acme/*"}}},
		{name: "trusted: no project", rules: Rules{Trusted: []string{private}}, want: "untrusted"},
		{name: "trusted: another directory", in: filepath.Join(app, "open"), rules: Rules{Trusted: []string{private}}, want: "untrusted"},
		{name: "trusted: another name", in: filepath.Join(app, "open") + copilot, rules: Rules{Trusted: []string{"*/secret"}}, want: "untrusted"},
		{name: "not found out in time", in: private, id: identity.Settings{Places: slow}, want: "place: late"},
		{name: "not found out in time, called otherwise", in: private, headers: mine, id: identity.Settings{Places: slow}, want: "place: late"},
		{name: "not found out in time, but ignored", in: private, id: identity.Settings{Places: slow}, rules: Rules{Ignored: []string{app + "/*"}}, want: "opt_out"},
		{name: "not found out in time, but trusted", in: private, id: identity.Settings{Places: slow}, rules: Rules{Trusted: []string{app + "/*"}}, want: "place: late"},
	} {
		if tc.id.Owner = "user:o"; tc.id.Places == nil && !tc.id.Multi {
			tc.id.Places = workspace.NewPlaces()
		}
		header := map[string][]string{"Authorization": {"Bearer k"}}
		for k, v := range tc.headers {
			header[k] = v
		}
		m := &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: tc.id, Rules: tc.rules}}
		e := explained(t, m, graphiti.Namer{}, chatPath, header, []byte(said("", "* Current working directory: "+tc.in)))
		if e.Off != tc.want {
			t.Errorf("%s: %q, want %q: %+v", tc.name, e.Off, tc.want, e.Claims)
		}
	}
}

// TestLateMessagesComeLater checks that a message whose project is not found in time may be stored
// by a later request.
func TestLateMessagesComeLater(t *testing.T) {
	for reason, want := range map[string]bool{graphiti.LostLate: true, graphiti.LostBusy: false} {
		if got := mayWrite(graphiti.Fate{Name: graphiti.FateLost, Reason: reason}); got != want {
			t.Errorf("mayWrite of a message lost as %s: %v, want %v", reason, got, want)
		}
	}
}

// TestSourcesOfTheWorkspace checks each source of the workspace, and their order.
func TestSourcesOfTheWorkspace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	clone := "[remote \"origin\"]\n\turl = git@git.acme.io:acme/app.git\n"
	write(t, dir, map[string]string{"clone/.git/config": clone, "clone/sub/x": "", "new/.git/config": "", "new/sub/x": "", "plain/x": "",
		"local/.git/config": "[remote \"origin\"]\n\turl = /srv/git/app.git\n", "off/.git/config": clone, "off/" + workspace.IgnoreFile: ""})
	header := map[string]string{"X-Graphiti-Workspace": "mine"}
	codex := func(at string) map[string]string {
		return map[string]string{"X-Codex-Turn-Metadata": fmt.Sprintf(`{"workspaces":{%q:{"associated_remote_urls":{"origin":"https://github.com/acme/told"}}}}`, filepath.Join(dir, at))}
	}
	const (
		app  = "github_repo:git.acme.io/acme/app"
		told = "github_repo:github.com/acme/told"
	)
	in := func(at string) string { return "* Current working directory: " + filepath.Join(dir, at) }
	const repo = "\n* Git repository: acme/named"
	elsewhere := "place: " + observe.MissingHere.Remedy()
	for _, tc := range []struct {
		name    string
		prompt  string
		headers map[string]string
		multi   bool
		byPath  bool
		key     string
		why     string
		off     string
	}{
		{name: "nothing", prompt: "Be brief.", why: "nothing names one"},
		{name: "the header", prompt: in("clone") + repo, headers: header, key: "mine", why: "header X-Graphiti-Workspace"},
		{name: "the repository", prompt: in("clone/sub"), key: app, why: "repository of the working directory"},
		{name: "the repository before what Codex tells", prompt: in("clone"), headers: codex("clone"), key: app, why: "repository of the working directory"},
		{name: "and before what Copilot tells, which knows no host", prompt: in("clone") + repo, key: app, why: "repository of the working directory"},
		{name: "what Codex tells", prompt: in("nowhere"), headers: codex("nowhere"), key: told, why: "header x-codex-turn-metadata"},
		{name: "what Codex tells of a directory that is here does not count", prompt: in("new"), headers: codex("new"), key: "path:" + filepath.Join(dir, "new"), why: "working directory"},
		{name: "what Codex tells, in multi mode", prompt: in("clone"), headers: codex("clone"), multi: true, key: told, why: "header x-codex-turn-metadata"},
		{name: "the directory that Codex tells, where its prompt is not repeated", prompt: "Be brief.", headers: codex("clone/sub"), key: app, why: "repository of the working directory"},
		{name: "and that is ignored", prompt: "Be brief.", headers: codex("off"), key: app, why: "repository of the working directory", off: "opt_out"},
		{name: "what Copilot tells", prompt: in("nowhere") + repo, key: "github_repo:github.com/acme/named", why: "prompt Git repository: owner/name"},
		{name: "nor what Copilot tells", prompt: in("new") + repo, key: "path:" + filepath.Join(dir, "new"), why: "working directory"},
		{name: "several places", prompt: in("new") + "\n" + in("clone"), off: "place", why: "nothing names one"},
		{name: "several places, in multi mode", prompt: in("new") + "\n" + in("clone"), multi: true, off: "place", why: "nothing names one"},
		{name: "the repository's root", prompt: in("new/sub"), key: "path:" + filepath.Join(dir, "new"), why: "working directory"},
		{name: "the directory", prompt: in("plain"), key: "path:" + filepath.Join(dir, "plain"), why: "working directory"},
		{name: "a remote that only this machine knows", prompt: in("local"), key: "path:" + filepath.Join(dir, "local"), why: "working directory"},
		{name: "a directory that is not there", prompt: in("nowhere"), why: "nothing names one", off: elsewhere},
		{name: "a directory that is not there, whose path may name a project", prompt: in("nowhere"), byPath: true, key: "path:" + filepath.Join(dir, "nowhere"), why: "working directory elsewhere"},
		{name: "a directory that is there is no project by its path", prompt: in("new/sub"), byPath: true, key: "path:" + filepath.Join(dir, "new"), why: "working directory"},
		{name: "Windows, whose letters have no case", prompt: `* Current working directory: D:\Work\Shop`, byPath: true, key: "path:d:/work/shop", why: "working directory elsewhere"},
		{name: "a directory in multi mode", prompt: in("plain"), multi: true, why: "nothing names one", off: elsewhere},
		{name: "a directory in multi mode, whose path may name a project", prompt: in("plain"), multi: true, byPath: true, key: "path:" + filepath.Join(dir, "plain"), why: "working directory elsewhere"},
		{name: "a directory in multi mode, and the header", prompt: in("plain"), headers: header, multi: true, key: "mine", why: "header X-Graphiti-Workspace"},
	} {
		id := identity.Settings{Owner: "user:o", Multi: tc.multi}
		if !tc.multi {
			id.Places = workspace.NewPlaces()
			id.Places.Wait = time.Minute // enough for a busy machine
		}
		headers := map[string][]string{"Authorization": {"Bearer k"}}
		for k, v := range tc.headers {
			headers[k] = []string{v}
		}
		e := explained(t, &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: id, Rules: Rules{RemotePaths: tc.byPath}}}, graphiti.Namer{}, chatPath, headers, []byte(said("", tc.prompt)))
		if got := e.Claims[identity.Workspace]; got.Key != tc.key || got.Why != tc.why || e.Off != tc.off {
			t.Errorf("%s: got %+v, %q, want %q, %v, off %q", tc.name, got, e.Off, tc.key, tc.why, tc.off)
		}
	}
}

// TestSummaryOfAnUnknownProject checks that the project of a summary is unknown if no
// request has named it. A summary covers a whole conversation, which may belong to a
// project without memory.
func TestSummaryOfAnUnknownProject(t *testing.T) {
	const summary = "You are a context summarization agent."
	for _, tc := range []struct {
		name    string
		before  string // prompt of an earlier turn, or "" if there is none
		summary string
		chained bool // an answer identifies the session, not an id of the client
		multi   bool
		unknown bool
		key     string
	}{
		{name: "nothing was seen", summary: summary, unknown: true},
		{name: "the session was found by an answer, and its place is lost", summary: summary, chained: true, unknown: true},
		{name: "in multi mode directories say nothing", summary: summary, multi: true},
		{name: "it says where", summary: summary + "\n* Current working directory: /nowhere\n* Git repository: acme/app", key: "github_repo:github.com/acme/app"},
		{name: "a turn said where", before: "* Current working directory: /nowhere\n* Git repository: acme/app", summary: summary, key: "github_repo:github.com/acme/app"},
		{name: "a turn said nothing", before: "Be brief.", summary: summary},
		{name: "a turn of a client that works in directories said nothing", before: "You are Cline, an agent.", summary: "You are Cline, an agent.", unknown: true},
		{name: "and in multi mode", before: "You are Cline, an agent.", summary: "You are Cline, an agent.", multi: true, unknown: true},
	} {
		s := idle()
		m := &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: identity.Settings{Owner: "user:o", Multi: tc.multi}}}
		if !tc.multi {
			m.Identity.Places = workspace.NewPlaces()
		}
		for _, prompt := range []string{tc.before, tc.summary} {
			if prompt == "" {
				continue
			}
			c := prompted(prompt)
			c.memory = m
			w := s.located(c, graphiti.Who{Session: "session:s"}, tc.chained, false)
			if prompt == tc.summary && (w.unknown != tc.unknown || w.key != tc.key) {
				t.Errorf("%s: got %+v, want unknown %v, key %q", tc.name, w, tc.unknown, tc.key)
			}
		}
	}
}

// TestPanicDuringDirectoryRead checks that a panic while a directory is read leaves the project of
// the request unknown.
func TestPanicDuringDirectoryRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workspace.NewPlaces()
		p.Read = func(string) workspace.Repo { panic("BUG") }
		s := idle()
		m := &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: identity.Settings{Owner: "user:o", Places: p}}}
		c := prompted("Working directory: /r")
		c.memory = m
		if w := s.located(c, graphiti.Who{}, false, false); !w.unknown || w.key != "" {
			t.Errorf("got %+v, want unknown true, key \"\"", w)
		}
	})
}

// idle returns a decider with empty caches.
func idle() *decider {
	return &decider{memo: memo.New(1 << 20), base: context.Background(), log: slog.New(slog.DiscardHandler)}
}

// located returns the project of a request of a session.
func (s *decider) located(r *request, who graphiti.Who, chained, subagent bool) project {
	r.memory = r.memory.withDefaults()
	p, _ := s.parse(r, time.Time{})
	p.subagent = subagent
	at, _ := s.where(context.Background(), r, &p, &who)
	if chained {
		at.session.byID = false
		at.project = s.project(r.memory, &p, &at, at.session.kind)
	}
	s.note(r, &decision{parsed: p, placed: at, planned: planned{who: who}})
	return at.project
}

// prompted returns a chat request with a system prompt.
func prompted(system string) *request { return posted(said("", system)) }

// posted returns a request with a chat body.
func posted(body string) *request {
	return &request{
		head: &fasthttp.RequestHeader{}, route: route{Route: registry.Route{Dialect: chat.Dialect{}}}, memory: Memory{}.withDefaults(), limits: testLimits(),
		body: wire.Body{Bytes: []byte(body), Whole: true}, share: new(budget.Share), buffers: new(buffers),
	}
}

// write creates files in a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}
