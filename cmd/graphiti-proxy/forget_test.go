package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// ask sends messages in a session, and returns the body that the model received.
func (w *world) ask(session string, messages ...m) string {
	w.t.Helper()
	w.model.Forget()
	w.exchange("/v1/chat/completions", chat(messages...), "X-Graphiti-Session", session)
	return string(w.model.Requests()[0].Body)
}

func (w *world) forget(group string) {
	w.t.Helper()
	if _, err := w.remembers().service.Forget(context.Background(), &service.ForgetRequest{Selector: service.Selector{Group: group}}); err != nil {
		w.t.Fatal(err)
	}
}

func answered(text string) m { return m{"role": "assistant", "content": text} }

// TestForgetting checks that a forgotten fact is recalled from no memory, cache, queue or
// running conversation, even after a restart. No database file contains it any more.
func TestForgetting(t *testing.T) {
	t.Parallel()
	type settings = map[string]string
	stand := func(t *testing.T, o graphititest.Options, more settings) (settings, *graphititest.Graphiti) {
		o.Delay = 20 * time.Millisecond
		g := startGraphiti(t, o)
		s := settings{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true"}
		maps.Copy(s, more)
		return s, g
	}
	for name, open := range map[string]func(*testing.T) (settings, *graphititest.Graphiti){
		"embedded": func(*testing.T) (settings, *graphititest.Graphiti) { return settings{}, nil },
		"REST":     func(t *testing.T) (settings, *graphititest.Graphiti) { return stand(t, graphititest.Options{}, nil) },
		"MCP": func(t *testing.T) (settings, *graphititest.Graphiti) {
			return stand(t, graphititest.Options{MCP: graphititest.Today}, settings{"memory.backend": "graphiti-mcp"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, g := open(t)
			maps.Copy(s, settings{"identity.owner": "user:josh", "identity.group_ids": "raw"})
			forgets(t, dir, s, g)
		})
	}
}

func forgets(t *testing.T, dir string, settings map[string]string, g *graphititest.Graphiti) {
	w := start(t, dir, settings)
	w.say(fact)
	w.delivered(1)
	settled(t, g)
	if _, _, saw := w.say(question); !strings.Contains(saw, "Miso") {
		t.Fatal("it is not known to begin with")
	}
	_, block := w.send("on", user("And what is my cat called, again?"))
	if !strings.Contains(block, "Miso") {
		t.Fatal("no block")
	}
	for i := range 8 { // accepted, but not delivered yet
		w.say(fmt.Sprint("Miso did something funny, number ", i))
	}
	groups, err := found(w.remembers().service.Find(context.Background(), service.Selector{User: "josh"}))
	if err != nil || len(groups) == 0 {
		t.Fatalf("got %v, %v, want no error, some", groups, err)
	}
	for _, one := range groups {
		w.forget(one.Group)
	}
	check := func(when string) {
		t.Helper()
		if _, _, saw := w.say("Do you know my cat Whatsit? " + when); strings.Contains(saw, "Miso") {
			t.Errorf("%s: the model saw %q", when, saw)
		}
		if _, first := w.send("off", user("And what is my cat called, again?"), m{"role": "assistant", "content": "You told me: My cat is called Miso."}, user("And now?")); strings.Contains(first, "graphiti_memory") {
			t.Errorf("%s: the running conversation still has %q", when, first)
		}
	}
	if q := w.app.memory().queue(); q.Pending != 0 || q.Dead != 0 {
		t.Errorf("got %+v, want Pending 0, Dead 0", q)
	}
	settled(t, g)
	if n := len(w.heldIn("user_josh")); n != 0 {
		t.Errorf("%d episodes came after all", n)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v, want no error, some", files, err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err != nil || bytes.Contains(b, []byte("Miso")) {
			t.Errorf("%s still holds it, or cannot be read: %v", filepath.Base(file), err)
		}
	}
	check("at once")
	w.stop()

	w = start(t, dir, settings)
	check("after a restart")
}

// settled waits until Graphiti has processed every message that it has accepted.
func settled(t *testing.T, g *graphititest.Graphiti) {
	t.Helper()
	if g == nil {
		return
	}
	must(t, g.Settle(context.Background()))
}

// cli runs a command against the running proxy and returns its output.
func (w *world) cli(args ...string) (string, error) {
	w.t.Helper()
	return command(w.t, w.t.TempDir(), append(args, "--set", "admin.listen="+w.app.admin.Addr().String())...)
}

// found returns the groups that a selector covers completely.
func found(m service.Meant, err error) ([]ledger.Owned, error) { return m.Groups, err }

// TestForget_Accepted checks that a request to forget takes effect only when the provider has
// accepted it, and then on the client's next try.
func TestForget_Accepted(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	for n, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		boat, session := fmt.Sprint("Nemo", n), fmt.Sprint("s", n)
		w.say(fmt.Sprintf("My boat number %d is called %s.", n, boat), "X-Graphiti-Session", "seed"+session)
		w.delivered(n + 1)
		forget := chat(user(fmt.Sprintf("Forget that my boat number %d is called %s.", n, boat)))
		w.model.SetFaults(proxytest.Faults{Status: status})
		if _, header := w.exchange("/v1/chat/completions", forget, "X-Graphiti-Session", session); strings.Contains(header.Get("X-Graphiti-Memory"), "ended=") {
			t.Errorf("status %d: %s, want nothing ended", status, header.Get("X-Graphiti-Memory"))
		}
		w.model.SetFaults(proxytest.Faults{})
		question := fmt.Sprintf("What is boat number %d called?", n)
		if _, _, saw := w.say(question, "X-Graphiti-Session", "q"+session); !strings.Contains(saw, boat) {
			t.Errorf("status %d: the statement was forgotten", status)
		}
		if _, header := w.exchange("/v1/chat/completions", forget, "X-Graphiti-Session", session); !strings.Contains(header.Get("X-Graphiti-Memory"), "ended=") {
			t.Errorf("status %d, tried again: %s, want the statement ended", status, header.Get("X-Graphiti-Memory"))
		}
		if _, _, saw := w.say(question+" Tell me.", "X-Graphiti-Session", "r"+session); strings.Contains(saw, boat) {
			t.Errorf("status %d, tried again: the statement is still recalled", status)
		}
	}
}

// TestConversationWithoutAnID is shown and forgotten by the id that memory list prints,
// and its page has a way to forget it. Another conversation stays.
func TestConversationWithoutAnID(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say("My otter is called Lockless.")
	w.say("My heron is called Greyback.")
	w.delivered(2)
	var all service.Catalog
	out, err := w.cli("memory", "list", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	if err != nil || len(all.Conversations) != 2 {
		t.Fatalf("memory list --json: %s, %v; want two conversations", out, err)
	}
	hash := ""
	for _, c := range all.Conversations {
		if strings.Contains(c.Begins, "otter") {
			hash = c.Hash
		}
	}
	if out, err = w.cli("memory", "list"); err != nil || !strings.Contains(out, hash) {
		t.Errorf("memory list: %s, %v; want the id %s", out, err, hash)
	}
	if page := w.get("/conversation/" + hash); !strings.Contains(page, `/memory/forget?session=`+hash) {
		t.Errorf("the page of the conversation has no link to forget it:\n%s", page)
	}
	if page := w.get("/memory/forget?session=" + hash); !strings.Contains(page, "forget this conversation") || strings.Contains(page, "Nothing") {
		t.Errorf("the page that forgets it:\n%s", page)
	}
	if out, err = w.cli("memory", "show", "--session", hash); err != nil || !strings.Contains(out, "Lockless") || strings.Contains(out, "Greyback") {
		t.Errorf("memory show --session %s: %s, %v; want this conversation alone", hash, out, err)
	}
	if out, err = w.cli("memory", "forget", "--session", hash, "--yes"); err != nil || !strings.HasPrefix(out, "the session is forgotten in ") {
		t.Errorf("memory forget --session %s: %s, %v; want that it is forgotten", hash, out, err)
	}
	if out, err = w.cli("memory", "show"); err != nil || strings.Contains(out, "Lockless") || !strings.Contains(out, "Greyback") {
		t.Errorf("memory show: %s, %v; want the other conversation alone", out, err)
	}
}

// TestForgettingNothing checks that a forget fails if its selector has no memory, and that
// the error names the selector.
func TestForgettingNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := command(t, dir, "memory", "forget", "--yes"); err == nil || err.Error() != "no memory yet for you; nothing to delete" {
		t.Error(err)
	}
	must(t, helptest.ErrorOf(command(t, dir, "memory", "promote", "--kind", "decision", "Postgres")))
	for whose, args := range map[string][]string{
		"josh": {"--user", "josh"}, "the session typo": {"--session", "typo"}, "the group typo": {"--group", "typo"},
		"the project acme/widgets": {"--workspace", "https://github.com/acme/widgets"},
	} {
		if out, err := command(t, dir, append([]string{"memory", "forget", "--yes"}, args...)...); err == nil || err.Error() != "no memory yet for "+whose+"; nothing to delete" {
			t.Errorf("%v: got %q %v, want the error that there is no memory yet for %s", args, out, err, whose)
		}
	}
	if _, err := command(t, dir, "memory", "forget", "--yes"); err != nil {
		t.Error(err)
	}
	if out, err := command(t, dir, "memory", "export"); err != nil || out != "" {
		t.Errorf("got %s %v, want no error, \"\"", out, err)
	}
	for line, want := range map[string]bool{"y\n": true, "Yes\n": true, "YES": true, "": false, "no\n": false, "yesterday\n": false} {
		if isYes(line) != want {
			t.Errorf("isYes(%q) is %v, want %v", line, !want, want)
		}
	}
}

// TestWorkspaceByDirectory checks that a directory selects the project of a client that
// works in it, and that any other path is refused.
func TestWorkspaceByDirectory(t *testing.T) {
	t.Parallel()
	w, one, _ := projects(t, nil)
	w.see(qwen(one, user("We use Postgres.")))
	w.delivered(2)
	for _, dir := range []string{one, one + "/", one + "/cmd/.."} {
		if out, err := w.cli("memory", "show", "--workspace", dir); err != nil || !strings.Contains(out, "Postgres") {
			t.Errorf("%s: got %s %v, want no error, \"Postgres\" in it", dir, out, err)
		}
	}
	writeFile(t, filepath.Join(one, "file"), "")
	for _, dir := range []string{filepath.Join(one, "nowhere"), "./nowhere", "../nowhere/there", filepath.Join(one, "file")} {
		if out, err := w.cli("memory", "promote", "--kind", "decision", "--workspace", dir, "x"); err == nil || !strings.Contains(err.Error(), "--workspace: ") {
			t.Errorf("%s: got %s %v, want an error, \"--workspace: \" in it", dir, out, err)
		}
	}
}
