package capture

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

type turns = PendingTurns

// pending runs f with a store that records open turns after two minutes, and returns the
// recorded turns.
func pending(t *testing.T, f func(*turns)) (kept []ledger.Turn) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		d := NewPending(2*time.Minute, func(_ context.Context, t ledger.Turn) error {
			kept = append(kept, t)
			return nil
		}, slog.New(slog.DiscardHandler))
		f(d)
		synctest.Wait()
		d.Close()
	})
	return kept
}

var started = ledger.Turn{ID: "1", User: "please read the files of my project", Assistant: "I shall read them now."}

func TestAbandonedToolLoopIsKept(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func(*turns)
		want []string // recorded answers
	}{
		{"after a while", func(d *turns) { d.Hold(started); time.Sleep(3 * time.Minute); d.End(&started) }, []string{"I shall read them now."}},
		{"not before", func(d *turns) { d.Hold(started); time.Sleep(time.Minute); d.End(&started) }, nil},
		{"rounds add up", func(d *turns) {
			d.Hold(started)
			time.Sleep(time.Minute)
			more := started
			more.Assistant = "One is missing."
			d.Hold(more)
			time.Sleep(100 * time.Second)
			more.Assistant = ""
			d.Hold(more)
			time.Sleep(3 * time.Minute)
		}, []string{"I shall read them now.\n\nOne is missing."}},
		{"not while a round is going on", func(d *turns) {
			d.Hold(started)
			d.Busy(&started)
			time.Sleep(9 * time.Minute)
			d.End(&started)
		}, nil},
		{"a round that came to nothing", func(d *turns) {
			d.Hold(started)
			d.Busy(&started)
			d.Free(&started)
			time.Sleep(3 * time.Minute)
			d.End(&started)
		}, []string{"I shall read them now."}},
		{"too short to be worth it", func(d *turns) {
			d.Hold(ledger.Turn{ID: "1", User: "list", Assistant: "Let me look."})
			time.Sleep(3 * time.Minute)
		}, nil},
		{"at the end of the process", func(d *turns) { d.Hold(started) }, []string{"I shall read them now."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, k := range pending(t, tc.f) {
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

// TestWhenATurnBegan checks that Began returns the time of a turn's first request in all
// its rounds and at its end, even if earlier rounds have been recorded since.
func TestWhenATurnBegan(t *testing.T) {
	said := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	kept := pending(t, func(d *turns) {
		is := func(when string, want time.Time) {
			t.Helper()
			if got, _ := d.Began(&started); !got.Equal(want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		is("not heard of", time.Time{})
		for range 2 {
			one := started
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
			d.End(&started)
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

// TestEvictedTurnIsKept checks that a turn is recorded when another one evicts it.
func TestEvictedTurnIsKept(t *testing.T) {
	kept := pending(t, func(d *turns) {
		d.Hold(started)
		d.Hold(ledger.Turn{ID: "2", Assistant: strings.Repeat("x", maxBytes)})
		if d.bytes != maxBytes || d.turns.Len() != 1 {
			t.Errorf("%d bytes of %d turns, want %d of 1", d.bytes, d.turns.Len(), maxBytes)
		}
	})
	if len(kept) != 2 || kept[0].Assistant != started.Assistant {
		t.Errorf("%d turns are recorded, want 2, the first with %q", len(kept), started.Assistant)
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
