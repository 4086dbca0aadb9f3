package capture

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// shown returns a turn from a client's history.
func shown(id, answer string, groups ...string) ledger.Turn {
	tn := turn(id, groups...)
	tn.User, tn.Assistant, tn.Backfill = "user 1", answer, true
	return tn
}

// kept adds a turn to a pipeline, and returns the number of turns that it stores.
func kept(t *testing.T, p *Pipeline, tn ledger.Turn) int {
	t.Helper()
	n, err := p.AddAll(context.Background(), []ledger.Turn{tn})
	must(t, err)
	return n
}

// TestCutOffAnswers checks that a client's history does not add a turn with a cut-off
// answer, under its own ID or with the same words under another, even after a restart. A
// live answer to the same turn is stored.
func TestCutOffAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, &fakeMemory{})
	cut := spoken("1", "g", "h")
	cut.Assistant = "half, and the token ghp_R4kT9wQz7LmX2vBn8JcY5hDf3GsP6aEu1ToK"
	for range 2 {
		must(t, p.CutOff(context.Background(), cut))
	}
	stop(t, p)
	if err := p.CutOff(context.Background(), cut); err == nil {
		t.Error("noted after the end")
	}
	p = pipeline(t, path, &fakeMemory{})
	for name, tn := range map[string]ledger.Turn{
		"the turn":             shown("1", "half", "g"),
		"the turn, in another": shown("1", "half, and more", "h"),
		"a shortened history":  shown("2", cut.Assistant, "g", "h"),
	} {
		if n := kept(t, p, tn); n != 0 {
			t.Errorf("%s is kept", name)
		}
	}
	for name, tn := range map[string]ledger.Turn{
		"another turn":   shown("3", "all of it", "g"),
		"of another one": shown("1", "half", "i"),
	} {
		if n := kept(t, p, tn); n != 1 {
			t.Errorf("%s is not kept", name)
		}
	}
	again := spoken("1", "g")
	if n := kept(t, p, again); n != 1 {
		t.Error("a turn that was answered again is not kept")
	}
	if err := p.CutOff(context.Background(), cut); err != nil { // regenerated, and cut off again
		t.Fatal(err)
	}
	if n := kept(t, p, again); n != 0 {
		t.Error("a turn is kept twice")
	}
	both := shown("1", again.Assistant, "g", "h")
	if n := kept(t, p, both); n != 0 {
		t.Error("what was cut off is kept")
	}
	waitFor(t, "delivery", func() bool { s := p.Status(); return s.Pending == 0 && s.Delivered == 3 })
}

// TestCutOffOnceAndAnsweredThen checks that a complete answer replaces the record of a
// cut-off one, and that the answer of an abandoned tool loop does not.
func TestCutOffOnceAndAnsweredThen(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), &fakeMemory{})
	must(t, p.CutOff(context.Background(), spoken("1", "g", "h")))
	open := spoken("1", "h")
	open.Open, open.Assistant = true, "I shall look."
	for _, tn := range []ledger.Turn{spoken("1", "g"), open} {
		if kept(t, p, tn) != 1 {
			t.Errorf("not kept: %+v", tn)
		}
	}
	if err := box(p).CutOff(context.Background(), &ledger.Turn{ID: "other"}, time.Now()); err != nil { // without groups
		t.Error(err)
	}
	if n := kept(t, p, shown("1", "the end", "h")); n != 0 {
		t.Error("the end of an abandoned turn whose answer was cut off is kept")
	}
	if n := kept(t, p, spoken("1", "h")); n != 1 {
		t.Error("its true end is not kept")
	}
}
