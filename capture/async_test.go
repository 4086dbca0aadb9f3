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
	return &fakeMemory{fail: func(string, []graphiti.Message) error { return errors.New("down") }}
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
		tn.Earlier = true
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
		t.Errorf("%+v", s)
	}
	// The next process is told the same again.
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
	full := []batch{{bytes: -backfillBytes}, {bytes: -noteBytes, note: true}} // as if so much were being stored
	p.async.over(full)
	one, two := earlier(1, 3), earlier(2, 1)
	p.Backfill(History{Turns: one})
	if p.AddAsync([]ledger.Turn{turn("1", "g")}) {
		t.Error("a note is taken for which there is no room")
	}
	if s := p.Status(); knows(p, one) != 0 || s.LeftOut != 3 {
		t.Errorf("%d are known, %+v", knows(p, one), s)
	}
	for i := range full {
		full[i].bytes = -full[i].bytes
	}
	p.async.over(full)
	p.Backfill(History{Turns: one})
	if !p.AddAsync([]ledger.Turn{turn("1", "g")}) {
		t.Error("a note is not taken")
	}
	stop(t, p)
	p.Backfill(History{Turns: two}) // the process ends
	if s := p.Status(); knows(p, one) != 3 || knows(p, two) != 0 || s.LeftOut != 3 || s.Pending != 4 {
		t.Errorf("%+v", s)
	}
}

// TestHistoryThatCannotBeStored is not known: the next request brings it again.
func TestHistoryThatCannotBeStored(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	file, ok := p.spool.(*ledger.Ledger)
	if !ok {
		t.Skip("there is another spool to store them in")
	}
	_ = file.Close()
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
		t.Errorf("%+v", s)
	}
}

// TestTurnsThatWait are bounded by what was said in them, notes apart from
// histories, and handed out in their order, the notes first, as many as go into
// one write.
func TestTurnsThatWait(t *testing.T) {
	w := newAsyncWriter()
	put := func(id string, turns, bytes int, want bool) {
		t.Helper()
		list := slices.Repeat([]ledger.Turn{{ID: id, User: strings.Repeat("x", bytes-turnBytes)}}, turns)
		if got := w.put(batch{History: History{Turns: list}, note: strings.HasPrefix(id, "note")}); got != want {
			t.Errorf("%s: taken %v", id, got)
		}
	}
	const tenth = noteBytes / 10
	put("note larger than all there is room for", 1, 20*tenth, true)
	put("note beside it", 1, turnBytes, false)
	put("history", 1, backfillBytes, true)
	put("history beside it", 1, turnBytes, false)
	if list := w.take(); len(list) != 1 || !list[0].note {
		t.Errorf("%d batches", len(list))
	} else {
		w.over(list)
	}
	w.over(w.take())
	put("note a", 5, tenth, true)
	put("note b", 1, 4*tenth, true)
	put("note too many", 2, tenth, false)
	first := w.take()
	put("note while the others are being stored", 2, tenth, false)
	w.over(first)
	put("note c", 2, tenth, true)
	if len(first) != 2 || first[0].Turns[0].ID != "note a" || first[1].Turns[0].ID != "note b" {
		t.Errorf("%d batches", len(first))
	}
	if w.close() {
		t.Error("closed, though something waits")
	}
	w.over(w.take())
	if w.bytes[true] != 0 || w.bytes[false] != 0 || len(w.take()) != 0 || !w.close() {
		t.Errorf("%v bytes", w.bytes)
	}
	put("after the end", 1, turnBytes, false)
	w = newAsyncWriter()
	for range 3 {
		put("many", batchTurns/2+1, turnBytes, true)
	}
	if n := len(w.take()); n != 2 {
		t.Errorf("%d batches in one write", n)
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
	got, err := p.spool.Whole(t.Context(), []ledger.Turn{
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
		t.Errorf("%+v", s)
	}
}
