package main

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestWhatIsFoundThoughNotListedIsThere: the server lists nothing of a group that
// another data_dir wrote, and a search finds something in it. Commands say so.
func TestWhatIsFoundThoughNotListedIsThere(t *testing.T) {
	t.Parallel()
	g, err := graphititest.Start(graphititest.Options{MCP: graphititest.Today})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	settings := map[string]string{
		"memory.backend": "graphiti-mcp", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw",
	}
	one := start(t, t.TempDir(), settings)
	one.say(fact)
	one.delivered(1)
	settled(t, g)
	one.stop()
	g.Blind(graphititest.BlindListing)
	w := start(t, t.TempDir(), settings) // which wrote nothing there
	if _, _, saw := w.say(question, "X-Graphiti-Memory", "recall"); !strings.Contains(saw, "Miso") {
		t.Fatal("it is not recalled to begin with")
	}
	if _, err := w.cli("memory", "export"); err == nil || !strings.Contains(err.Error(), "is not complete") || !strings.Contains(err.Error(), "lists nothing of it") {
		t.Errorf("export: %v", err)
	}
	if _, err := w.cli("memory", "list"); err == nil || !strings.Contains(err.Error(), "lists nothing of it") {
		t.Errorf("list: %v", err)
	}
	if out, err := w.cli("memory", "show", "--json"); err != nil || !strings.Contains(out, `"unlisted": [`) {
		t.Errorf("show: %s, %v", out, err)
	}
	if out, err := w.cli("memory", "forget", "--yes"); err != nil || len(g.Episodes("user_josh")) > 0 {
		t.Errorf("forget: %s, %v", out, err)
	}
}
