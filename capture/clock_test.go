package capture

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

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
		list, err := s.Next(t.Context(), group, n)
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
