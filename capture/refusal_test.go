package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestOutageIsNoRefusal checks that a wrong endpoint, rejected credentials or another
// message format cost no turn. The status names a remedy, and after the repair each turn
// arrives once.
func TestOutageIsNoRefusal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code   int
		health bool // the health check works meanwhile
		remedy string
	}{
		{405, false, "memory.endpoint"},
		{405, true, "memory.endpoint"},
		{407, true, "NO_PROXY"},
		{403, true, "memory.api_key"},
		{400, true, "memory.endpoint"},
		{422, true, "test-connection"},
		{413, true, "test-connection"},
	} {
		t.Run(fmt.Sprint(tc.code, " ", tc.health), func(t *testing.T) {
			wrong, calls := true, 0
			g := &graph{fails: func(call, _ string) error {
				if calls++; wrong && (call != "health" || !tc.health) {
					return &graphiti.StatusError{Code: tc.code}
				}
				return nil
			}}
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				var turns []ledger.Turn
				for i := range 200 {
					turns = append(turns, spoken(fmt.Sprint(i), fmt.Sprint("g", i%3)))
				}
				must(t, helptest.ErrorOf(p.AddAll(context.Background(), turns)))
				time.Sleep(10 * time.Minute)
				st := p.Status()
				if st.Dead != 0 || st.Pending != 200 || st.Failing == nil || !strings.Contains(st.Remedy, tc.remedy) {
					t.Errorf("got %+v, want Dead 0, Pending 200, Failing set, %q in the remedy", st, tc.remedy)
				}
				g.set(func() {
					if calls > 2000 {
						t.Errorf("%d calls in ten minutes", calls)
					}
					wrong = false
				})
				until(t, "all turns", func() bool { return p.Status().Verified == 200 })
				for i := range 200 {
					if n := g.times(fmt.Sprint("g", i%3), fmt.Sprint(i)); n != 1 {
						t.Errorf("turn %d is there %d times", i, n)
					}
				}
				if st := p.Status(); st.Failing != nil || st.Remedy != "" || st.Dead != 0 {
					t.Errorf("got %+v, want no failure, no remedy, Dead 0", st)
				}
			})
		})
	}
}

// TestRefusedTurnsWaitAgain checks that refused turns wait if the memory refuses all of them, and
// are delivered once it accepts messages.
func TestRefusedTurnsWaitAgain(t *testing.T) {
	m := &fakeMemory{fail: func(string, []graphiti.Row) error { return &graphiti.StatusError{Code: 422} }}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m)
	for i := range 10 {
		add(t, p, turn(fmt.Sprint(i), "g"))
	}
	waitFor(t, "the outage", func() bool { st := p.Status(); return st.Remedy != "" && st.Dead == 0 && st.Pending == 10 })
	m.mu.Lock()
	m.fail = nil
	m.mu.Unlock()
	waitFor(t, "all turns", func() bool { return p.Status().Delivered == 10 })
	if n := len(m.contents("g")); n != 10 {
		t.Errorf("%d turns", n)
	}
}

// TestRefusedWritesAreRare checks that a memory that lists messages and refuses all new ones gets
// few of them, that no log says it works again, and that all turns arrive after the repair.
func TestRefusedWritesAreRare(t *testing.T) {
	t.Parallel()
	wrong, writes := true, 0
	g := &graph{fails: func(call, _ string) error {
		if call != "write" || !wrong {
			return nil
		}
		writes++
		return &graphiti.StatusError{Code: 422}
	}}
	inBubble(t, g, func(t *testing.T, p *Pipeline, log *logged) {
		for i := range 2 {
			add(t, p, spoken(fmt.Sprint(i), "g"))
		}
		time.Sleep(10 * time.Minute)
		if st := p.Status(); st.Failing == nil || st.Dead != 0 {
			t.Errorf("got %+v, want Failing set, Dead 0", st)
		}
		if n := len(log.lines("works again")); n != 0 {
			t.Errorf("the log says %d times that delivery works again", n)
		}
		g.set(func() {
			if writes > 400 {
				t.Errorf("%d writes in ten minutes, want 400 at most", writes)
			}
			wrong = false
		})
		until(t, "both turns", func() bool { return p.Status().Verified == 2 })
		if st := p.Status(); st.Failing != nil {
			t.Errorf("got %+v, want no failure", st)
		}
	})
}
