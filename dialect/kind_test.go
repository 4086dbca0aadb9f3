package dialect_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/responses"
)

// choreFixture is the shape of a request that a client makes for itself, with
// the markers that it is known by and without the rest of its texts.
type choreFixture struct {
	Client string          `json:"client"`
	API    string          `json:"api"` // chat, responses or messages
	Kind   string          `json:"kind"`
	Body   json.RawMessage `json:"body"`
}

var kindNames = map[string]dialect.Kind{"title": dialect.KindTitle, "summary": dialect.KindSummary, "probe": dialect.KindProbe, "machine": dialect.KindMachine, "turn": dialect.KindTurn}

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
	dialects := map[string]dialect.Dialect{"chat": chat.Dialect{}, "responses": responses.Dialect{}, "messages": messages.Dialect{}}
	chores, used := dialect.Chores(), make(map[int]bool)
	for _, f := range fixtures {
		var c dialect.Conversation
		if !dialects[f.API].Parse(f.Body, &c) {
			t.Fatalf("%s: not understood: %s", f.Client, f.Body)
		}
		if c.Kind != kindNames[f.Kind] {
			t.Errorf("%s: kind %d, want %s: %s", f.Client, c.Kind, f.Kind, f.Body)
		}
		for i, one := range chores {
			if c.KindBy(i) == one.Kind && f.Kind != "turn" && strings.HasPrefix(one.Client, f.Client) {
				used[i] = true
			}
		}
	}
	for i, ch := range chores {
		if !used[i] {
			t.Errorf("no fixture for %+v", ch)
		}
		if ch.User == "" {
			continue
		}
		// A person quotes it.
		body, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Why does it say \"" + ch.User + ch.Then + "\"?"}}})
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse(body, &c) || c.Kind != dialect.KindTurn {
			t.Errorf("a person who quotes %q is not heard", ch.User)
		}
	}
}
