package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestWhatIsFoundThoughNotListedIsThere: the server lists nothing of a group
// that another data_dir wrote, and a search finds something in it. No command
// calls that empty, and forget deletes it.
func TestWhatIsFoundThoughNotListedIsThere(t *testing.T) {
	t.Parallel()
	g, err := graphititest.Start(graphititest.Options{MCP: graphititest.Today})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	settings := map[string]string{
		"memory.backend": "graphiti-mcp", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw", "recall.cache_ttl": "1s",
	}
	for _, tc := range []struct{ flag, value, group string }{
		{"--user", "josh", "user_josh"},
		{"--group", "user_josh", "user_josh"},
		{"--workspace", "https://github.com/acme/widgets", "workspace_github_repo_github_com_acme_widgets"},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			one := start(t, t.TempDir(), settings)
			question := []string{"What is my cat called?", "X-Graphiti-Session", "s2"}
			told := []string{"My cat is called Miso.", "X-Graphiti-Session", "s1"}
			if tc.flag == "--workspace" {
				in := []string{"X-Graphiti-Workspace", "github_repo:github.com/acme/widgets"}
				question, told = append(question, in...), append(told, in...)
			}
			g.Blind(graphititest.Sees)
			one.say(told[0], told[1:]...)
			one.delivered(1)
			settled(t, g)
			g.Blind(graphititest.BlindListing)
			if _, err := one.cli("memory", "forget", "--yes", "--session", "typo"); err == nil || !strings.Contains(err.Error(), "lists nothing of it") {
				t.Errorf("forget --session, which might be there: %v", err)
			}
			one.stop()

			w := start(t, t.TempDir(), maps.Clone(settings))
			defer w.stop()
			if _, _, saw := w.say(question[0], question[1:]...); !strings.Contains(saw, "Miso") {
				t.Fatal("it is not recalled to begin with")
			}
			w.stop()
			w = start(t, t.TempDir(), maps.Clone(settings)) // which wrote nothing there
			if _, err := w.cli("memory", "export", tc.flag, tc.value); err == nil || !strings.Contains(err.Error(), "is not complete") || !strings.Contains(err.Error(), "lists nothing of it") {
				t.Errorf("export: %v", err)
			}
			if out, err := w.cli("memory", "show", "--json", tc.flag, tc.value); err != nil || !strings.Contains(out, `"unlisted": [`) {
				t.Errorf("show: %s, %v", out, err)
			}
			if out, err := w.cli("memory", "forget", "--yes", tc.flag, tc.value); err != nil {
				t.Errorf("forget: %s, %v", out, err)
			}
			if left := g.Episodes(tc.group); len(left) > 0 {
				t.Errorf("%d episodes are left", len(left))
			}
			if out, err := w.cli("memory", "forget", "--yes", "--group", "another"); err == nil || !strings.Contains(err.Error(), "no memory yet") {
				t.Errorf("an empty one: %s, %v", out, err)
			}
		})
	}
}
