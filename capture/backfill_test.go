package capture

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// down returns a memory that rejects all writes.
func down() *fakeMemory {
	return &fakeMemory{fail: func(string, []graphiti.Row) error { return errors.New("down") }}
}

// earlier returns the first n turns of a conversation, as a history brings them.
func earlier(conversation, n int) (turns []ledger.Turn) {
	for i := range n {
		tn := spoken(fmt.Sprint(conversation, "-", i), "g")
		tn.Backfill = true
		turns = append(turns, tn)
	}
	return turns
}

// knows returns how many of the turns are known, so that no history need bring them.
func knows(p *Pipeline, turns []ledger.Turn) (n int) {
	for i := range turns {
		if p.Known(keyOf(turns[i].ID)) {
			n++
		}
	}
	return n
}

// TestHistoryThatFindsNoRoom checks that a history for which there is no room is counted as
// left out, stays unknown, and is accepted later.
func TestHistoryThatFindsNoRoom(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	crowd(p, waitingBytes, historyBytes) // simulates full queues
	one, two := earlier(1, 3), earlier(2, 1)
	p.Backfill(History{Turns: one})
	if p.AddAsync([]ledger.Turn{turn("1", "g")}) {
		t.Error("a note is taken for which there is no room")
	}
	if s := p.Status(); knows(p, one) != 0 || s.LeftOut != 3 {
		t.Errorf("%d are known, %+v", knows(p, one), s)
	}
	crowd(p, -waitingBytes, -historyBytes)
	p.Backfill(History{Turns: one})
	if !p.AddAsync([]ledger.Turn{turn("1", "g")}) {
		t.Error("a note is not taken")
	}
	stop(t, p)
	p.Backfill(History{Turns: two}) // the pipeline has stopped
	if s := p.Status(); knows(p, one) != 3 || knows(p, two) != 0 || s.LeftOut != 3 || s.Pending != 4 {
		t.Errorf("got %+v, want LeftOut 3, Pending 4, and the first conversation known only", s)
	}
}

// crowd adds bytes to the sizes of the turns and histories that wait.
func crowd(p *Pipeline, turns, histories int) {
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	p.waiting.bytes += turns
	p.waiting.bytesOfHistory += histories
}

// TestHistoryThatCannotBeStored checks that turns of a history that cannot be stored do not
// stay known, so that the next request brings them again.
func TestHistoryThatCannotBeStored(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	_ = box(p).Close()
	for i := range 2 {
		p.Backfill(History{Turns: earlier(i, 3)})
	}
	waitFor(t, "them to be given back", func() bool { return knows(p, append(earlier(0, 3), earlier(1, 3)...)) == 0 })
}

// TestTurnThatCannotBeStored checks that a turn is known while its answer arrives, and no
// longer if it cannot be stored, so that a history can bring it.
func TestTurnThatCannotBeStored(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	tn := spoken("1", "g")
	p.Begin(tn.ID)
	if !p.Known(keyOf(tn.ID)) || p.Kept(tn.ID, tn.Targets) {
		t.Error("a turn that was begun is not known, or kept")
	}
	stop(t, p)
	if err := p.Add(t.Context(), tn); err == nil || p.Known(keyOf(tn.ID)) {
		t.Errorf("known after all, %v", err)
	}
}

// TestHistoryInDoubt checks that unwanted turns are not stored, and that turns stay unknown
// if the check for wanted turns fails.
func TestHistoryInDoubt(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	var all []ledger.Turn
	for name, wanted := range map[string]func(context.Context, []ledger.Turn, []bool) ([]ledger.Turn, error){
		"wanted": func(_ context.Context, turns []ledger.Turn, _ []bool) ([]ledger.Turn, error) { return turns[1:2], nil },
		"fails": func(context.Context, []ledger.Turn, []bool) ([]ledger.Turn, error) {
			return nil, errors.New("too slow")
		},
		"panics": func(context.Context, []ledger.Turn, []bool) ([]ledger.Turn, error) { panic("boom") },
		"none":   func(context.Context, []ledger.Turn, []bool) ([]ledger.Turn, error) { return nil, nil },
	} {
		turns := earlier(1, 3)
		for i := range turns {
			turns[i].ID = name + turns[i].ID
		}
		all = append(all, turns...)
		p.Backfill(History{Turns: turns, Wanted: wanted})
	}
	stop(t, p)
	for i := range all {
		again := strings.HasPrefix(all[i].ID, "fails") || strings.HasPrefix(all[i].ID, "panics")
		if p.Known(keyOf(all[i].ID)) == again {
			t.Errorf("%s is to be brought again: %v", all[i].ID, again)
		}
	}
	if s := p.Status(); s.Pending != 1 {
		t.Errorf("got %+v, want Pending 1", s)
	}
}

// TestHistoriesThatWait checks that the waiting histories are limited by their size and
// handed out in order.
func TestHistoriesThatWait(t *testing.T) {
	w := waiting{wake: make(chan struct{}, 1)}
	history := func(id string, turns, bytes int) History {
		return History{Turns: slices.Repeat([]ledger.Turn{{ID: id, User: strings.Repeat("x", bytes-turnBytes)}}, turns)}
	}
	put := func(h History, want bool) {
		t.Helper()
		left := w.leftOut
		if got := w.putHistory(h); got != want || !want && w.leftOut != left+len(h.Turns) {
			t.Errorf("%s: taken %v, %d left out", h.Turns[0].ID, got, w.leftOut)
		}
	}
	take := func(want ...string) {
		t.Helper()
		for _, id := range want {
			if h, ok := w.history(); !ok || h.Turns[0].ID != id {
				t.Fatalf("history() = %v, %v, want %s", h, ok, id)
			}
			w.historyDone()
		}
		if _, ok := w.history(); ok {
			t.Error("one more history waits")
		}
	}
	const tenth = historyBytes / 10
	put(history("larger than all there is room for", 1, 20*tenth), true)
	put(history("beside it", 1, turnBytes), false)
	take("larger than all there is room for")
	put(history("a", 5, tenth), true)
	put(history("b", 1, 4*tenth), true)
	put(history("too much", 2, tenth), false)
	take("a", "b")
	if w.bytesOfHistory != 0 {
		t.Error("what is refused, or was recorded, takes room")
	}
}

// TestNotesGoBeforeHistories checks that notes are stored before all waiting histories, and
// that a new turn overtakes the histories but not the notes queued before it.
func TestNotesGoBeforeHistories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, down())
	entered, leave := make(chan struct{}), make(chan struct{})
	p.Backfill(History{Turns: earlier(0, batchTurns), Wanted: func(_ context.Context, turns []ledger.Turn, _ []bool) ([]ledger.Turn, error) {
		close(entered)
		<-leave
		return turns[:1], nil
	}})
	<-entered
	p.Backfill(History{Turns: earlier(1, 1)})
	if !p.AddAsync([]ledger.Turn{turn("note", "g")}) {
		t.Fatal("there is no room for a note")
	}
	if s := p.Status(); s.Pending != 0 || s.InMemory != 1 {
		t.Errorf("got %+v, want Pending 0, InMemory 1", s)
	}
	add(t, p, turn("turn", "g"))
	if !p.AddAsync([]ledger.Turn{turn("another note", "g")}) {
		t.Fatal("there is no room for a note")
	}
	close(leave)
	stop(t, p)
	var order []string
	p = pipeline(t, path, down())
	list, _, err := p.Turns(t.Context(), ledger.ListOptions{Limit: 9, Text: true})
	for _, i := range list {
		order = append(order, i.User)
	}
	if diff := cmp.Diff([]string{"user note", "user turn", "user 0-0", "user another note", "user 1-0"}, order); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
