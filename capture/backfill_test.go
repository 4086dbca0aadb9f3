package capture

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// down is a memory that takes nothing.
func down() *fakeMemory {
	return &fakeMemory{fail: func(string, []graphiti.Row) error { return errors.New("down") }}
}

// end stops a pipeline, however long that takes.
func end(t *testing.T, p *Pipeline) {
	t.Helper()
	if err := p.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// earlier are turns from before a conversation was seen.
func earlier(conversation, n int) (turns []ledger.Turn) {
	for i := range n {
		tn := spoken(fmt.Sprint(conversation, "-", i), "g")
		tn.Backfill = true
		turns = append(turns, tn)
	}
	return turns
}

// TestConversationsThatComeBackAtOnce: after a restart all of them bring their
// history, and all of it is stored, also where the process ends right then.
func TestConversationsThatComeBackAtOnce(t *testing.T) {
	const conversations, length = 200, 5
	path := filepath.Join(t.TempDir(), "spool.db")
	more := func(o *Options) { o.MaxTurns, o.MaxBytes = 1<<20, 1<<30 }
	p := pipeline(t, path, down(), more)
	for i := range conversations {
		p.Backfill(History{Turns: earlier(i, length)})
	}
	end(t, p)
	if s := p.Status(); s.Pending != conversations*length || s.LeftOut != 0 {
		t.Errorf("got %+v, want Pending %d, LeftOut 0", s, conversations*length)
	}
	// The next process gets the same history.
	p = pipeline(t, path, down(), more)
	for i := range conversations {
		p.Backfill(History{Turns: earlier(i, length+1)})
	}
	end(t, p)
	if s := p.Status(); s.Pending != conversations*(length+1) || s.LeftOut != 0 {
		t.Errorf("told again: %+v", s)
	}
}

// knows reports which of some turns no history need bring.
func knows(p *Pipeline, turns []ledger.Turn) (n int) {
	for i := range turns {
		if p.Known(keyOf(turns[i].ID)) {
			n++
		}
	}
	return n
}

// TestHistoryThatFindsNoRoom is counted, not known, and taken when there is
// room.
func TestHistoryThatFindsNoRoom(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	crowd(p, waitingBytes, historyBytes) // as if so much were being stored
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
	p.Backfill(History{Turns: two}) // the process ends
	if s := p.Status(); knows(p, one) != 3 || knows(p, two) != 0 || s.LeftOut != 3 || s.Pending != 4 {
		t.Errorf("got %+v, want LeftOut 3, Pending 4, and the first conversation known only", s)
	}
}

// crowd has so many bytes of turns and histories wait.
func crowd(p *Pipeline, turns, histories int) {
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	p.waiting.turns.bytes += turns
	p.waiting.histories.bytes += histories
}

// TestHistoryThatCannotBeStored is not known: the next request brings it again.
func TestHistoryThatCannotBeStored(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	if box(p).replicas != nil {
		t.Skip("there is another spool to store them in")
	}
	_ = box(p).disk.Close()
	for i := range 2 {
		p.Backfill(History{Turns: earlier(i, 3)})
	}
	waitFor(t, "them to be given back", func() bool { return knows(p, append(earlier(0, 3), earlier(1, 3)...)) == 0 })
}

// TestTurnThatCannotBeStored is brought by a history, which nothing else does:
// that its answer was begun here does not matter then.
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

// TestHistoryInDoubt: turns that are not wanted are not stored, and where that
// cannot be known they are brought again.
func TestHistoryInDoubt(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	var all []ledger.Turn
	for name, wanted := range map[string]func(context.Context, []ledger.Turn) ([]ledger.Turn, error){
		"wanted": func(_ context.Context, turns []ledger.Turn) ([]ledger.Turn, error) { return turns[1:2], nil },
		"fails":  func(context.Context, []ledger.Turn) ([]ledger.Turn, error) { return nil, errors.New("too slow") },
		"panics": func(context.Context, []ledger.Turn) ([]ledger.Turn, error) { panic("boom") },
		"none":   func(context.Context, []ledger.Turn) ([]ledger.Turn, error) { return nil, nil },
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

// TestHistoriesThatWait are bounded by what was said in them, and are handed out in
// their order, as many as go into one write.
func TestHistoriesThatWait(t *testing.T) {
	w := newWaiting()
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
		var got []string
		list := w.first(&w.histories)
		for _, h := range list {
			got = append(got, h.Turns[0].ID)
		}
		w.done(&w.histories, list, nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in one write (-want +got):\n%s", diff)
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
	for _, id := range []string{"c", "d", "e"} {
		put(history(id, batchTurns/2+1, turnBytes), true)
	}
	take("c", "d")
	take("e")
	take()
	if w.histories.bytes != 0 || w.histories.turns != 0 {
		t.Error("what is refused, or was recorded, takes room")
	}
}

// TestNotesGoBeforeHistories, however many of those wait, and a turn that comes goes
// before all that waits but the notes, which stand before it.
func TestNotesGoBeforeHistories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, down())
	entered, leave := make(chan struct{}), make(chan struct{})
	p.Backfill(History{Turns: earlier(0, batchTurns), Wanted: func(_ context.Context, turns []ledger.Turn) ([]ledger.Turn, error) {
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

// TestWhatIsKnownIsNotReadAgain: of the turns that a history brings those are
// left out at once that all of their groups have.
func TestWhatIsKnownIsNotReadAgain(t *testing.T) {
	m := &fakeMemory{}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m)
	open := spoken("open", "g")
	open.Open = true
	for _, tn := range []ledger.Turn{spoken("delivered", "g"), open} {
		add(t, p, tn)
	}
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 2 })
	m.mu.Lock()
	m.fail = down().fail
	m.mu.Unlock()
	add(t, p, spoken("waits", "g"))
	got, err := box(p).spool.Whole(t.Context(), []ledger.Turn{
		spoken("delivered", "g"), spoken("waits", "g"), open, spoken("new", "g"), spoken("delivered", "g", "h"), spoken("nowhere"),
	})
	if diff := cmp.Diff([]bool{true, true, false, false, false, false}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	var wg sync.WaitGroup
	for range 4 { // nothing is stored twice, however many ask
		wg.Go(func() {
			if err := p.addUnknown(t.Context(), []ledger.Turn{spoken("delivered", "g"), spoken("waits", "g"), spoken("new", "g")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s := p.Status(); s.Pending != 2 {
		t.Errorf("got %+v, want Pending 2", s)
	}
}
