package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestReload checks that a changed configuration takes effect with the next request, that
// settings that need a restart are reported, and that a configuration with a mistake
// changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, dir, nil)
	w.say("My cat is called Miso.")
	w.delivered(1)
	load := func(settings map[string]string) (*config.Config, error) {
		flags := map[string]string{"listen": w.app.cfg.Listen, "admin.listen": w.app.cfg.Admin.Listen, "data_dir": dir, "upstream.openai": w.app.cfg.Upstream.OpenAI,
			"upstream.anthropic": w.app.cfg.Upstream.Anthropic, "recall.timeout": unhurried}
		for k, v := range settings {
			flags[k] = v
		}
		return config.Load(config.Sources{Flags: flags, Env: []string{"HOME=" + dir}})
	}
	asked := 0
	ask := func() string {
		asked++ // a new conversation: one without an answer would continue
		_, header, _ := w.say(fmt.Sprintf("What is my cat called? I ask for time %d.", asked))
		return header
	}
	for _, tc := range []struct {
		settings map[string]string
		header   string
		waiting  []string
	}{
		{map[string]string{"recall.enabled": "false"}, "off;", nil},
		{map[string]string{"memory.skip_models": "stand-*"}, "off;", nil},
		{map[string]string{"recall.max_facts": "1", "limits.header_bytes": "32KiB"}, "recalled; facts=1", []string{"limits.header_bytes"}},
		{nil, "recalled; facts=", nil},
	} {
		cfg, err := load(tc.settings)
		must(t, err)
		waiting, err := w.app.reload(cfg)
		if tc.settings == nil {
			waiting = nil // the waiting settings have their old values again
		}
		if err != nil || !slices.Equal(waiting, tc.waiting) {
			t.Errorf("%v: %v wait, %v", tc.settings, waiting, err)
		}
		if header := ask(); !strings.HasPrefix(header, tc.header) {
			t.Errorf("%v: got %s, want %q at its beginning", tc.settings, header, tc.header)
		}
	}
	for _, settings := range []map[string]string{{"identity.mode": "multi"}, {"identity.users_file": "/nowhere"}, {"recall.scopes": "galaxy"}} {
		cfg, err := load(settings)
		if err == nil {
			_, err = w.app.reload(cfg)
		}
		if err == nil {
			t.Errorf("%v: taken over", settings)
		}
		if header := ask(); !strings.HasPrefix(header, "recalled;") {
			t.Errorf("after %v: %s", settings, header)
		}
	}
}

// TestReload_Signal checks that SIGHUP makes the process read its file again, and that a file with a
// mistake is refused with a message, and changes nothing.
func TestReload_Signal(t *testing.T) {
	t.Parallel()
	file, log := filepath.Join(t.TempDir(), "config.yaml"), &lockedBuffer{}
	p := &process{t: t, stderr: log, args: []string{"serve", "--config", file, "--set", "listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "data_dir=" + t.TempDir()}}
	settings := "upstream: {openai: " + startModel(t).URL() + "}\n"
	writeFile(t, file, settings)
	p.start()
	t.Cleanup(p.kill)
	reload := func(text, says, header string) {
		t.Helper()
		writeFile(t, file, text)
		_ = p.cmd.Process.Signal(syscall.SIGHUP)
		waitUntil(t, says, func() bool { return strings.Contains(log.String(), says) })
		url, _ := p.address()
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(chatBody("Is recall on after: "+says)))
		must(t, err)
		resp.Body.Close()
		if got := resp.Header.Get("X-Graphiti-Memory"); !strings.HasPrefix(got, header) {
			t.Errorf("after %q: header %q, want %q at its beginning", says, got, header)
		}
	}
	reload(settings+"recall: {enabled: false}\nlog: {level: loud}\n", "log.level", "empty;")
	reload(settings+"recall: {enabled: false}\n", "reloaded configuration", "off;")
}

func post(t *testing.T, w *world, text string) error {
	t.Helper()
	resp, err := w.client.Post("http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", "application/json", bytes.NewReader(chatBody(text)))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// TestRefusedReloadChangesNothing checks that a refused reload changes no setting,
// whichever setting is invalid.
func TestRefusedReloadChangesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"admin.token": "first", "identity.mode": "multi", "identity.users_file": usersFile(t)})
	other := startModel(t)
	changed := *w.app.cfg
	changed.Upstream.OpenAI, changed.Admin.Token, changed.Identity.UsersFile = other.URL(), "second", ""
	for name, mistake := range map[string]func(*config.Config){
		"registry": func(c *config.Config) { c.Identity.UsersFile = "/nowhere" },
		"scopes":   func(c *config.Config) { c.Recall.Scopes = []string{"galaxy"} },
		"upstream": func(c *config.Config) { c.Upstream.Anthropic = "ftp://nowhere" },
		"mode":     func(c *config.Config) { c.Identity.Mode = "single" },
	} {
		cfg := changed
		mistake(&cfg)
		if _, err := w.app.reload(&cfg); err == nil {
			t.Errorf("%s: taken over", name)
		}
		if err := post(t, w, "hello"); err != nil || len(other.Requests()) > 0 {
			t.Errorf("%s: the upstream has changed", name)
		}
		if got := w.api(t, "first"); got != http.StatusOK {
			t.Errorf("%s: the token has changed: %d", name, got)
		}
		if _, header, _ := w.say("hello", "Authorization", "Bearer sk-ann"); !strings.Contains(header, "opt_out") {
			t.Errorf("%s: the registry has changed: %s", name, header)
		}
	}
	must(t, helptest.ErrorOf(w.app.reload(&changed)))
	if got := w.api(t, "second"); got != http.StatusOK {
		t.Errorf("without a mistake: %d", got)
	}
	if w.remembers().people.Resolve("user:discord:123") != "user:discord:123" {
		t.Error("who was registered is still known when there is no registry")
	}
}

// api requests the queue from the admin side with a token, and returns the status.
func (w *world) api(t *testing.T, token string) int {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, "http://"+w.app.admin.Addr().String()+"/api/v1/queue", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := w.client.Do(req)
	must(t, err)
	resp.Body.Close()
	return resp.StatusCode
}

// TestTokenOfAnOpenAdminSideStays checks that a reload cannot remove the token of an open
// admin side, even with a new address: the listener keeps its address until a restart.
func TestTokenOfAnOpenAdminSideStays(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"admin.token": "first", "admin.listen": "0.0.0.0:0"})
	cfg := *w.app.cfg
	cfg.Admin.Listen, cfg.Admin.Token = "127.0.0.1:0", ""
	if _, err := w.app.reload(&cfg); err == nil || !strings.Contains(err.Error(), "admin.token") {
		t.Error(err)
	}
	if got := w.api(t, ""); got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}
}

// TestConsentTakenBack checks that the memory gets no call once consent is withdrawn, or covers
// another endpoint than the one that the proxy still runs with, and that it continues to be used
// once the old configuration is back.
func TestConsentTakenBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change  func(*config.Config)
		waiting []string
		why     string // in the status
	}{
		"withdrawn":        {func(c *config.Config) { c.Memory.Consent = "false" }, nil, "consent"},
		"another endpoint": {func(c *config.Config) { c.Memory.Endpoint = "http://elsewhere.example" }, []string{"memory.endpoint"}, "elsewhere.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGraphiti(t, graphititest.Options{})
			dir := t.TempDir()
			w := start(t, dir, map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true"})
			with, without := *w.app.cfg, *w.app.cfg
			tc.change(&without)
			// withdraw returns the number of calls before it. The proxy reads the facts of a turn
			// after its delivery, and a call that is canceled may reach Graphiti later.
			withdraw := func(turns int) int {
				t.Helper()
				waitUntil(t, "the turns", func() bool { return w.app.memory().queue().Verified == turns })
				waitUntil(t, "the facts to be read", func() bool { return unread(t, dir) == 0 })
				if waiting, err := w.app.reload(&without); err != nil || !slices.Equal(waiting, tc.waiting) {
					t.Fatalf("%q wait, %v; want %q", waiting, err, tc.waiting)
				}
				return len(g.Requests())
			}
			w.say("My cat is called Miso.")
			before := withdraw(1)
			if _, header, _ := w.say("What is my cat called?"); !strings.HasPrefix(header, "off;") || !strings.Contains(header, "reason=consent") {
				t.Errorf("got %q, want \"off;\" at its beginning, \"reason=consent\" in it", header)
			}
			if s := w.app.status(t.Context(), true).Memory; s.State != health.StateOff || !strings.Contains(s.Why+s.Remedy, tc.why) {
				t.Errorf("got %+v, want State off, and %s named", s, tc.why)
			}
			if n := len(g.Requests()); n != before {
				t.Errorf("%d calls without consent", n-before)
			}
			must(t, helptest.ErrorOf(w.app.reload(&with)))
			if _, header, _ := w.say("What is my cat called?"); !strings.HasPrefix(header, "recalled;") {
				t.Errorf("got %q, want \"recalled;\" at its beginning", header)
			}
			w.say("My dog is called Rex.") // Graphiti gets no copy of a question
			before = withdraw(2)
			w.say("What is my dog called?")
			w.stop() // waits for the work after an answer
			if n := len(g.Requests()); n != before {
				t.Errorf("%d calls without consent until the end", n-before)
			}
		})
	}
}

// unread returns the number of Graphiti's episodes whose facts wait to be read.
func unread(t *testing.T, dir string) int {
	t.Helper()
	return countOf(t, dir, "SELECT count(*) FROM unread")
}

// countOf returns the number that a query of the memory in a directory selects.
func countOf(t *testing.T, dir, query string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "memory.db"))
	must(t, err)
	defer db.Close()
	must(t, db.QueryRow(query).Scan(&n))
	return n
}

// TestConsentIsExplainedOnce checks that the log explains, once for each endpoint after a start,
// which data the proxy sends there, how to stop this, and how to purge the data.
func TestConsentIsExplainedOnce(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	const explains = "conversations are sent to this endpoint from now on"
	for name, settings := range map[string]map[string]string{
		"memory":    {"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": g.URL()},
		"embedding": {"embedding.url": g.URL(), "memory.consent": g.URL()},
		"facts":     {"distil.url": g.URL(), "distil.model": "m", "memory.consent": g.URL()},
	} {
		w := start(t, t.TempDir(), settings)
		must(t, helptest.ErrorOf(w.app.reload(w.app.cfg)))
		log := w.log.String()
		if got := strings.Count(log, explains); got != 1 {
			t.Errorf("%s: explained %d times, want once: %s", name, got, log)
		}
		for _, want := range []string{"endpoint=" + g.URL(), "sent=", `stop="memory.consent: false"`, `purge="graphiti-proxy memory forget`} {
			if !strings.Contains(log, want) {
				t.Errorf("%s: the log lacks %s: %s", name, want, log)
			}
		}
	}
	w := start(t, t.TempDir(), nil)
	if strings.Contains(w.log.String(), explains) {
		t.Errorf("without an endpoint: %s", w.log)
	}
}
