package capture

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// idle runs f with an Idle of two minutes, and returns what was kept.
func idle(t *testing.T, f func(*Idle)) (kept []ledger.Turn) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		d := NewIdle(2*time.Minute, func(_ context.Context, t ledger.Turn) error {
			kept = append(kept, t)
			return nil
		}, slog.New(slog.DiscardHandler))
		f(d)
		synctest.Wait()
		d.Close()
	})
	return kept
}

var openTurnOf = ledger.Turn{ID: "1", User: "please read the files of my project", Assistant: "I shall read them now."}

func TestAbandonedToolLoopIsKept(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func(*Idle)
		want []string // the assistant's texts
	}{
		{"after a while", func(d *Idle) { d.Hold(openTurnOf); time.Sleep(3 * time.Minute); d.End(&openTurnOf) }, []string{"I shall read them now."}},
		{"not before", func(d *Idle) { d.Hold(openTurnOf); time.Sleep(time.Minute); d.End(&openTurnOf) }, nil},
		{"rounds add up", func(d *Idle) {
			d.Hold(openTurnOf)
			time.Sleep(time.Minute)
			more := openTurnOf
			more.Assistant = "One is missing."
			d.Hold(more)
			time.Sleep(100 * time.Second)
			more.Assistant = ""
			d.Hold(more)
			time.Sleep(3 * time.Minute)
		}, []string{"I shall read them now.\n\nOne is missing."}},
		{"not while a round is going on", func(d *Idle) {
			d.Hold(openTurnOf)
			d.Busy(&openTurnOf)
			time.Sleep(9 * time.Minute)
			d.End(&openTurnOf)
		}, nil},
		{"a round that came to nothing", func(d *Idle) {
			d.Hold(openTurnOf)
			d.Busy(&openTurnOf)
			d.Free(&openTurnOf)
			time.Sleep(3 * time.Minute)
			d.End(&openTurnOf)
		}, []string{"I shall read them now."}},
		{"too short to be worth it", func(d *Idle) {
			d.Hold(ledger.Turn{ID: "1", User: "list", Assistant: "Let me look."})
			time.Sleep(3 * time.Minute)
		}, nil},
		{"at the end of the process", func(d *Idle) { d.Hold(openTurnOf) }, []string{"I shall read them now."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, k := range idle(t, tc.f) {
				if !k.Open {
					t.Error("not marked as open")
				}
				got = append(got, k.Assistant)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOpenTurnsAreBounded: the oldest are kept at once, before another moment
// has passed.
func TestOpenTurnsAreBounded(t *testing.T) {
	var kept []ledger.Turn
	d := NewIdle(time.Hour, func(_ context.Context, t ledger.Turn) error {
		kept = append(kept, t)
		return nil
	}, slog.New(slog.DiscardHandler))
	long := strings.Repeat("x", maxOpenBytes/4)
	for i := range 6 {
		d.Hold(ledger.Turn{ID: string(rune('a' + i)), User: long})
	}
	if len(kept) != 2 || kept[0].ID != "a" || kept[1].ID != "b" || !kept[0].Open {
		t.Errorf("%d turns were kept because of their size", len(kept))
	}
	d.Hold(ledger.Turn{ID: "c", Assistant: long}) // one of those that are held grows
	if len(kept) != 3 || kept[2].ID != "d" {
		t.Errorf("%d turns were kept because one grew", len(kept))
	}
	for _, id := range []string{"c", "e", "f"} {
		d.End(&ledger.Turn{ID: id})
	}
	kept = nil
	for i := range maxOpen + 3 {
		d.Hold(ledger.Turn{ID: fmt.Sprint(i), User: strings.Repeat("x", minOpen)})
	}
	if len(kept) != 3 || kept[0].ID != "0" {
		t.Errorf("%d turns were kept because of their number", len(kept))
	}
	for i := range maxOpen + 3 {
		d.End(&ledger.Turn{ID: fmt.Sprint(i)})
	}
	d.Close()
	if len(kept) != 3 {
		t.Errorf("%d turns were kept, though they ended", len(kept)-3)
	}
}

// TestWhenATurnBegan is known as long as it goes on, also when what there was
// of it has been kept since.
func TestWhenATurnBegan(t *testing.T) {
	said := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	kept := idle(t, func(d *Idle) {
		is := func(when string, want time.Time) {
			t.Helper()
			if got := d.Began(&openTurnOf); !got.Equal(want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		is("not heard of", time.Time{})
		for range 2 {
			one := openTurnOf
			one.Said = said
			d.Hold(one)
			is("in a round", said)
			one.Said = said.Add(time.Minute)
			d.Hold(one)
			is("in the next", said)
			time.Sleep(3 * time.Minute)
			is("after it was kept", said)
			one.Said = said.Add(5 * time.Minute)
			d.Hold(one)
			is("when it goes on", said)
			d.End(&openTurnOf)
			is("at its end", said)
		}
	})
	for _, k := range kept {
		if !k.Said.Equal(said) {
			t.Errorf("kept as said at %v", k.Said)
		}
	}
	if len(kept) != 2 {
		t.Errorf("%d turns were kept", len(kept))
	}
}

// TestOpenTurnsOfTwoAgents: the same turn of one session, for groups of their
// own, is two.
func TestOpenTurnsOfTwoAgents(t *testing.T) {
	kept := idle(t, func(d *Idle) {
		for _, agent := range []string{"ava", "bob"} {
			one := openTurnOf
			one.Targets = []graphiti.Target{{Group: "person"}, {Group: agent}}
			d.Hold(one)
			if agent == "ava" {
				continue
			}
			d.End(&one)
		}
	})
	if len(kept) != 1 || kept[0].Targets[1].Group != "ava" || kept[0].Assistant != openTurnOf.Assistant {
		t.Errorf("%+v", kept)
	}
}

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
			tn.ID, tn.Open, tn.Earlier = id, false, true
			if n, err := p.AddAll(context.Background(), []ledger.Turn{tn}); n != 0 || err != nil {
				t.Errorf("delivered %t: %q is kept again: %d, %v", delivered, tn.Assistant, n, err)
			}
		}
	}
}

// TestSourceOfATurn says no more than was asked for.
func TestSourceOfATurn(t *testing.T) {
	tn := ledger.Turn{Client: `co"dex`, Git: ledger.Git{Branch: "main", Commit: "abc", Dirty: true}}
	if got, want := sourceOf(&tn, graphiti.ScopeWorkspace), `{"source":"graphiti-proxy","scope":"workspace","client":"co\"dex","git":{"branch":"main","commit":"abc","dirty":true}}`; got != want {
		t.Errorf("%s", got)
	}
	tn = ledger.Turn{ID: "1", Assistant: "Done.", Tools: "read_file ×2"}
	got := messagesOf(&tn, graphiti.ScopeUser, 0, 100, time.Now())
	if len(got) != 1 || got[0].Content != "Done.\n(tools used: read_file ×2)" || got[0].SourceDescription != `{"source":"graphiti-proxy","scope":"user"}` {
		t.Errorf("%+v", got)
	}
}
