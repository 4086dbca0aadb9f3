package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const someTurns = 64

// direct has a pipeline write straight to the memory.
func direct(o *Options) { o.Direct = o.Memory.Write }

// imported are turns as an import brings them, and what they say.
func imported(from, to int, group string) (turns []ledger.Turn, says []string) {
	for i := from; i < to; i++ {
		tn := turn(fmt.Sprint(i), group)
		tn.Standalone = true
		turns, says = append(turns, tn), append(says, tn.User)
	}
	return turns, says
}

func addAll(t *testing.T, p *Pipeline, turns []ledger.Turn, want int) {
	t.Helper()
	if n, err := p.AddAll(t.Context(), turns); n != want || err != nil {
		t.Errorf("%d of %d turns are new, want %d; %v", n, len(turns), want, err)
	}
}

// TestManyTurnsAreWrittenOnce, also when they come again.
func TestManyTurnsAreWrittenOnce(t *testing.T) {
	m := &fakeMemory{}
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, m, direct)
	turns, says := imported(0, 3*someTurns, "g")
	addAll(t, p, turns, len(turns))
	if p.replicas == nil { // else they wait for who delivers
		if s := p.Status(); s.Delivered != len(turns) || s.Pending != 0 {
			t.Errorf("%+v", s)
		}
	}
	waitFor(t, "all turns", func() bool { return p.Status().Delivered == len(turns) })
	addAll(t, p, turns, 0)
	stop(t, p)
	p = pipeline(t, path, m, direct)
	more, moreSays := imported(2*someTurns, 4*someTurns, "g")
	addAll(t, p, more, someTurns)
	waitFor(t, "the rest", func() bool { return p.Status().Pending == 0 })
	if diff := cmp.Diff(append(says, moreSays[someTurns:]...), m.contents("g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyTurnsWaitForAMemoryThatFails, and for turns that wait before them.
func TestManyTurnsWaitForAMemoryThatFails(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	m := &fakeMemory{fail: func(string, []graphiti.Message) error {
		if fails.Load() {
			return &graphiti.StatusError{Code: 503}
		}
		return nil
	}}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m, direct)
	turns, says := imported(0, 3*someTurns, "g")
	addAll(t, p, turns[:2*someTurns], 2*someTurns)
	if s := p.Status(); s.Pending != 2*someTurns {
		t.Errorf("%+v", s)
	}
	fails.Store(false)
	addAll(t, p, turns[2*someTurns:], someTurns)
	waitFor(t, "all turns", func() bool { return p.Status().Pending == 0 })
	if diff := cmp.Diff(says, m.contents("g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyTurnsThatMayNotBeWritten: a group that is held gets nothing, and one
// that was forgotten gets nothing from before.
func TestManyTurnsThatMayNotBeWritten(t *testing.T) {
	m := &fakeMemory{}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m, direct)
	old, _ := imported(0, 2*someTurns, "forgotten")
	held, says := imported(0, 2*someTurns, "held")
	p.Withhold([]string{"held"})
	addAll(t, p, held, len(held))
	forget(t, p, ledger.Part{Group: "forgotten"})
	addAll(t, p, old, 0)
	for _, g := range []string{"held", "forgotten"} {
		if got := m.contents(g); len(got) > 0 {
			t.Errorf("%s holds %q", g, got)
		}
	}
	p.Withhold(nil)
	waitFor(t, "what was held", func() bool { return slices.Equal(m.contents("held"), says) })
	forget(t, p, ledger.Part{Group: "held"})
	again, says := imported(0, 2*someTurns, "held")
	addAll(t, p, again, len(again))
	waitFor(t, "what was said again", func() bool { return slices.Equal(m.contents("held"), says) })
}

// TestTurnsOfAGroupAtTheSameTime are written straight to the memory, one after
// another: none goes by the ledger because another is being written.
func TestTurnsOfAGroupAtTheSameTime(t *testing.T) {
	m := &fakeMemory{}
	writes, goOn := make(chan int, 2), make(chan struct{})
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options) {
		o.Direct = func(ctx context.Context, group string, messages []graphiti.Message) error {
			writes <- len(messages)
			<-goOn
			return m.Write(ctx, group, messages)
		}
	})
	if p.replicas != nil {
		t.Skip("replicas keep turns elsewhere")
	}
	var adding sync.WaitGroup
	for i := range 2 {
		adding.Go(func() {
			if err := p.Add(t.Context(), turn(fmt.Sprint(i), "g")); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			<-writes
		}
	}
	waitFor(t, "the second turn to wait", func() bool {
		p.inTurn.mu.Lock()
		defer p.inTurn.mu.Unlock()
		return p.inTurn.groups["g"].turns == 2
	})
	close(goOn)
	adding.Wait()
	if n := len(writes); n != 1 {
		t.Errorf("%d of 2 turns were written straight to the memory", 1+n)
	}
	if n := len(m.contents("g")); n != 2 || len(p.inTurn.groups) != 0 {
		t.Errorf("the memory has %d of 2 turns, %d groups are being written to", n, len(p.inTurn.groups))
	}
}
