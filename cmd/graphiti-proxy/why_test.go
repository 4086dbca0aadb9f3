package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// why asks the admin side about the conversation of a session.
func (w *world) why(session string) (x service.Explained) {
	w.t.Helper()
	in, _ := json.Marshal(m{"hash": graphiti.SessionHash("session:" + session)})
	resp, err := http.Post("http://"+w.app.admin.Addr().String()+"/api/v1/memory/conversation", "application/json", bytes.NewReader(in))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Error string }
	if resp.StatusCode != http.StatusOK {
		_ = json.NewDecoder(resp.Body).Decode(&answer)
		w.t.Fatalf("%s: %s", resp.Status, answer.Error)
	}
	if err := json.NewDecoder(resp.Body).Decode(&x); err != nil {
		w.t.Fatal(err)
	}
	return x
}

// TestWhyDidItSayThat: a turn is shown with its block, and with what each line of it came
// from; one without a block with what was found and why that was not shown. What is
// forgotten is gone, but for the block that was sent with it.
func TestWhyDidItSayThat(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		w := start(t, t.TempDir(), settings)
		w.say("My cat is called <b>Miso</b>, and she is afraid of the vacuum cleaner.", "X-Graphiti-Session", "told")
		w.delivered(1)
		w.say("What is my cat called? My sister Berta asks, who comes on Friday.", "X-Graphiti-Session", "asked")
		w.delivered(2)
		told := w.why("told")
		if len(told.Turns) != 1 || len(told.Turns[0].Messages) != 2 || told.Messages != 2 || !strings.HasPrefix(told.Begins, "My cat is called") || len(told.Memories) != 1 || told.Note != "" {
			t.Fatalf("%+v", told)
		}
		cat := told.Turns[0].Messages[0]
		if d := told.Turns[0].Decision; d == nil || d.Block != "" || d.Why == "" || d.Gone {
			t.Errorf("of the first turn: %+v", d)
		}
		asked := w.why("asked")
		d := asked.Turns[0].Decision
		if d == nil || !strings.Contains(d.Block, "Miso") || d.Why != "" || len(d.Pieces) == 0 {
			t.Fatalf("%+v", asked)
		}
		p := d.Pieces[0]
		if p.Verdict != "shown" || !strings.Contains(d.Block, "\n- "+p.Line+"\n") || !strings.Contains(p.Line, "Miso") || !strings.Contains(p.Text, "<b>Miso</b>") || p.Group != w.group() || p.Scope != "user" {
			t.Errorf("%+v", p)
		}
		if p.Turn != told.Turns[0].ID || p.Conversation != told.Hash || p.ID != cat.ID || p.Time == "" {
			t.Errorf("where it was said: %+v, want %s in %s", p, cat.ID, told.Hash)
		}
		if embedded := settings["memory.backend"] == ""; embedded != (p.Strength != nil) || embedded && *p.Strength < 0.25 {
			t.Errorf("strength: %v", p.Strength)
		}
		if _, err := w.remembers().service.Forget(t.Context(), service.Selector{Message: cat.ID}); err != nil {
			t.Fatal(err)
		}
		asked = w.why("asked")
		if d := asked.Turns[0].Decision; d == nil || !strings.Contains(d.Block, "Miso") || d.Gone || len(d.Pieces) == 0 || d.Pieces[0].Text != "" || !strings.Contains(asked.Note, "stay unchanged in this conversation") {
			t.Errorf("after it was forgotten: %+v, %q", d, asked.Note)
		}
		told = w.why("told")
		if b, _ := json.Marshal(told); strings.Contains(string(b), "Miso") || len(told.Turns[0].Messages) != 1 {
			t.Errorf("what was forgotten is shown: %s", b)
		}
	})
}

// TestWhyDidItSayNothing: what was found is named, with the strength that it had and that
// it lacked, and the card that began the block.
func TestWhyDidItSayNothing(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	w.say("The spare key of the house lies under the third flower pot on the balcony.", "X-Graphiti-Session", "told")
	w.delivered(1)
	if _, err := w.remembers().service.Promote(t.Context(), service.Selector{User: "josh"}, service.Promotion{Kind: "preference", Text: "Answer in short sentences"}); err != nil {
		t.Fatal(err)
	}
	w.say("Which house style does the Python project of Guido use for imports?", "X-Graphiti-Session", "asked")
	w.delivered(3)
	d := w.why("asked").Turns[0].Decision
	if d == nil || len(d.Pieces) != 2 {
		t.Fatalf("%+v", d)
	}
	card, key := d.Pieces[0], d.Pieces[1]
	if card.Kind != "card" || card.Verdict != "shown" || !strings.Contains(card.Line, "short sentences") || !strings.HasSuffix(card.Text, "Answer in short sentences") {
		t.Errorf("%+v", card)
	}
	if key.Verdict == "shown" || key.Line != "" || !strings.Contains(key.Text, "flower pot") || key.Strength == nil || *key.Strength >= 0.18 || key.Conversation != graphiti.SessionHash("session:told") {
		t.Errorf("%+v", key)
	}
	if _, err := w.remembers().service.Forget(t.Context(), service.Selector{User: "josh", Card: card.Text}); err != nil {
		t.Fatal(err)
	}
	w.say("Which house style does the Ruby project of Matz use for imports?", "X-Graphiti-Session", "again")
	w.delivered(4)
	d = w.why("again").Turns[0].Decision
	if d == nil || d.Block != "" || d.Reason != "weak" || !strings.Contains(d.Why, "the threshold 0.18") || len(d.Pieces) == 0 {
		t.Errorf("%+v", d)
	}
	x := w.why("asked")
	if p := x.Turns[0].Decision.Pieces[0]; p.Kind != "card" || p.Text != "" || p.Line == "" || !strings.Contains(x.Note, "without a text") {
		t.Errorf("a line that was taken off the card: %+v, %q", p, x.Note)
	}
}
