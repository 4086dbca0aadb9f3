package dialect

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// choreFixture is the shape of a request that a client makes for itself, with
// the markers that it is known by and without the rest of its texts.
type choreFixture struct {
	Client string          `json:"client"`
	API    string          `json:"api"` // chat, responses or messages
	Kind   string          `json:"kind"`
	Body   json.RawMessage `json:"body"`
}

var kindNames = map[string]Kind{"title": KindTitle, "summary": KindSummary, "probe": KindProbe, "machine": KindMachine, "turn": KindTurn}

// TestChores: every rule has a fixture that it recognises, and nothing is
// recognised in what a person says about it.
func TestChores(t *testing.T) {
	raw, err := os.ReadFile("testdata/chores.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixtures []choreFixture
	if err := json.Unmarshal(raw, &fixtures); err != nil {
		t.Fatal(err)
	}
	dialects := map[string]Dialect{"chat": Chat{}, "responses": Responses{}, "messages": Messages{}}
	used := make(map[int]bool)
	for _, f := range fixtures {
		var c Conversation
		if !dialects[f.API].Parse(f.Body, &c) {
			t.Fatalf("%s: not understood: %s", f.Client, f.Body)
		}
		if c.Kind != kindNames[f.Kind] {
			t.Errorf("%s: kind %d, want %s: %s", f.Client, c.Kind, f.Kind, f.Body)
		}
		for i := range chores {
			one := chores[i]
			rest := chores
			chores = []chore{one}
			c.Kind = c.kind()
			chores = rest
			if c.Kind == one.kind && f.Kind != "turn" && strings.HasPrefix(one.client, f.Client) {
				used[i] = true
			}
		}
	}
	for i, ch := range chores {
		if !used[i] {
			t.Errorf("no fixture for %+v", ch)
		}
		if ch.user == "" {
			continue
		}
		// A person quotes it.
		body, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Why does it say \"" + ch.user + ch.then + "\"?"}}})
		var c Conversation
		if !(Chat{}).Parse(body, &c) || c.Kind != KindTurn {
			t.Errorf("a person who quotes %q is not heard", ch.user)
		}
	}
}
