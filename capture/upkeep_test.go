package capture

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// imported returns turns of a group as an import adds them, and their texts.
func imported(from, to int, group string) (turns []ledger.Turn, says []string) {
	for i := from; i < to; i++ {
		tn := turn(fmt.Sprint(i), group)
		tn.Standalone = true
		turns, says = append(turns, tn), append(says, tn.User)
	}
	return turns, says
}

// isHeld checks that an embedded memory stores exactly these messages of a group, in order.
func isHeld(t *testing.T, e *embedded.Store, group string, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, heldBy(t, e, group)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", group, diff)
	}
}

// TestTurnsOfTheEmbeddedMemory checks that each message is stored once, although turns
// arrive in parts, repeatedly, and from a client's history.
func TestTurnsOfTheEmbeddedMemory(t *testing.T) {
	p, e := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"))
	begun := said("1", "session:s", "a tool loop", "g", "h")
	begun.Open, begun.Assistant = true, "I shall look."
	add(t, p, begun)
	whole := begun
	whole.Open, whole.Assistant = false, "It is done."
	add(t, p, whole)
	add(t, p, whole)
	for _, id := range []string{"1", "renamed"} { // from a client's history
		whole.ID, whole.Backfill = id, true
		add(t, p, whole)
	}
	cut := said("2", "session:s", "cut off", "g")
	cut.Assistant = "half"
	must(t, p.CutOff(t.Context(), cut))
	cut.Backfill = true
	add(t, p, cut)
	isHeld(t, e, "g", []string{"a tool loop", "I shall look.", "It is done."})
	isHeld(t, e, "h", []string{"a tool loop", "I shall look.", "It is done."})
	cut.Backfill, cut.Assistant = false, "all of it"
	add(t, p, cut)
	isHeld(t, e, "g", []string{"a tool loop", "I shall look.", "It is done.", "cut off", "all of it"})
	if list, err := p.SessionGroups(t.Context(), "session:s"); err != nil || len(list) != 2 {
		t.Errorf("got %+v, %v, want no error, 2 of them", list, err)
	}
}

// TestTurnThatCannotBeWritten checks that a failed write leaves no trace in the memory or
// in the record, so that the same turns can be added later.
func TestTurnThatCannotBeWritten(t *testing.T) {
	e, err := embedded.Open(filepath.Join(t.TempDir(), "memory.db"))
	must(t, err)
	defer e.Close()
	fails := true
	l := e.Ledger(func(tn *ledger.Turn, scope graphiti.Scope) []graphiti.Row {
		if fails && tn.ID == "2" {
			panic("a mistake in the middle of a transaction")
		}
		return messagesOf(tn, scope, 8000, tn.Answered)
	})
	turns, says := imported(0, 4, "g")
	for range 2 {
		if _, err := l.Add(t.Context(), turns, turns[0].Said); (err != nil) != fails {
			t.Error(err)
		}
		if fails {
			isHeld(t, e, "g", nil)
		}
		fails = false
	}
	isHeld(t, e, "g", says)
}

// TestTurnsOfAGroupAtTheSameTime checks that concurrent turns of a group are all stored,
// each once.
func TestTurnsOfAGroupAtTheSameTime(t *testing.T) {
	p, e := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"))
	var adding sync.WaitGroup
	for i := range 200 {
		adding.Go(func() {
			if err := p.Add(t.Context(), turn(fmt.Sprint(i%100), "g")); err != nil {
				t.Error(err)
			}
		})
	}
	adding.Wait()
	if n := len(heldBy(t, e, "g")); n != 100 {
		t.Errorf("the memory has %d of 100 turns", n)
	}
}
