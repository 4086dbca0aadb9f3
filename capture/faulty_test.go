package capture

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// faulty is a spool whose disk is full at times: a write fails if before returns true, and
// succeeds but reports an error if after does.
type faulty struct {
	ledger.Dispatch
	before, after func(what string, entries []ledger.Entry) bool
}

var errFull = errors.New("the disk is full")

func (f *faulty) try(what string, entries []ledger.Entry, write func() error) error {
	if f.before != nil && f.before(what, entries) {
		return errFull
	}
	err := write()
	if err == nil && f.after != nil && f.after(what, entries) {
		return errFull
	}
	return err
}

func (f *faulty) MarkSent(entries []ledger.Entry) error {
	return f.try("hand over", entries, func() error { return f.Dispatch.MarkSent(entries) })
}

func (f *faulty) Requeue(entries []ledger.Entry, reason string) error {
	return f.try("take back", entries, func() error { return f.Dispatch.Requeue(entries, reason) })
}

func (f *faulty) MarkDead(e *ledger.Entry, reason string) (gone ledger.Size, err error) {
	err = f.try("mark dead", []ledger.Entry{*e}, func() error { gone, err = f.Dispatch.MarkDead(e, reason); return err })
	return gone, err
}

// TestTurnsThatCannotBeNotedAreDelivered checks that each turn arrives once and before the
// next start, although writes to the spool fail or succeed with an error.
func TestTurnsThatCannotBeNotedAreDelivered(t *testing.T) {
	for name, tc := range map[string]struct {
		refused       bool // the call with both turns
		before, after func(what string, entries []ledger.Entry) bool
	}{
		"second half": {refused: true, before: func(what string, e []ledger.Entry) bool { return len(e) == 1 && e[0].Seq == 2 }},
		"hand-over":   {before: func(what string, _ []ledger.Entry) bool { return what == "hand over" }},
		"hand-over that stands": {
			before: func(what string, _ []ledger.Entry) bool { return what == "take back" },
			after:  func(what string, _ []ledger.Entry) bool { return what == "hand over" },
		},
		"all, and it stands": {refused: true, after: func(string, []ledger.Entry) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			var full atomic.Bool
			full.Store(true)
			var calls atomic.Int64
			g := &graph{fails: func(call, _ string) error {
				if call == "write" && calls.Add(1) == 1 && tc.refused {
					return &graphiti.StatusError{Code: 422}
				}
				return nil
			}}
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				now := func(f func(string, []ledger.Entry) bool) func(string, []ledger.Entry) bool {
					return func(what string, e []ledger.Entry) bool { return f != nil && full.Load() && f(what, e) }
				}
				box(p).spool.Dispatch = &faulty{box(p).spool.Dispatch, now(tc.before), now(tc.after)}
				if _, err := p.AddAll(context.Background(), []ledger.Turn{spoken("0", "a"), spoken("1", "a")}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				if p.Status().Verified == 2 {
					t.Error("nothing was in the way")
				}
				full.Store(false)
				until(t, "both turns", func() bool { return p.Status().Verified == 2 })
				for _, id := range []string{"0", "1"} {
					if n := g.times("a", id); n != 1 {
						t.Errorf("turn %s is there %d times", id, n)
					}
				}
				if st := p.Status(); st.Pending != 0 || st.Dead != 0 || st.Lost != 0 {
					t.Errorf("got %+v, want Pending 0, Dead 0, Lost 0", st)
				}
			})
		})
	}
}

// leaves is the context of a caller that gives up after the first check of Err.
type leaves struct {
	context.Context
	asked atomic.Bool
}

func (l *leaves) Done() <-chan struct{} {
	gone := make(chan struct{})
	close(gone)
	return gone
}

func (l *leaves) Err() error {
	if l.asked.Swap(true) {
		return context.Canceled
	}
	return nil
}

// TestTurnWhoseSenderGivesUp checks that Add reports a turn as stored although its caller
// gives up meanwhile. A stored turn that was reported as failed would wait until the next
// start.
func TestTurnWhoseSenderGivesUp(t *testing.T) {
	s := openLedger(t, filepath.Join(t.TempDir(), "spool.db"))
	defer s.Close()
	for i := range 20 {
		all, err := s.Add(&leaves{Context: context.Background()}, []ledger.Turn{turn(fmt.Sprint(i), "a")}, time.Now())
		if err != nil || len(all) != 1 || len(all[0].Groups) != 1 {
			t.Fatalf("turn %d: %+v, %v", i, all, err)
		}
	}
}

// TestLossCountsOnce checks that a loss that cannot be recorded counts once although every
// poll finds it, and that polls become rare.
func TestLossCountsOnce(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	g := &graph{takes: time.Second}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		box(p).spool.Dispatch = &faulty{Dispatch: box(p).spool.Dispatch, before: func(what string, _ []ledger.Entry) bool { return what == "take back" && full.Load() }}
		add(t, p, spoken("lost", "a"))
		time.Sleep(100 * time.Millisecond)
		g.restart()
		add(t, p, spoken("later", "a"))
		time.Sleep(10 * time.Minute)
		g.set(func() {
			if g.looks > 60 {
				t.Errorf("%d looks", g.looks)
			}
		})
		full.Store(false)
		until(t, "both turns", func() bool { return p.Status().Verified == 2 })
		if st := p.Status(); st.Lost != 1 || st.Dead != 0 || g.times("a", "lost") != 1 {
			t.Errorf("got %+v, want Lost 1, Dead 0, and the lost turn sent once", st)
		}
	})
}
