package capture

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// TestMemoryWhoseClockIsBehind checks that turns which a memory hides because its clock is
// behind do not count as lost, even if it lists later turns.
func TestMemoryWhoseClockIsBehind(t *testing.T) {
	for _, behind := range []time.Duration{0, 700 * time.Millisecond, 90 * time.Second, time.Hour} {
		t.Run(behind.String(), func(t *testing.T) {
			g := &graph{behind: behind}
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				add(t, p, spoken("first", "a"))
				time.Sleep(200 * time.Millisecond)
				old := spoken("said before", "a")
				old.Said, old.Answered = time.Now().Add(-2*time.Hour), time.Now().Add(-2*time.Hour)
				add(t, p, old)
				until(t, "what is not hidden", func() bool { return p.Status().Verified > 0 })
				time.Sleep(time.Minute)
				add(t, p, spoken("later", "a"))
				until(t, "all turns", func() bool { return p.Status().Verified == 3 })
				for _, id := range []string{"first", "said before", "later"} {
					if n := g.times("a", id); n != 1 {
						t.Errorf("turn %q is there %d times", id, n)
					}
				}
				if st := p.Status(); st.Lost != 0 {
					t.Errorf("got %+v, want Lost 0", st)
				}
				if most := int(behind.Seconds()) + 400; g.looks > most {
					t.Errorf("%d looks, want %d at most, about one in a second", g.looks, most)
				}
			})
		})
	}
}

// TestLossWithSlowClock checks that a loss is found although the memory's clock
// is behind.
func TestLossWithSlowClock(t *testing.T) {
	g := &graph{takes: time.Second, behind: time.Minute}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("lost", "a"))
		time.Sleep(100 * time.Millisecond)
		g.restart()
		add(t, p, spoken("later", "a"))
		until(t, "both", func() bool { return p.Status().Verified == 2 })
		if g.times("a", "lost") != 1 || g.times("a", "later") != 1 || p.Status().Lost != 1 {
			t.Errorf("got %+v, want Lost 1, and each turn of the group sent once", p.Status())
		}
	})
}

// TestCallThatIsAcceptedLate checks that a write which timed out and reaches the memory
// after later writes, as it may through a proxy, does not count as lost.
func TestCallThatIsAcceptedLate(t *testing.T) {
	g := &graph{takes: 10 * time.Millisecond}
	first := true
	g.fails = func(call, group string) error {
		if call != "write" || group != "late" || !first {
			return nil
		}
		first = false
		time.AfterFunc(3*time.Second, func() {
			tn := spoken("1", "late")
			if err := g.Write(context.Background(), "late", messagesOf(&tn, "user", 8000, time.Now())); err != nil {
				t.Error(err)
			}
		})
		return context.DeadlineExceeded
	}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("1", "late"))
		time.Sleep(1100 * time.Millisecond) // until the memory's clock has passed the time of turn 1
		add(t, p, spoken("2", "a"))
		until(t, "both turns", func() bool { return p.Status().Verified == 2 })
		time.Sleep(time.Minute)
		if n := g.times("late", "1"); n != 1 || p.Status().Lost != 0 {
			t.Errorf("it is there %d times; %+v", n, p.Status())
		}
	})
}

// TestOrderOfSendingOutlivesTheProcess checks that sent turns are listed in the order of sending.
func TestOrderOfSendingOutlivesTheProcess(t *testing.T) {
	s := openLedger(t, filepath.Join(t.TempDir(), "spool.db"))
	defer s.Close()
	later := turn("0 later", "a")
	later.Backfill = true
	turns := []ledger.Turn{later, turn("1", "a"), turn("2", "a"), turn("3", "b"), turn("4", "a")}
	if _, err := s.Add(t.Context(), turns, time.Now()); err != nil {
		t.Fatal(err)
	}
	give := func(group string, n int) (list []ledger.Copy) {
		t.Helper()
		list, err := s.Next(t.Context(), group, nil, n)
		if err != nil || len(list) != n {
			t.Fatalf("got %v, %v, want %d of them and no error", list, err, n)
		}
		for i := range list {
			if ok, err := s.MarkSent(&list[i]); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		return list
	}
	first := give("a", 4) // 1, 2, 4 and 0 later
	give("b", 1)
	if err := s.Requeue(&first[0], "lost"); err != nil {
		t.Fatal(err)
	}
	give("", 1)
	list, err := s.Sent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range list {
		ids = append(ids, c.Turn)
	}
	if diff := cmp.Diff([]string{"2", "4", "0 later", "3", "1"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
