package capture

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// refusing returns a memory that refuses messages with a word.
func refusing(word string) *fakeMemory {
	return &fakeMemory{fail: func(_ string, messages []graphiti.Row) error {
		for _, m := range messages {
			if strings.Contains(m.Text, word) {
				return &graphiti.StatusError{Code: 422}
			}
		}
		return nil
	}}
}

func sized(id string, bytes int, group string) ledger.Turn {
	tn := turn(id, group)
	tn.User += " " + strings.Repeat("x", bytes)
	return tn
}

// TestLongTurnIsCutBeforeItIsStored checks that the spool stores only the shortened text of
// a long turn, without memory blocks, which is the text the memory receives.
func TestLongTurnIsCutBeforeItIsStored(t *testing.T) {
	m := &fakeMemory{}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options) { o.MaxChars = 100 })
	m.mu.Lock() // blocks delivery
	for i := range 5 {
		add(t, p, turn(fmt.Sprint(i), "a"))
	}
	long := sized("long", 2<<20, "a")
	long.User = "<graphiti_memory>\n" + strings.Repeat("- x\n", 100) + "</graphiti_memory>\n" + long.User
	add(t, p, long)
	st := p.Status()
	m.mu.Unlock()
	if st.Pending != 6 || st.Dropped != 0 {
		t.Errorf("got %+v, want Pending 6, Dropped 0", st)
	}
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 6 })
	want := graphiti.ShortenMiddle("user long "+strings.Repeat("x", 200), truncated, 100)
	if got := m.contents("a"); got[5] != want {
		t.Errorf("got %q, want %q", got[5], want)
	}
}

// TestRestOfATurnIsKnownAgain checks that a turn delivered in two parts is recognized by
// its text when a history brings the whole.
func TestRestOfATurnIsKnownAgain(t *testing.T) {
	m := &fakeMemory{}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m)
	open := turn("1", "a")
	open.Open, open.Assistant = true, "I shall look."
	add(t, p, open)
	waitFor(t, "the beginning", func() bool { return p.Status().Delivered == 1 })
	whole := turn("1", "a")
	whole.Assistant = "It is done."
	add(t, p, whole)
	waitFor(t, "the end", func() bool { return p.Status().Delivered == 2 })
	again := whole
	again.ID, again.Backfill = "another", true
	add(t, p, again)
	waitFor(t, "rest", func() bool { return p.Status().Pending == 0 })
	if diff := cmp.Diff([]string{"user 1", "I shall look.", "It is done."}, m.contents("a")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDroppedTurnsDoNotComeBack checks that a history does not bring back turns that were
// dropped by an operator, even after a restart.
func TestDroppedTurnsDoNotComeBack(t *testing.T) {
	for name, drop := range map[string]func(t *testing.T, p *Pipeline){
		"by an operator": func(t *testing.T, p *Pipeline) {
			waitFor(t, "the refusal", func() bool { return p.Status().Dead == 1 })
			if n, err := p.Drop(nil); n != 1 || err != nil {
				t.Fatalf("got %d turns, %v, want 1 and no error", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spool.db")
			p := pipeline(t, path, refusing("bad"))
			add(t, p, turn("bad", "g"))
			add(t, p, turn("good", "h")) // without it, the memory refuses all
			drop(t, p)
			if st := p.Status(); st.Dropped != 1 {
				t.Fatalf("got %+v, want Dropped 1", st)
			}
			stop(t, p)
			p = pipeline(t, path, &stuck{})
			before := p.Status().Pending
			for _, earlier := range []bool{true, false} {
				again := turn("bad", "g")
				again.Backfill = earlier
				add(t, p, again)
			}
			copied := turn("bad", "g")
			copied.ID, copied.Backfill = "under another key", true
			add(t, p, copied)
			if st := p.Status(); st.Pending != before {
				t.Errorf("got %+v, want Pending %d", st, before)
			}
		})
	}
}

// TestMessagesOfTurn checks that a turn becomes one message, or one per side, and
// none if it has no content.
func TestMessagesOfTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		turn ledger.Turn
		per  Episodes
		want []string
	}{
		"both sides in one":                   {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, []string{"My cat is called Miso.\n(assistant): Noted."}},
		"a message each":                      {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerMessage, []string{"My cat is called Miso.", "Noted."}},
		"with a speaker's name":               {ledger.Turn{Speaker: "josh", User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, []string{"My cat is called Miso.\njosh(assistant): Noted."}},
		"one side":                            {ledger.Turn{User: "My cat is called Miso."}, PerTurn, []string{"My cat is called Miso."}},
		"the rest of a turn":                  {ledger.Turn{Assistant: "Done."}, PerTurn, []string{"Done."}},
		"nobody says anything":                {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerTurn, nil},
		"nor in a message each":               {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerMessage, nil},
		"yes, to a question":                  {ledger.Turn{User: "yes", Assistant: "Noted.", Asked: true}, PerTurn, []string{"yes\n(assistant): Noted."}},
		"nor in whole sentences":              {ledger.Turn{User: "ok thanks", Assistant: "You are welcome."}, PerTurn, nil},
		"nor in German":                       {ledger.Turn{User: "danke!", Assistant: "Gerne."}, PerTurn, nil},
		"the answer to a nod":                 {ledger.Turn{User: "go on", Assistant: "The build fails because Node 18 is missing."}, PerTurn, []string{"go on\n(assistant): The build fails because Node 18 is missing."}},
		"a word that tells":                   {ledger.Turn{User: "Tokyo", Assistant: "Noted."}, PerTurn, []string{"Tokyo\n(assistant): Noted."}},
		"asked and answered of what is known": {ledger.Turn{User: "What is my cat called?", Assistant: "Miso.", Known: true}, PerTurn, nil},
	} {
		tc.turn.ID = "1"
		tc.turn.Said = time.Unix(0, 0)
		var got []string
		var messages []graphiti.Row
		if worthCopy(&tc.turn) {
			messages = messagesOf(&tc.turn, graphiti.ScopeUser, 1000, time.Now())
		}
		for _, m := range episodesOf(messages, tc.per) {
			got = append(got, m.Text)
			if sides := m.Sides(); tc.per == PerTurn && tc.turn.Kind == "" && tc.turn.User != "" && tc.turn.Assistant != "" && (len(sides) != 2 || sides[0].Text != tc.turn.User || sides[1].Text != tc.turn.Assistant) {
				t.Errorf("%s: read back as %+v", name, sides)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestShortenedTurnIsRecognized checks that a shortened turn is recognized by its full text
// before, during and after delivery, even if an older version stored it uncut.
func TestShortenedTurnIsRecognized(t *testing.T) {
	m := &fakeMemory{}
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, m) // like an older version, which did not cut long turns
	same := func(id string, end string) ledger.Turn {
		tn := turn(id, "a")
		tn.User, tn.Backfill = end+strings.Repeat(" the same", 50), true
		return tn
	}
	add(t, p, same("1", "otter"))
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 1 })
	stop(t, p)
	p = pipeline(t, path, m, func(o *Options) { o.MaxChars = 100 })
	add(t, p, same("again 1", "otter"))
	m.mu.Lock()
	add(t, p, same("2", "heron"))
	add(t, p, same("again 2", "heron"))
	if st := p.Status(); st.Pending != 1 {
		t.Errorf("got %+v, want Pending 1", st)
	}
	m.mu.Unlock()
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 2 })
	add(t, p, same("2 again", "heron"))
	waitFor(t, "rest", func() bool { return p.Status().Pending == 0 })
	if got := m.contents("a"); len(got) != 2 {
		t.Errorf("%d turns: %q", len(got), got)
	}
	other := same("3", "heron")
	other.User += ", but for its end"
	add(t, p, other)
	waitFor(t, "another", func() bool { return p.Status().Delivered == 3 })
}
