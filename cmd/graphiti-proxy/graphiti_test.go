package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	must(t, os.Mkdir(here, 0o700))
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

// TestOwnershipContext checks that each group gets one statement of its owner, before its
// first turn and despite restarts, and only if the configuration names the person.
func TestOwnershipContext(t *testing.T) {
	t.Parallel()
	const credential = "sk-josh"
	sum := sha256.Sum256([]byte(credential))
	people := filepath.Join(t.TempDir(), "people.yaml")
	writeFile(t, people, "users:\n  - id: josh\n    displayName: Josh Doe\n    identities:\n      github: octocat\n    keys: [\"sha256:"+hex.EncodeToString(sum[:])+"\"]\n")
	for name, tc := range map[string]struct {
		settings map[string]string
		headers  []string
		want     string // the statement in the person's group, or "" for no statement
	}{
		"one person": {map[string]string{"identity.owner": "github_login:octocat"}, nil, "This memory belongs to github_login:octocat. It is about themselves"},
		"a workspace that was claimed": {map[string]string{"identity.owner": "github_login:octocat"}, []string{"X-Graphiti-Workspace", "claimed"},
			"This memory belongs to github_login:octocat. It is about one workspace"},
		"registered": {map[string]string{"identity.mode": "multi", "identity.users_file": people}, []string{"Authorization", "Bearer " + credential}, "This memory belongs to Josh Doe (user:josh). It is about themselves"},
		"a stranger": {map[string]string{"identity.mode": "multi", "identity.users_file": people}, []string{"Authorization", "Bearer sk-other", "X-Graphiti-User", "josh"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGraphiti(t, graphititest.Options{})
			settings := map[string]string{
				"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "ingest.ownership": "true",
			}
			for k, v := range tc.settings {
				settings[k] = v
			}
			dir := t.TempDir()
			var group string
			for i, text := range []string{"first", "second", "third"} {
				w := start(t, dir, settings)
				for _, again := range []string{" thing", " matter"} {
					w.say(text+again, tc.headers...)
				}
				waitUntil(t, "the turns", func() bool { s := w.app.memory().queue(); return s.Pending == 0 && s.Verified >= 2*(i+1) })
				if list, err := w.remembers().pipeline.Owned(context.Background(), ""); err == nil && len(list) == 1 {
					group = list[0].Group
				}
				w.stop()
			}
			var told []string
			episodes := g.Episodes(group)
			for _, e := range episodes {
				if strings.Contains(e.Content, "ownership_context") {
					told = append(told, e.Content)
				}
			}
			switch {
			case tc.want == "" && len(told) > 0:
				t.Errorf("told of somebody who is not known: %q", told)
			case strings.Contains(strings.Join(told, ""), "claimed"):
				t.Errorf("what a request says is told: %q", told)
			case tc.want != "" && (len(told) != 1 || !strings.Contains(told[0], tc.want) || episodes[0].Content != told[0]):
				t.Errorf("%q in %d episodes", told, len(episodes))
			case len(episodes) < 6:
				t.Errorf("%d episodes", len(episodes))
			}
		})
	}
}

// TestFacts_Episode checks that memory facts names the episode of a fact of Graphiti.
func TestFacts_Episode(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw"})
	w.say(fact)
	w.delivered(1)
	waitUntil(t, "the fact with its episode", func() bool {
		out, err := w.cli("memory", "facts")
		return err == nil && strings.Contains(out, "from Graphiti's episode "+g.Episodes("user_josh")[0].UUID)
	})
}
