package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// distiller is a model that finds one fact in a batch that matches saysLock.
type distiller struct {
	*httptest.Server
	mu     sync.Mutex // protects bodies
	bodies []string
}

const lockFact = `{"facts":[{"text":"Singers sign in by magic link","kind":"rule","about":"sign-in","keys":["login","authentication"],"sources":["M1"],"replaces":[],"valid_from":null}]}`

// saysLock matches a batch that begins with the statement of lockFact.
var saysLock = regexp.MustCompile(`M1 user [0-9-]+: (the singers|our choir)`)

func newDistiller(t *testing.T) *distiller {
	t.Helper()
	d := &distiller{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		d.bodies = append(d.bodies, string(body))
		d.mu.Unlock()
		facts := `{"facts":[]}`
		if saysLock.Match(body) {
			facts = lockFact
		}
		answer := map[string]any{"choices": []m{{"message": m{"content": facts}}}, "usage": m{"total_tokens": 4321}}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *distiller) asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.bodies...)
}

func TestFactsFromAModel(t *testing.T) {
	t.Parallel()
	d := newDistiller(t)
	w := start(t, t.TempDir(), map[string]string{"distil.url": d.URL + "/v1", "distil.model": "m1", "distil.after": "1s", "memory.consent": "true"})
	w.say("the singers sign in by magic link", "X-Graphiti-Session", "s1")
	waitUntil(t, "a distilled fact", func() bool {
		out, err := w.cli("memory", "facts")
		return err == nil && strings.Contains(out, "Singers sign in by magic link")
	})
	if asked := d.asked(); len(asked) != 1 || !strings.Contains(asked[0], "the singers sign in by magic link") {
		t.Errorf("the model was asked %q, want one call with the message", asked)
	}
	if out, err := w.cli("status"); err != nil || !strings.Contains(out, "1 fact of 1 call, 0 refused; 4321 of 200000 tokens") {
		t.Errorf("status: %v\n%s\nwant the counts of the call", err, out)
	}
	if got := w.metric("graphiti_proxy_facts_distilled_total"); got != "1" {
		t.Errorf("graphiti_proxy_facts_distilled_total = %q, want 1", got)
	}
	if _, _, saw := w.say("which login and authentication do we have?", "X-Graphiti-Session", "s2"); !strings.Contains(saw, "- “Singers sign in by magic link” (since ") {
		t.Errorf("the model saw %q, want the fact", saw)
	}
	export, err := w.cli("memory", "export", "--session", "s1")
	if err != nil || strings.Count(export, `"where":"fact"`) != 1 {
		t.Fatalf("export: %v\n%s\nwant one fact", err, export)
	}
	if log := w.log.String(); strings.Contains(log, "magic") {
		t.Errorf("the log has text of the conversation:\n%s", log)
	}

	if out, err := w.cli("memory", "search", "--explain", "--user", "me", "which login?"); err != nil || !strings.Contains(out, "“Singers sign in by magic link” (since ") || !strings.Contains(out, "; keys: authentication, login") {
		t.Errorf("search --explain: %v\n%s\nwant the fact and its keys", err, out)
	}
	facts, err := w.cli("memory", "facts")
	must(t, err)
	id := regexp.MustCompile(`(\w+) .* fact .* Singers`).FindStringSubmatch(facts)[1]
	if out, err := w.cli("memory", "forget", "--message", id); err != nil {
		t.Errorf("forget a fact: %v\n%s", err, out)
	}
	if out, err := w.cli("memory", "facts"); err != nil || strings.Contains(out, "Singers sign in") || !strings.Contains(out, "the singers sign in") {
		t.Errorf("facts after one was forgotten: %v\n%s\nwant its message alone", err, out)
	}

	dir := t.TempDir()
	file := filepath.Join(dir, "memory.jsonl")
	writeFile(t, file, export)
	for range 2 {
		if out, err := command(t, dir, "memory", "import", file); err != nil {
			t.Errorf("import: %v\n%s", err, out)
		}
	}
	again, err := command(t, dir, "memory", "export", "--session", "s1")
	if again = regexp.MustCompile(`,\\"import\\":\\"\w+\\"`).ReplaceAllString(again, ""); err != nil || again != export { // an import is marked, for its undo
		t.Errorf("export after an import: %v\n%s\nwant\n%s", err, again, export)
	}

	if out, err := w.cli("memory", "forget", "--session", "s1", "--yes"); err != nil {
		t.Fatalf("forget: %v\n%s", err, out)
	}
	if out, err := w.cli("memory", "facts", "--all"); err != nil || strings.Contains(out, "magic") {
		t.Errorf("facts after the conversation was forgotten: %v\n%s", err, out)
	}
}

// TestFacts_Quota checks that a person or tenant without tokens waits for the next day, that status
// gives the reason, and that the tokens of a person are in their statistics.
func TestFacts_Quota(t *testing.T) {
	for _, quota := range []string{"quota.person", "quota.tenant"} {
		t.Run(quota, func(t *testing.T) { testFactsQuota(t, quota) })
	}
}

func testFactsQuota(t *testing.T, quota string) {
	t.Parallel()
	d := newDistiller(t)
	w := start(t, t.TempDir(), map[string]string{"distil.url": d.URL + "/v1", "distil.model": "m1", "distil.after": "1s", "memory.consent": "true", quota: "{tokens: 6000}"})
	w.say("the singers sign in by magic link", "X-Graphiti-Session", "s1")
	waitUntil(t, "the first call", func() bool {
		out, err := w.cli("memory", "stats", "--user", "me", "--json")
		return err == nil && strings.Contains(out, `"distilled_tokens": 4321`)
	})
	w.say("our choir meets on Mondays", "X-Graphiti-Session", "s2")
	waitUntil(t, "the quota", func() bool {
		out, err := w.cli("status")
		return err == nil && strings.Contains(out, quota+" is reached")
	})
	if asked := d.asked(); len(asked) != 1 {
		t.Errorf("the model was asked %q, want one call", asked)
	}
}

// TestFacts_OfAnImport checks that an import costs tokens only with --distil, and only once
// for each message.
func TestFacts_OfAnImport(t *testing.T) {
	t.Parallel()
	d := newDistiller(t)
	w := start(t, t.TempDir(), map[string]string{"distil.url": d.URL + "/v1", "distil.model": "m1", "distil.after": "1s", "memory.consent": d.URL + "/v1"})
	file := filepath.Join(t.TempDir(), "notes.jsonl")
	lines := `{"scope":"user","role":"user","content":"the singers sign in by magic link","timestamp":"2026-01-02T09:00:00Z","session":"old"}
{"scope":"user","role":"user","content":"the kettle is blue","timestamp":"2026-01-02T09:00:00Z"}`
	writeFile(t, file, lines)
	waiting := func() (n int) {
		t.Helper()
		b, _, err := w.remembers().backend.Facts.Undistilled(t.Context(), 0, 1)
		must(t, err)
		if b != nil {
			n = len(b.Messages)
		}
		return n
	}
	if out, err := w.cli("memory", "import", file); err != nil || waiting() != 0 {
		t.Fatalf("import: %v, %d messages wait for the model\n%s\nwant none", err, waiting(), out)
	}
	for range 2 {
		if out, err := w.cli("memory", "import", "--distil", file); err != nil {
			t.Fatalf("import: %v\n%s", err, out)
		}
		waitUntil(t, "a distilled fact", func() bool {
			out, err := w.cli("memory", "facts")
			return err == nil && strings.Contains(out, "Singers sign in by magic link")
		})
		if n := waiting(); n > 0 {
			t.Errorf("%d messages wait for the model, want none", n)
		}
	}
	if asked := d.asked(); len(asked) != 1 || strings.Contains(asked[0], "kettle") {
		t.Errorf("the model was asked %q, want one call with the conversation", asked)
	}
}

// TestFacts_FromTheCallersProvider checks that only a person's own provider distills that
// person's messages, with that person's key, and that no file and no log contains the key.
func TestFacts_FromTheCallersProvider(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "distil.upstream": "true", "distil.model": "m1", "distil.after": "1s"})
	w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		if strings.Contains(c.Messages[0].Text, "You keep the memory") {
			return proxytest.Reply{Text: lockFact}
		}
		return proxytest.Recollect(c)
	})
	w.say("the singers of Ada sign in by magic link", "Authorization", "Bearer sk-ada", "X-Graphiti-Session", "a")
	w.exchange("/v1/messages", m{"model": "m", "max_tokens": 9, "messages": []m{user("the singers of Bob sign in by magic link")}}, "X-Api-Key", "sk-bob", "Anthropic-Version", "2023-06-01", "X-Graphiti-Session", "b")
	w.exchange("/v1/messages", m{"model": "m", "max_tokens": 9, "messages": []m{user("the singers of Eve sign in by magic link")}}, "Authorization", "Bearer login-eve", "Anthropic-Version", "2023-06-01", "X-Graphiti-Session", "e")
	asked := func() (all []string) {
		for _, r := range w.model.Requests() {
			if strings.Contains(string(r.Body), "You keep the memory") {
				who := regexp.MustCompile(`singers of (\w+)`).FindSubmatch(r.Body)
				all = append(all, r.Path+" "+string(who[1])+" "+r.Headers.Get("Authorization"))
			}
		}
		slices.Sort(all)
		return all
	}
	waitUntil(t, "two calls, and a conversation without a key", func() bool {
		return len(asked()) == 2 && strings.Contains(w.log.String(), "no recent request has shown the provider")
	})
	want := []string{"/v1/chat/completions Ada Bearer sk-ada", "/v1/chat/completions Bob Bearer sk-bob"}
	if got := asked(); !slices.Equal(got, want) {
		t.Errorf("calls to the provider: got %q, want %q", got, want)
	}
	w.stop()
	files := w.log.String()
	err := filepath.WalkDir(w.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		files += string(b)
		return err
	})
	if err != nil || strings.Contains(files, "sk-ada") || strings.Contains(files, "sk-bob") {
		t.Errorf("a credential is in the log or a file (%v)", err)
	}
}

// TestFactsNeedConsent checks that no message is sent to the model without consent.
func TestFactsNeedConsent(t *testing.T) {
	t.Parallel()
	d := newDistiller(t)
	w := start(t, t.TempDir(), map[string]string{"distil.url": d.URL + "/v1", "distil.model": "m1", "distil.after": "1s"})
	w.say("the singers sign in by magic link", "X-Graphiti-Session", "s1")
	w.delivered(1)
	if log := w.log.String(); !strings.Contains(log, "facts are off: memory.consent does not cover distil.url") {
		t.Errorf("log: got\n%s\nwant the reason", log)
	}
	w.stop()
	if asked := d.asked(); len(asked) > 0 {
		t.Errorf("the model was asked %q without consent", asked)
	}
}

// TestFacts_EndWithTheirMessages checks that "forget that …" with the words of a fact ends
// the fact, even if its message has other words.
func TestFacts_EndWithTheirMessages(t *testing.T) {
	t.Parallel()
	d := newDistiller(t)
	w := start(t, t.TempDir(), map[string]string{"distil.url": d.URL + "/v1", "distil.model": "m1", "distil.after": "1s", "memory.consent": d.URL + "/v1"})
	w.say("our choir of singers gets an e-mail with a magic link to sign in, and that is all", "X-Graphiti-Session", "s1")
	listed := func(args ...string) bool {
		out, err := w.cli(append([]string{"memory", "facts"}, args...)...)
		return err == nil && strings.Contains(out, "Singers sign in by magic link")
	}
	waitUntil(t, "a distilled fact", func() bool { return listed() })
	if _, header, _ := w.say("Forget that singers sign in by magic link.", "X-Graphiti-Session", "s2"); !strings.Contains(header, "ended=1") {
		t.Errorf("header %q, want ended=1", header)
	}
	if listed() {
		t.Error("memory facts lists the ended fact as valid")
	}
	if out, err := w.cli("memory", "facts", "--all"); err != nil || !strings.Contains(out, "ended") {
		t.Errorf("memory facts --all: %v\n%s\nwant the ended fact", err, out)
	}
	if _, _, saw := w.say("which login and authentication do we have?", "X-Graphiti-Session", "s3"); strings.Contains(saw, "magic link") {
		t.Errorf("the model saw %q, want no ended fact", saw)
	}
}

// TestFacts_ConsentWithdrawn checks that messages wait while consent is withdrawn or covers
// another address, and are distilled once it is given again.
func TestFacts_ConsentWithdrawn(t *testing.T) {
	t.Parallel()
	d := newDistiller(t)
	w := start(t, t.TempDir(), map[string]string{"distil.url": d.URL + "/v1", "distil.model": "m1", "distil.after": "1s", "memory.consent": d.URL + "/v1"})
	with, without, moved := *w.app.cfg, *w.app.cfg, *w.app.cfg
	without.Memory.Consent, moved.Memory.Consent = "false", "http://elsewhere.example/v1"
	for name, cfg := range map[string]*config.Config{"withdrawn": &without, "for another address": &moved} {
		if waiting, err := w.app.reload(cfg); err != nil || len(waiting) > 0 {
			t.Fatalf("%s: %v wait, %v", name, waiting, err)
		}
		if s := w.app.status(t.Context(), true).Memory.Distil; s == nil || !s.Paused {
			t.Errorf("%s: got %+v, want facts paused", name, s)
		}
	}
	w.say("the singers sign in by magic link", "X-Graphiti-Session", "s1")
	w.delivered(1)
	must(t, helptest.ErrorOf(w.app.reload(&with)))
	waitUntil(t, "a call with consent", func() bool { return len(d.asked()) == 1 })
}
