package capture

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// refusing returns a memory that refuses messages with a word.
func refusing(word string) *fakeMemory {
	return &fakeMemory{fail: func(_ string, messages []graphiti.Row) error {
		for _, m := range messages {
			if strings.Contains(m.Text, word) {
				return &graphiti.StatusError{Code: 422}
			}
		}
		return nil
	}}
}

func sized(id string, bytes int, group string) ledger.Turn {
	tn := turn(id, group)
	tn.User += " " + strings.Repeat("x", bytes)
	return tn
}

// TestLongTurnIsCutBeforeItIsStored checks that the spool stores only the shortened text of
// a long turn, without memory blocks, which is the text the memory receives.
func TestLongTurnIsCutBeforeItIsStored(t *testing.T) {
	m := &fakeMemory{}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options) { o.MaxChars = 100 })
	m.mu.Lock() // blocks delivery
	for i := range 5 {
		add(t, p, turn(fmt.Sprint(i), "a"))
	}
	long := sized("long", 2<<20, "a")
	long.User = "<graphiti_memory>\n" + strings.Repeat("- x\n", 100) + "</graphiti_memory>\n" + long.User
	add(t, p, long)
	st := p.Status()
	m.mu.Unlock()
	if st.Pending != 6 || st.Dropped != 0 {
		t.Errorf("got %+v, want Pending 6, Dropped 0", st)
	}
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 6 })
	want := graphiti.ShortenMiddle("user long "+strings.Repeat("x", 200), truncated, 100)
	if got := m.contents("a"); got[5] != want {
		t.Errorf("got %q, want %q", got[5], want)
	}
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
// dropped by an operator, even after a restart.
func TestDroppedTurnsDoNotComeBack(t *testing.T) {
	for name, drop := range map[string]func(t *testing.T, p *Pipeline){
		"by an operator": func(t *testing.T, p *Pipeline) {
			waitFor(t, "the refusal", func() bool { return p.Status().Dead == 1 })
			if n, err := p.Drop(nil); n != 1 || err != nil {
				t.Fatalf("got %d turns, %v, want 1 and no error", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spool.db")
			p := pipeline(t, path, refusing("bad"))
			add(t, p, turn("bad", "g"))
			add(t, p, turn("good", "h")) // without it, the memory refuses all
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
