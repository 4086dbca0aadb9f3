package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
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
	if err := g.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// cli runs a command against the running proxy and returns its output.
func (w *world) cli(args ...string) (string, error) {
	w.t.Helper()
	return command(w.t, w.t.TempDir(), append(args, "--set", "admin.listen="+w.app.admin.Addr().String())...)
}

// found returns the groups that a selector covers completely.
func found(m service.Meant, err error) ([]ledger.Owned, error) { return m.Groups, err }
