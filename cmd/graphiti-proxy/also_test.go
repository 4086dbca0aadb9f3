package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestAlsoGroups checks that recall.also_groups recalls facts from the groups of
// other clients, once and only in their project, until a reload removes the setting. The
// proxy does not write to those groups, export them or forget them.
func TestAlsoGroups(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	here, other := filepath.Join(project(t), "My App"), project(t)
	if err := os.Mkdir(here, 0o700); err != nil {
		t.Fatal(err)
	}
	const common = "Our staging database is called Bluefin."
	for group, said := range map[string]string{"main": common, "opencode-My_App__main": "The staging database runs in Porto."} {
		body := `{"group_id":"` + group + `","messages":[{"content":"` + said + `","role_type":"user","role":""}]}`
		if resp, err := http.Post(g.URL()+"/messages", "application/json", strings.NewReader(body)); err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusAccepted {
			t.Fatalf("got %v, %v, want 202", resp, err)
		}
	}
	settled(t, g)
	recallOnly := []string{"X-Graphiti-Memory", "recall"}
	settings := map[string]string{
		"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw",
		"recall.also_groups": "main,opencode-{directory}__main",
	}
	w := start(t, t.TempDir(), settings)
	w.say(common)
	w.delivered(1)
	settled(t, g)
	if _, _, saw := w.say(asks, recallOnly...); strings.Count(saw, "Bluefin") != 1 || strings.Contains(saw, "Porto") {
		t.Errorf("without a project: %s", saw)
	}
	if saw, header := w.see(qwen(here, user(asks)), recallOnly...); !strings.Contains(saw[0], "Bluefin") || !strings.Contains(saw[0], "Porto") {
		t.Errorf("in the project: %q, %s", saw, header)
	}
	if saw, header := w.see(qwen(other, user(asks)), recallOnly...); !strings.Contains(saw[0], "Bluefin") || strings.Contains(saw[0], "Porto") {
		t.Errorf("in another: %q, %s", saw, header)
	}
	if out, err := w.cli("memory", "export"); err != nil || strings.Contains(out, "Porto") {
		t.Errorf("export: %s, %v", out, err)
	}
	if out, err := w.cli("memory", "forget", "--yes"); err != nil || len(g.Episodes("user_josh")) > 0 {
		t.Errorf("forget: %s, %v", out, err)
	}
	if len(g.Episodes("main")) != 1 || len(g.Episodes("opencode-My_App__main")) != 1 {
		t.Error("a group of another client changed")
	}
	if _, _, saw := w.say("Which staging database do we have?", recallOnly...); !strings.Contains(saw, "Bluefin") {
		t.Errorf("after the person was forgotten: %s", saw)
	}
	cfg := *w.app.cfg
	cfg.Recall.AlsoGroups = nil
	if waiting, err := w.app.reload(&cfg); err != nil || len(waiting) > 0 {
		t.Fatalf("got %v, %v, want no error, none", waiting, err)
	}
	if _, header, saw := w.say("What is the staging database called, please?", recallOnly...); strings.Contains(saw, "Bluefin") {
		t.Errorf("after a reload: %s, %s", saw, header)
	}
}

// TestProjectInNamedGroup checks that turns of a project are stored in the group
// that the client names if identity.workspace_ids is raw, and that a reload cannot change
// this setting.
func TestProjectInNamedGroup(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{
		"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.workspace_ids": "raw",
	})
	w.say(fact, "X-Graphiti-Workspace", "opencode-app__main")
	w.delivered(1)
	settled(t, g)
	if n := len(g.Episodes("opencode-app__main")); n != 1 {
		t.Errorf("%d episodes", n)
	}
	if _, _, saw := w.say(question, "X-Graphiti-Workspace", "opencode-app__main"); !strings.Contains(saw, "Miso") {
		t.Errorf("recalled: %s", saw)
	}
	cfg := *w.app.cfg
	cfg.Identity.WorkspaceIDs = "canonical"
	if _, err := w.app.reload(&cfg); err == nil || !strings.Contains(err.Error(), "identity.workspace_ids") {
		t.Errorf("a reload: %v", err)
	}
}
