package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestForgettingThatDeletesNothing checks a memory that confirms the deletion of a group
// and keeps it, as Graphiti does on FalkorDB. The command fails and names the rest and a
// remedy. Until the deletion is proven, no prompt contains facts of the group, from a
// search or an earlier block, even after a restart.
func TestForgettingThatDeletesNothing(t *testing.T) {
	t.Parallel()
	type settings = map[string]string
	for name, tc := range map[string]struct {
		o    graphititest.Options
		more func(t *testing.T) settings
	}{
		"REST": {graphititest.Options{Deletes: graphititest.Elsewhere}, func(*testing.T) settings { return settings{"memory.backend": "graphiti"} }},
		"MCP": {graphititest.Options{Deletes: graphititest.Elsewhere, MCP: graphititest.Today}, func(*testing.T) settings {
			return settings{"memory.backend": "graphiti-mcp"}
		}},
	} {
		for _, part := range []string{"--user", "--session"} {
			t.Run(name+part, func(t *testing.T) {
				t.Parallel()
				g := startGraphiti(t, tc.o)
				s := settings{"memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw"}
				maps.Copy(s, tc.more(t))
				deletesNothing(t, g, s, part)
			})
		}
	}
}

func deletesNothing(t *testing.T, g *graphititest.Graphiti, settings map[string]string, part string) {
	dir := t.TempDir()
	w := start(t, dir, settings)
	w.ask("s1", user("My cat is called Miso."))
	w.delivered(1)
	settled(t, g)
	if saw := w.ask("s2", user("What is my cat called?")); !strings.Contains(saw, "Miso") {
		t.Fatal("it is not known to begin with")
	}
	whose := map[string]string{"--user": "josh", "--session": "s1"}[part]
	forget := func() error {
		_, err := w.cli("memory", "forget", part, whose, "--yes")
		return err
	}
	todo := map[string]string{"--user": "GRAPH.DELETE user_josh", "--session": "memory forget --group user_josh"}[part]
	err := forget()
	if err == nil || !strings.Contains(err.Error(), "still lists") || !strings.Contains(err.Error(), todo) || strings.Contains(err.Error(), "Miso") {
		t.Fatalf("it is taken for forgotten, or says nothing of use: %v", err)
	}
	secret := map[string]string{"--user": "Miso", "--session": "“My cat is called Miso"}[part] // an answer of another session quotes it
	check := func(when string) {
		t.Helper()
		for _, session := range []string{"s2", "s3" + when} {
			if saw := w.ask(session, user("What is my cat called?"), answered("I see."), user("And what is my cat called, again?")); strings.Contains(saw, secret) {
				t.Errorf("%s, in %s: the model saw %s", when, session, saw)
			}
		}
		if saw := w.ask("s4"+when, user("Is there a cat called something?")); strings.Contains(saw, secret) {
			t.Errorf("%s: the model saw %s", when, saw)
		}
	}
	check("at once")
	w.stop()
	w = start(t, dir, settings)
	check("after a restart")
	if err := forget(); err == nil {
		t.Error("the second time it is taken for forgotten")
	}
	g.Erase() // as redis-cli GRAPH.DELETE does
	w.ask("s5", user("My dog is called Rex."))
	waitUntil(t, "new turns", func() bool {
		return slices.ContainsFunc(g.Episodes("user_josh"), func(e graphititest.Episode) bool { return strings.Contains(e.Content, "Rex") })
	})
	// The new turn proves that no older one will appear.
	waitUntil(t, "it to be forgotten", func() bool { return !strings.Contains(w.status(), "still be in Graphiti") })
	// A conversation that quoted the session is not forgotten with it.
	if saw := w.ask("s6", user("What is my dog called?")); !strings.Contains(saw, "Rex") || part == "--user" && strings.Contains(saw, "Miso") {
		t.Errorf("when it was forgotten the model saw %s", saw)
	}
}

// TestForgettingOfAMemoryThatIsDown checks that a forget reports the waiting deletion while
// the memory is down, and so does the status. Conversations lose their blocks at once. After
// the memory's return, or a restart of the proxy, the group is forgotten without another
// command and before any recall from it. Newer turns stay.
func TestForgettingOfAMemoryThatIsDown(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]graphititest.Fault{"refuses": graphititest.Refuse(), "hangs": graphititest.Hang()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGraphiti(t, graphititest.Options{})
			dir, settings := t.TempDir(), map[string]string{
				"memory.endpoint": g.URL(), "memory.consent": "true", "memory.backend": "graphiti",
				"identity.owner": "user:josh", "identity.group_ids": "raw",
			}
			w := start(t, dir, settings)
			w.ask("s1", user("My cat is called Miso."))
			w.delivered(1)
			settled(t, g)
			asked := user("What is my cat called?")
			if saw := w.ask("s2", asked); !strings.Contains(saw, "Miso") {
				t.Fatal("it is not known to begin with")
			}
			cfg := *w.app.cfg
			cfg.Memory.Timeout = 300 * time.Millisecond // else the command waits for each call that hangs
			must(t, helptest.ErrorOf(w.app.reload(&cfg)))
			calls := []graphititest.Call{graphititest.Healthcheck, graphititest.Forget, graphititest.Episodes, graphititest.Search, graphititest.Messages}
			for _, c := range calls {
				g.Always(c, fault)
			}
			_, err := w.cli("memory", "forget", "--user", "josh", "--yes")
			if err == nil || !strings.Contains(err.Error(), "deleted here") {
				t.Errorf("forgetting while the memory %s: %v, want that it is deleted here", name, err)
			}
			check := func(when string) {
				t.Helper()
				if saw := w.ask("s2", asked, answered("I see."), user("And again?")); strings.Contains(saw, "Miso") {
					t.Errorf("%s the model saw %s", when, saw)
				}
				if status := w.status(); !strings.Contains(status, "still be in Graphiti") {
					t.Errorf("%s the status is %s", when, status)
				}
			}
			check("while it is down")
			w.ask("s3", user("My dog is called Rex."))
			if name == "hangs" {
				w.stop()
				w = start(t, dir, settings)
				check("after a restart")
			} else if _, err := w.app.reload(w.app.cfg); err != nil {
				t.Fatal(err)
			}
			for _, c := range calls {
				g.Always(c, nil)
			}
			if saw := w.ask("s4", asked); strings.Contains(saw, "Miso") {
				t.Errorf("when it is back the model saw %s", saw)
			}
			waitUntil(t, "what was said since", func() bool {
				held := fmt.Sprint(w.heldIn("user_josh"))
				if strings.Contains(held, "Miso.") {
					t.Fatalf("it is still there: %s", held)
				}
				return strings.Contains(held, "Rex") && !strings.Contains(w.status(), "still be in Graphiti")
			})
		})
	}
}

// TestForgetReportsRemainingParts checks that the command and the API return within two seconds in each
// state of Graphiti, that no block recalls the message then, and that both list the parts left in Graphiti.
func TestForgetReportsRemainingParts(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]graphititest.Fault{
		"up": nil, "slow": graphititest.Slow(10 * time.Second), "refuses": graphititest.Answer(http.StatusServiceUnavailable, ""), "down": graphititest.Refuse(),
	} {
		for _, backend := range []string{"graphiti", "graphiti-mcp"} {
			t.Run(name+", "+backend, func(t *testing.T) {
				t.Parallel()
				g := startGraphiti(t, graphititest.Options{MCP: graphititest.Today})
				w := start(t, t.TempDir(), map[string]string{
					"memory.endpoint": g.URL(), "memory.consent": "true", "memory.backend": backend,
					"identity.owner": "user:josh", "identity.group_ids": "raw",
				})
				w.ask("s1", user("My cat is called Miso."))
				w.ask("s2", user("My dog is called Rex."))
				w.delivered(2)
				settled(t, g)
				for _, c := range []graphititest.Call{graphititest.Healthcheck, graphititest.Forget, graphititest.Episodes, graphititest.Search, graphititest.Messages, "POST /mcp"} {
					g.Always(c, fault)
				}
				timed := func(what string, f func()) {
					t.Helper()
					begun := time.Now()
					f()
					took := time.Since(begun)
					t.Logf("%s: %v", what, took.Round(time.Millisecond))
					if took > 2*time.Second+helptest.Patience/20 {
						t.Errorf("%s took %v, want 2s", what, took)
					}
				}
				left := "deleted here"
				timed("session", func() {
					if _, answer := w.asks("", "memory/forget", m{"group": "user_josh", "session": "s1"}); fault != nil && (!strings.Contains(answer, `"withdrawn": 1`) || !strings.Contains(answer, left)) || fault == nil && strings.Contains(answer, "withdrawn") {
						t.Errorf("the API says %s", answer)
					}
				})
				if saw := w.ask("s3", user("What is my cat called?")); strings.Contains(saw, "“My cat is called Miso") {
					t.Errorf("the model saw %s", saw)
				}
				timed("group", func() {
					if _, err := w.cli("memory", "forget", "--user", "josh", "--yes"); fault != nil && (err == nil || !strings.Contains(err.Error(), left)) {
						t.Errorf("the command says %v", err)
					}
				})
				if saw := w.ask("s4", user("What is my dog called?")); strings.Contains(saw, "Rex") {
					t.Errorf("the model saw %s", saw)
				}
			})
		}
	}
}

// TestForgetWhileTheModelRefuses checks a forget while Graphiti's model refuses, which over REST ends the
// worker. The command returns in seconds. A message that Graphiti shows is deleted; one that it may still
// get is reported with the reason and the remedy, by the status too. The conversation with a block of it
// says so in its header. Graphiti gets no message but the person's, and the rest follows once the model works.
func TestForgetWhileTheModelRefuses(t *testing.T) {
	t.Parallel()
	for backend, remedy := range map[string]string{"graphiti": "then restart Graphiti", "graphiti-mcp": "raise the limits of Graphiti's model account"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			o := map[string]graphititest.Options{"graphiti-mcp": {MCP: graphititest.Today}}[backend]
			g := startGraphiti(t, o)
			w := start(t, t.TempDir(), map[string]string{
				"memory.endpoint": g.URL(), "memory.consent": "true", "memory.backend": backend,
				"identity.owner": "user:josh", "identity.group_ids": "raw", "ingest.stall_after": "1s",
			})
			w.ask("s1", user("My cat is called Miso."))
			w.delivered(1)
			g.BreakModel("Error code: 429 - rate limited")
			w.ask("s2", user("My dog is called Rex."))
			asked := user("What is my dog called?")
			waitUntil(t, "the reason", func() bool { return w.app.memory().queue().Pending > 0 && strings.Contains(w.status(), remedy) })
			if saw := w.ask("s3", asked); !strings.Contains(saw, "Rex") {
				t.Fatal("it is not known to begin with")
			}
			for _, session := range []string{"s1", "s2"} {
				begun := time.Now()
				_, err := w.cli("memory", "forget", "--session", session, "--yes")
				if took := time.Since(begun); took > 2*time.Second+helptest.Patience/20 {
					t.Errorf("forget %s took %v, want 2s", session, took)
				}
				if says, status := fmt.Sprint(err), w.status(); !strings.Contains(says, "deleted here") || !strings.Contains(says, remedy) || !strings.Contains(status, remedy) || !strings.Contains(status, "still be in Graphiti") {
					t.Errorf("forget %s: %s\nand the status\n%s\nwant both with %q", session, says, status, remedy)
				}
			}
			waitUntil(t, "the deletion", func() bool { return !strings.Contains(fmt.Sprint(g.Episodes("user_josh")), "Miso") })
			if _, header := w.exchange("/v1/chat/completions", chat(asked, answered("I see."), user("And again?")), "X-Graphiti-Session", "s3"); !strings.Contains(header.Get("X-Graphiti-Memory"), "reason=forgotten") {
				t.Errorf("header %v", header)
			}
			if g.BreakModel(""); backend == "graphiti" {
				g.Restart()
			}
			w.ask("s4", user("My bird is called Bo."))
			waitUntil(t, "the rest", func() bool {
				held := fmt.Sprint(g.Episodes("user_josh"))
				return strings.Contains(held, "Bo.") && !strings.Contains(held, "Rex.") && !strings.Contains(w.status(), "still be in Graphiti")
			})
			for _, r := range g.Requests() {
				if body := string(r.Body); (r.Call == graphititest.Messages || r.Call == graphititest.Tool("add_memory")) && !strings.Contains(body, "is called") {
					t.Errorf("Graphiti got %s", body)
				}
			}
		})
	}
}

// TestForgottenSessionIsNamed checks that the command names the session in each group whose entities may
// remain.
func TestForgottenSessionIsNamed(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw"})
	w.ask("s1", user("My cat is called Miso."))
	w.delivered(1)
	settled(t, g)
	dir := t.TempDir()
	_, says, err := commandIn(t, dir, dir, "memory", "forget", "--session", "s1", "--yes", "--wait", "--set", "admin.listen="+w.app.admin.Addr().String())
	if err != nil || strings.Count(says, "s1 are deleted") != 2 {
		t.Errorf("got %q, %v, want s1 in both groups", says, err)
	}
}
