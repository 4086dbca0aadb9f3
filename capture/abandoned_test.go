package capture

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestTurnThatIsAbandonedAgain checks that a tool loop that is resumed and abandoned
// several times delivers each part once, in order and over restarts.
func TestTurnThatIsAbandonedAgain(t *testing.T) {
	m := &fakeMemory{}
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, m)
	texts := []string{"I shall look.", "There is more.", "And more.", "It is done."}
	for i, text := range texts {
		tn := turn("1", "g")
		tn.Open, tn.Assistant = i < len(texts)-1, text
		for range 2 { // as from two replicas
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

// TestEndOfAnAbandonedTurnIsHeard checks that a history that brings an abandoned turn with
// only its first or only its last answer stores nothing.
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

// TestSourceOfATurn checks that the source of a turn contains the known details only, and
// that the work of a turn is a message of its own, in projects only.
func TestSourceOfATurn(t *testing.T) {
	tn := ledger.Turn{Client: `co"dex`, Workspace: "github_repo:github.com/acme/app", Git: ledger.Git{Branch: "main", Commit: "abc", Dirty: true}}
	if got, want := sourceOf(&tn, graphiti.ScopeWorkspace), `{"source":"graphiti-proxy","scope":"workspace","client":"co\"dex","repository":"app","git":{"branch":"main","commit":"abc","dirty":true}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	tn = ledger.Turn{ID: "1", Assistant: "Done."}
	tn.AddWork([]string{`ran "make": failed`, "changed a.go", `ran "make": passed`, `ran "make all": passed`, "changed a.go"})
	got := messagesOf(&tn, graphiti.ScopeWorkspace, 100, time.Now())
	if len(got) != 2 || !graphiti.IsWork(got[1].Name) || !strings.Contains(got[1].Text, "ran \"make\": passed;\nran \"make all\": passed;\nchanged a.go\n") {
		t.Errorf("got %+v, want the answer and the turn's work", got)
	}
	if got := messagesOf(&tn, graphiti.ScopeUser, 100, time.Now()); len(got) != 1 || got[0].Source != `{"source":"graphiti-proxy","scope":"user"}` {
		t.Errorf("got %+v outside projects, want the answer alone", got)
	}
}
