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
	left := func() { t.Error("earlier turns are left out") }
	for i := range conversations {
		p.AddEarlier(History{Turns: earlier(i, length), Left: left})
	}
	end(t, p)
	if s := p.Status(); s.Pending != conversations*length || s.LeftOut != 0 {
		t.Errorf("%+v", s)
	}
	// The next process is told the same again.
	p = pipeline(t, path, down(), more)
	for i := range conversations {
		p.AddEarlier(History{Turns: earlier(i, length+1), Left: left})
	}
	end(t, p)
	if s := p.Status(); s.Pending != conversations*(length+1) {
		t.Errorf("told again: %+v", s)
	}
}

// TestEarlierTurnsThatFindNoRoom are given back, counted, and taken when there
// is room.
func TestEarlierTurnsThatFindNoRoom(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	p.earlier.over([]batch{{bytes: -earlierBytes}}) // as if so much were being stored
	p.notes.over([]batch{{bytes: -noteBytes}})
	left := 0
	again := func() { left++ }
	p.AddEarlier(History{Turns: earlier(1, 3), Left: again})
	if p.AddLater([]ledger.Turn{turn("1", "g")}) {
		t.Error("a note is taken for which there is no room")
	}
	if s := p.Status(); left != 1 || s.LeftOut != 3 {
		t.Errorf("left %d times, %+v", left, s)
	}
	p.earlier.over([]batch{{bytes: earlierBytes}})
	p.notes.over([]batch{{bytes: noteBytes}})
	p.AddEarlier(History{Turns: earlier(1, 3), Left: again})
	if !p.AddLater([]ledger.Turn{turn("1", "g")}) {
		t.Error("a note is not taken")
	}
	stop(t, p)
	p.AddEarlier(History{Turns: earlier(2, 1), Left: again}) // the process ends
	if s := p.Status(); left != 2 || s.LeftOut != 3 || s.Pending != 4 {
		t.Errorf("left %d times, %+v", left, s)
	}
}

// TestEarlierTurnsThatCannotBeStored are given back.
func TestEarlierTurnsThatCannotBeStored(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	file, ok := p.spool.(*ledger.Ledger)
	if !ok {
		t.Skip("there is another spool to store them in")
	}
	_ = file.Close()
	left := make(chan int, 2)
	for i := range 2 {
		p.AddEarlier(History{Turns: earlier(i, 3), Left: func() { left <- i }})
	}
	if got := []int{<-left, <-left}; got[0] == got[1] {
		t.Errorf("%v", got)
	}
}

// TestEarlierTurnsInDoubt: those that are not wanted are not stored, and where
// that cannot be known all are given back.
func TestEarlierTurnsInDoubt(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), down())
	left := make(chan string, 4)
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
		p.AddEarlier(History{Turns: turns, Wanted: wanted, Left: func() { left <- name }})
	}
	stop(t, p)
	close(left)
	var got []string
	for name := range left {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"fails", "panics"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := p.Status(); s.Pending != 1 {
		t.Errorf("%+v", s)
	}
}

// TestTurnsThatWait are bounded by what was said in them, and handed out in
// their order, as many as go into one write.
func TestTurnsThatWait(t *testing.T) {
	l := later{most: 10 * turnBytes}
	put := func(id string, turns, bytes int, want bool) {
		t.Helper()
		list := slices.Repeat([]ledger.Turn{{ID: id, User: strings.Repeat("x", bytes)}}, turns)
		if got := l.put(History{Turns: list}); got != want {
			t.Errorf("%s: taken %v", id, got)
		}
	}
	put("larger than all there is room for", 1, 20*turnBytes, true)
	put("beside it", 1, 0, false)
	l.over(l.take())
	put("a", 5, 0, true)
	put("b", 1, 3*turnBytes, true)
	put("one too many", 2, 0, false)
	first := l.take()
	put("while the others are being stored", 2, 0, false)
	l.over(first)
	put("c", 2, 0, true)
	if len(first) != 2 || first[0].Turns[0].ID != "a" || first[1].Turns[0].ID != "b" {
		t.Errorf("%+v", first)
	}
	if l.close() {
		t.Error("closed, though something waits")
	}
	l.over(l.take())
	if l.bytes != 0 || len(l.take()) != 0 || !l.close() {
		t.Errorf("%d bytes", l.bytes)
	}
	put("after the end", 1, 0, false)
	l = later{most: 1 << 30}
	for range 3 {
		put("many", laterTurns/2+1, 0, true)
	}
	if n := len(l.take()); n != 2 {
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
			if err := p.storeAll(t.Context(), []ledger.Turn{spoken("delivered", "g"), spoken("waits", "g"), spoken("new", "g")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s := p.Status(); s.Pending != 2 {
		t.Errorf("%+v", s)
	}
}
