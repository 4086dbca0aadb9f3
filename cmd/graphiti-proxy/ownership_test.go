package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

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
