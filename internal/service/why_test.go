package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// why returns a conversation with the decisions of its turns.
func why(t *testing.T, m *servicetest.Fixture, session string) service.Explained {
	t.Helper()
	return run(t, m, service.TurnsOf, service.ConversationRequest{Hash: hashOf(session), Limit: 10})
}

// TestExplain_Block: a turn is shown with its block, and with the source of each line of it.
// Forgotten messages are gone, except from blocks that were sent.
func TestExplain_Block(t *testing.T) {
	t.Parallel()
	bothStates(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		opens(t, m, "", "told", "My cat is called <b>Miso</b>, and she is afraid of the vacuum cleaner.")
		settle()
		opens(t, m, "", "asked", "What is my cat called? My sister Berta asks, who comes on Friday.")
		settle()
		told := why(t, m, "told")
		if len(told.Turns) != 1 || len(told.Turns[0].Messages) != 2 || told.Messages != 2 || !strings.HasPrefix(told.Begins, "My cat is called") || len(told.Memories) != 1 || told.Note != "" {
			t.Fatalf("first conversation = %+v, want one turn of two messages", told)
		}
		cat := told.Turns[0].Messages[0]
		if d := told.Turns[0].Decision; d == nil || d.Block != "" || d.Why == "" || d.Gone {
			t.Errorf("decision of the first turn = %+v, want no block, and why", d)
		}
		asked := why(t, m, "asked")
		d := asked.Turns[0].Decision
		if d == nil || !strings.Contains(d.Block, "Miso") || d.Why != "" || len(d.Pieces) == 0 {
			t.Fatalf("second conversation = %+v, want a block", asked)
		}
		p := d.Pieces[0]
		if p.Verdict != "shown" || !strings.Contains(d.Block, "\n- "+p.Line+"\n") || !strings.Contains(p.Line, "Miso") || !strings.Contains(p.Text, "<b>Miso</b>") || p.Group != servicetest.OwnersGroup || p.Scope != "user" {
			t.Errorf("piece = %+v, want the line of the block and its message", p)
		}
		if p.Turn != told.Turns[0].ID || p.Conversation != told.Hash || p.ID != cat.ID || p.Time == "" {
			t.Errorf("source of the piece = %+v, want %s in %s", p, cat.ID, told.Hash)
		}
		if p.Strength == nil || *p.Strength < 0.25 {
			t.Errorf("strength = %v, want at least 0.25", p.Strength)
		}
		run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: cat.ID}})
		asked = why(t, m, "asked")
		if d := asked.Turns[0].Decision; d == nil || !strings.Contains(d.Block, "Miso") || d.Gone || len(d.Pieces) == 0 || d.Pieces[0].Text != "" || !strings.Contains(asked.Note, "stay unchanged in this conversation") {
			t.Errorf("after the message was forgotten: %+v, %q, want the block without the message", d, asked.Note)
		}
		told = why(t, m, "told")
		if b, _ := json.Marshal(told); strings.Contains(string(b), "Miso") || len(told.Turns[0].Messages) != 1 {
			t.Errorf("first conversation = %s after the message was forgotten, want only the answer", b)
		}
	})
}

// TestExplain_NoBlock: the search results are named, with their strength and the threshold,
// and so are the lines of the card that began the block.
func TestExplain_NoBlock(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	opens(t, m, "", "told", "The spare key of the house lies under the third flower pot on the balcony.")
	run(t, m, service.Promote, service.PromoteRequest{Selector: service.Selector{User: "josh"}, Promotion: service.Promotion{Kind: "preference", Text: "Answer in short sentences"}})
	m.Settle(t)
	opens(t, m, "", "asked", "Which house style does the Python project of Guido use for imports?")
	d := why(t, m, "asked").Turns[0].Decision
	if d == nil || len(d.Pieces) != 2 {
		t.Fatalf("decision = %+v, want two pieces", d)
	}
	card, key := d.Pieces[0], d.Pieces[1]
	if card.Kind != "card" || card.Verdict != "shown" || !strings.Contains(card.Line, "short sentences") {
		t.Errorf("piece = %+v, want the line of the card", card)
	}
	if key.Verdict == "shown" || key.Line != "" || !strings.Contains(key.Text, "flower pot") || key.Strength == nil || *key.Strength >= 0.18 || key.Conversation != hashOf("told") {
		t.Errorf("piece = %+v, want the weak result of the first conversation", key)
	}
	endLine(t, m, service.Selector{User: "josh"}, "Answer in short sentences")
	opens(t, m, "", "again", "Which house style does the Ruby project of Matz use for imports?")
	d = why(t, m, "again").Turns[0].Decision
	if d == nil || d.Block != "" || d.Reason != "weak" || !strings.Contains(d.Why, "the threshold 0.18") || len(d.Pieces) == 0 {
		t.Errorf("decision = %+v, want no block, and the threshold", d)
	}
}
