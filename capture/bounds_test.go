package capture

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// refusing returns a memory that refuses messages with a word and is down for all others.
func refusing(word string) *fakeMemory {
	return &fakeMemory{fail: func(_ string, messages []graphiti.Row) error {
		for _, m := range messages {
			if strings.Contains(m.Text, word) {
				return &graphiti.StatusError{Code: 422}
			}
		}
		return errors.New("down")
	}}
}

// left returns the ids of the turns in the spool, in order.
func left(t *testing.T, p *Pipeline) (ids []string) {
	t.Helper()
	list, _, err := p.Turns(context.Background(), ledger.ListOptions{Limit: 1000, Text: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		ids = append(ids, strings.Fields(l.User)[1])
	}
	return ids
}

func sized(id string, bytes int, group string) ledger.Turn {
	tn := turn(id, group)
	tn.User += " " + strings.Repeat("x", bytes)
	return tn
}

// TestDeadTurnsMakeRoomFirst checks that a full spool drops dead turns first, then waiting
// turns, and the oldest first in both cases.
func TestDeadTurnsMakeRoomFirst(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), refusing("bad"), func(o *Options) { o.MaxTurns = 5 })
	add(t, p, turn("first", "a"))
	for i := range 3 {
		add(t, p, sized(fmt.Sprint("bad", i), 1, fmt.Sprint("g", i)))
		waitFor(t, "the refusal", func() bool { return p.Status().Dead == i+1 })
	}
	for i, want := range [][]string{
		{"first", "bad0", "bad1", "bad2", "0"},
		{"first", "bad1", "bad2", "0", "1"},
		{"first", "bad2", "0", "1", "2"},
		{"first", "0", "1", "2", "3"},
		{"0", "1", "2", "3", "4"},
	} {
		add(t, p, turn(fmt.Sprint(i), "a"))
		if diff := cmp.Diff(want, left(t, p)); diff != "" {
			t.Errorf("after %d (-want +got):\n%s", i, diff)
		}
	}
	if st := p.Status(); st.Dropped != 4 || st.Pending != 5 || st.Dead != 0 {
		t.Errorf("got %+v, want Dropped 4, Pending 5, Dead 0", st)
	}
}

// TestSpoolThatHoldsTooManyBytes checks that a large turn drops as many of the oldest turns
// as it needs room for.
func TestSpoolThatHoldsTooManyBytes(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), &stuck{})
	add(t, p, sized("0", 1000, "a"))
	one := p.Status().Bytes
	p.Set(Bounds{MaxTurns: 1000, MaxBytes: 10*one + 50, MaxAge: time.Hour, MaxBatch: 10, MaxChars: 1 << 20, Timeout: time.Second, StallAfter: time.Minute}, false)
	for i := 1; i < 10; i++ {
		add(t, p, sized(fmt.Sprint(i), 1000, "a"))
	}
	if st := p.Status(); st.Pending != 10 || st.Dropped != 0 {
		t.Fatalf("got %+v, want Pending 10, Dropped 0", st)
	}
	add(t, p, sized("large", 4*one, "a"))
	if diff := cmp.Diff([]string{"5", "6", "7", "8", "9", "large"}, left(t, p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if st := p.Status(); st.Pending != 6 || st.Dropped != 5 || st.Bytes > 10*one+50 {
		t.Errorf("%+v, and one has %d bytes", st, one)
	}
}

// TestCutLeavesRoom checks that a cut frees some extra room, so that not every turn added
// to a full spool causes a cut.
func TestCutLeavesRoom(t *testing.T) {
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), &stuck{}, func(o *Options) { o.MaxTurns, o.MaxBytes = 2000, 1<<30 })
	turns := make([]ledger.Turn, 2000)
	for i := range turns {
		turns[i] = turn(fmt.Sprint(i), "a")
	}
	if _, err := p.AddAll(context.Background(), turns); err != nil {
		t.Fatal(err)
	}

	for i, want := range []int{1998, 1999, 2000, 1998} {
		add(t, p, turn(fmt.Sprint("more", i), "a"))
		if st := p.Status(); st.Pending != want {
			t.Errorf("%d wait, want %d", st.Pending, want)
		}
	}
	if st := p.Status(); st.Dropped != 6 {
		t.Errorf("got %+v, want Dropped 6", st)
	}
}

// TestLongTurnIsCutBeforeItIsStored checks that the spool stores only the shortened text of
// a long turn, without memory blocks, which is the text the memory receives.
func TestLongTurnIsCutBeforeItIsStored(t *testing.T) {
	m := &fakeMemory{}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options) { o.MaxChars, o.MaxBytes = 100, 10_000 })
	m.mu.Lock() // blocks delivery
	for i := range 5 {
		add(t, p, turn(fmt.Sprint(i), "a"))
	}
	long := sized("long", 2<<20, "a")
	long.User = "<graphiti_memory>\n" + strings.Repeat("- x\n", 100) + "</graphiti_memory>\n" + long.User
	add(t, p, long)
	st := p.Status()
	m.mu.Unlock()
	if st.Pending != 6 || st.Dropped != 0 || st.Bytes > 6*500 {
		t.Errorf("got %+v, want Pending 6, Dropped 0, Bytes at most 3000", st)
	}
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 6 })
	want := graphiti.ShortenMiddle("user long "+strings.Repeat("x", 200), truncated, 100)
	if got := m.contents("a"); got[5] != want {
		t.Errorf("got %q, want %q", got[5], want)
	}
}

// TestWhatWasCutIsKnownAgain checks that a shortened turn is recognized by its full text
// before, during and after delivery, even if an older version stored it uncut.
func TestWhatWasCutIsKnownAgain(t *testing.T) {
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
// dropped by an operator, by the size limit or by age, even after a restart.
func TestDroppedTurnsDoNotComeBack(t *testing.T) {
	for name, drop := range map[string]func(t *testing.T, p *Pipeline){
		"by an operator": func(t *testing.T, p *Pipeline) {
			waitFor(t, "the refusal", func() bool { return p.Status().Dead == 1 })
			if n, err := p.Drop(nil); n != 1 || err != nil {
				t.Fatalf("got %d turns, %v, want 1 and no error", n, err)
			}
		},
		"too many": func(_ *testing.T, p *Pipeline) {
			b := Bounds{MaxTurns: 1, MaxBytes: 1 << 20, MaxAge: time.Hour, MaxBatch: 10, MaxChars: 8000, Timeout: time.Second, StallAfter: time.Minute}
			p.Set(b, false)
			add(t, p, turn("2", "g"))
		},
		"too old": func(_ *testing.T, p *Pipeline) {

			box(p).upkeepNow(time.Now().Add(2 * time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spool.db")
			p := pipeline(t, path, refusing("bad"))
			add(t, p, turn("bad", "g"))
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

// TestDropsAreLogged checks that drops are logged at most once a minute for each reason,
// with the number of turns dropped since the last line.
func TestDropsAreLogged(t *testing.T) {
	g := &graph{fails: func(call, _ string) error {
		if call == "write" {
			return &graphiti.StatusError{Code: 503}
		}
		return nil
	}}
	var log *logged
	inBubble(t, g, func(t *testing.T, p *Pipeline, l *logged) {
		log = l
		box(p).noteDropped(ledger.Dropped{Dead: ledger.Size{Turns: 1, Bytes: 0}}, "an operator dropped them")
		box(p).mu.Lock()
		box(p).held.Dead = ledger.Size{}
		box(p).mu.Unlock()
		for i := range 25 {
			add(t, p, turn(fmt.Sprint(i), "g"))
		}
		want := func(when string, turns ...string) {
			t.Helper()
			var got []string
			for _, line := range log.lines("the spool is full") {
				_, n, _ := strings.Cut(line, " turns=")
				n, _, _ = strings.Cut(n, " ")
				got = append(got, n)
			}
			if diff := cmp.Diff(turns, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		want("at once", "1")
		time.Sleep(2 * time.Minute)
		want("after a minute", "1", "14")
		add(t, p, turn("more", "g"))
		add(t, p, turn("more still", "g"))
		time.Sleep(2 * time.Minute)
		want("later", "1", "14", "1", "1")
		if n := len(log.lines("an operator")); n != 1 {
			t.Errorf("%d lines", n)
		}
		add(t, p, turn("at last", "g"))
		add(t, p, turn("at the very last", "g"))
	}, func(o *Options) { o.MaxTurns = 10 })
	if n := len(log.lines("the spool is full")); n != 6 {
		t.Errorf("%d lines after the end", n)
	}
}

// TestTurnsThatWaitTooLong checks that turns above the maximum age are dropped, dead ones
// included, and that the drop is logged once.
func TestTurnsThatWaitTooLong(t *testing.T) {
	g := &graph{
		refuses: func(content string) bool { return strings.Contains(content, "bad") },
		fails: func(call, group string) error {
			if call == "write" && group == "down" {
				return &graphiti.StatusError{Code: 500}
			}
			return nil
		},
	}
	inBubble(t, g, func(t *testing.T, p *Pipeline, log *logged) {
		add(t, p, turn("bad", "a"))
		until(t, "the refusal", func() bool { return p.Status().Dead == 1 })
		g.set(func() {
			g.fails = func(call, _ string) error {
				if call == "write" {
					return &graphiti.StatusError{Code: 503}
				}
				return nil
			}
		})
		add(t, p, turn("1", "down"))
		time.Sleep(45 * time.Minute)
		add(t, p, turn("2", "down"))
		if st := p.Status(); st.Pending != 2 || st.Dead != 1 || st.Dropped != 0 {
			t.Fatalf("got %+v, want Pending 2, Dead 1, Dropped 0", st)
		}
		time.Sleep(20 * time.Minute)
		if st := p.Status(); st.Pending != 1 || st.Dead != 0 || st.Dropped != 2 {
			t.Errorf("got %+v, want Pending 1, Dead 0, Dropped 2", st)
		}
		if diff := cmp.Diff([]string{"2"}, left(t, p)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := len(log.lines("ingest.max_age")); n != 1 {
			t.Errorf("got %q, want ingest.max_age named once", log.lines(""))
		}
	}, func(o *Options) { o.MaxAge = time.Hour })
}
