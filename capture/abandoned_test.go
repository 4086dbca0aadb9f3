package capture

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestEndOfAnAbandonedTurn comes after all: the group gets it, and nothing
// twice, also after a restart.
func TestEndOfAnAbandonedTurn(t *testing.T) {
	m := &fakeMemory{}
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, m)
	open := turn("1", "g")
	open.Open, open.Assistant = true, "I shall look."
	add(t, p, open)
	add(t, p, open)
	waitFor(t, "the beginning", func() bool { return p.Status().Delivered == 1 })
	stop(t, p)
	p = pipeline(t, path, m)
	whole := turn("1", "g")
	whole.Assistant = "It is done."
	add(t, p, open)
	add(t, p, whole)
	waitFor(t, "the end", func() bool { return p.Status().Delivered == 2 })
	stop(t, p)
	p = pipeline(t, path, m)
	add(t, p, whole)
	stop(t, p)
	if diff := cmp.Diff([]string{"user 1", "I shall look.", "It is done."}, m.contents("g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTurnThatIsAbandonedAgain: a loop that went on after it was abandoned, and
// was abandoned again, loses nothing of what was said, over restarts, and its
// end comes once.
func TestTurnThatIsAbandonedAgain(t *testing.T) {
	m := &fakeMemory{}
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, m)
	texts := []string{"I shall look.", "There is more.", "And more.", "It is done."}
	for i, text := range texts {
		tn := turn("1", "g")
		tn.Open, tn.Assistant = i < len(texts)-1, text
		for range 2 { // as of two replicas
			add(t, p, tn)
		}
		waitFor(t, text, func() bool { s := p.Status(); return s.Pending == 0 && s.Delivered >= i+1 })
		stop(t, p)
		p = pipeline(t, path, m)
		add(t, p, tn)
	}
	stop(t, p)
	if diff := cmp.Diff(append([]string{"user 1"}, texts...), m.contents("g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEndOfAnAbandonedTurnIsHeard: a history that shows the turn as a whole, and
// is shorter than it was, brings nothing new.
func TestEndOfAnAbandonedTurnIsHeard(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), &fakeMemory{})
	open, whole := turn("1", "g"), turn("1", "g")
	open.Open, open.Assistant, whole.Assistant = true, "I shall look.", "It is done."
	add(t, p, open)
	add(t, p, whole)
	for _, delivered := range []bool{false, true} {
		if delivered {
			waitFor(t, "delivery", func() bool { return p.Status().Delivered == 2 })
		}
		for id, tn := range map[string]ledger.Turn{"2": whole, "3": open} {
			tn.ID, tn.Open, tn.Backfill = id, false, true
			if n, err := p.AddAll(context.Background(), []ledger.Turn{tn}); n != 0 || err != nil {
				t.Errorf("delivered %t: %q is kept again: %d, %v", delivered, tn.Assistant, n, err)
			}
		}
	}
}

// TestSourceOfATurn says no more than was asked for.
func TestSourceOfATurn(t *testing.T) {
	tn := ledger.Turn{Client: `co"dex`, Git: ledger.Git{Branch: "main", Commit: "abc", Dirty: true}}
	if got, want := sourceOf(&tn, graphiti.ScopeWorkspace, 0), `{"source":"graphiti-proxy","scope":"workspace","client":"co\"dex","git":{"branch":"main","commit":"abc","dirty":true}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	tn = ledger.Turn{ID: "1", Assistant: "Done.", Tools: "read_file ×2"}
	got := messagesOf(&tn, graphiti.ScopeUser, 0, 100, time.Now())
	if len(got) != 1 || got[0].Text != "Done.\n(tools used: read_file ×2)" || got[0].Source != `{"source":"graphiti-proxy","scope":"user"}` {
		t.Errorf("got %+v, want one message with the answer and its tools", got)
	}
}
