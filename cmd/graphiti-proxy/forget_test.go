package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
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
		g, err := graphititest.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
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

// TestForgetDuringRequest checks that a request in flight while its group is forgotten
// leaves no trace in the memory or in the session's notes. Neither it nor an earlier
// message whose answer failed is stored from the history of later requests, even after a
// restart. New turns are stored.
func TestForgetDuringRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := map[string]string{"identity.owner": "user:josh", "identity.group_ids": "raw"}
	w := start(t, dir, settings)
	var once sync.Once
	asked, answer := make(chan struct{}), make(chan struct{})
	w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		if strings.Contains(c.Messages[len(c.Messages)-1].Text, "Foxglove") {
			once.Do(func() { close(asked) })
			<-answer
		}
		return proxytest.Reply{Text: "Understood."}
	})
	w.model.SetFaults(proxytest.Faults{Status: 500})
	failed := user("The depot is called Larkspur.")
	w.ask("s1", failed)
	w.model.SetFaults(proxytest.Faults{})

	talk := []m{failed, answered("Sorry?"), user("We decided to call the heliport Foxglove.")}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.exchange("/v1/chat/completions", chat(talk...), "X-Graphiti-Session", "s1")
	}()
	<-asked
	w.forget("user_josh")
	close(answer)
	<-done

	// The answers of a session are read in order, so the answer above has been read after
	// this turn.
	w.ask("s1", user("The beacon is called Mimosa."))
	w.delivered(1)
	w.shortTerm("user_josh", "Mimosa")
	summary := user("This session is being continued from a previous conversation that ran out of context.")
	if saw := w.ask("s1", summary, user("Where were we?")); strings.Contains(saw, "Foxglove") || !strings.Contains(saw, "asked: “The beacon is called Mimosa.") {
		t.Errorf("the session is told %s", saw)
	}
	w.delivered(2)
	w.stop()

	w = start(t, dir, settings)
	w.ask("s1", append(talk, answered("Understood."), user("The stable is called Juniper."))...)
	ferry := []m{user("The ferry is called Oleander."), answered("I see."), user("Thanks.")}
	w.ask("s3", ferry...)
	w.ask("s3", append(ferry, answered("Understood."), user("And good night."))...) // earlier turns are delivered in order
	waitUntil(t, "the turns", func() bool {
		held := strings.Join(w.held(), "\n")
		return strings.Contains(held, "Oleander") && strings.Contains(held, "Juniper")
	})
	for _, episode := range w.heldIn("user_josh") {
		if strings.Contains(episode.Text, "Foxglove") || strings.Contains(episode.Text, "Larkspur") {
			t.Errorf("it came back as %s: %q", episode.Name, episode.Text)
		}
	}
	if saw := w.ask("s4", user("What are the stable, the heliport and the depot called?")); !strings.Contains(saw, "Juniper") || strings.Contains(saw, "Foxglove") || strings.Contains(saw, "Larkspur") {
		t.Errorf("recalled: %s", saw)
	}
}

// cli runs a command against the running proxy and returns its output.
func (w *world) cli(args ...string) (string, error) {
	w.t.Helper()
	return command(w.t, w.t.TempDir(), append(args, "--set", "admin.listen="+w.app.admin.Addr().String())...)
}

// TestForgetKeepsSharedGroups checks that neither a person nor a project as a
// selector forgets the memory of a project to which another person wrote: the command
// refuses or skips it, and --group forgets all of it.
func TestForgetKeepsSharedGroups(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh", "identity.group_ids": "raw"})
	say := func(person, workspace, text string) {
		w.exchange("/v1/chat/completions", m{"model": "m", "messages": []m{user(text)}}, "X-Graphiti-User", person, "X-Graphiti-Workspace", workspace)
	}
	say("josh", "both", "We use Postgres here.")
	say("ann", "both", "We use Redis here too.")
	say("ann", "hers", "This is mine alone.")
	say("josh", "his", "And this is mine.")
	w.delivered(4)
	for _, args := range [][]string{{"--user", "josh", "--workspace", "both"}, {"--workspace", "both"}, {"--user", "josh", "--workspace", "hers"}} {
		if out, err := w.cli(append([]string{"memory", "forget", "--yes"}, args...)...); err == nil || !strings.Contains(err.Error(), "--group") {
			t.Errorf("%v: got %q, %v, want an error, \"--group\" in it", args, out, err)
		}
	}
	if out, err := w.cli("memory", "forget", "--user", "josh", "--yes"); err != nil || !strings.HasPrefix(out, "2 groups forgotten") {
		t.Errorf("got %q, %v, want no error, \"2 groups forgotten\" at its beginning", out, err)
	}
	for group, want := range map[string]int{"workspace_both": 4, "workspace_hers": 2, "workspace_his": 0} {
		if n := len(w.heldIn(group)); n != want {
			t.Errorf("%s has %d messages, want %d", group, n, want)
		}
	}
	if _, err := w.cli("memory", "forget", "--group", "workspace_both", "--yes"); err != nil || len(w.heldIn("workspace_both")) > 0 {
		t.Errorf("got %v, want no error, and nothing held in the group", err)
	}
}

// found returns the groups that a selector covers completely.
func found(m service.Meant, err error) ([]ledger.Owned, error) { return m.Groups, err }
