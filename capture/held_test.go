package capture

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TestTurnInDoubt: a turn in doubt is on disk only, also over a restart, until its session
// shows whether it is a turn.
func TestTurnInDoubt(t *testing.T) {
	root := dialect.Root("", "ann")
	asked := root.Link(dialect.RoleUser, []byte("Hi."))
	before := asked.Link(dialect.RoleAssistant, []byte("Hello."))
	with := before.Link(dialect.RoleUser, []byte("Write a title."))
	elsewhere := root.Link(dialect.RoleUser, []byte("Something else."))
	for _, tc := range []struct {
		name    string
		history []dialect.Fingerprint // of the session's next turn; nil if there is none
		doubt   bool                  // that turn is in doubt, too
		wait    time.Duration
		forget  bool
		kept    bool
		held    bool
	}{
		{"waits", nil, false, holdFor - time.Minute, false, false, true},
		{"waits no longer", nil, false, holdFor + time.Minute, false, true, false},
		{"its session continues with it", []dialect.Fingerprint{asked, before, with, with.Link(dialect.RoleAssistant, []byte("A talk"))}, false, 0, false, true, false},
		{"its session continues without it", []dialect.Fingerprint{asked, before}, false, 0, false, false, false},
		{"a turn in doubt continues with it", []dialect.Fingerprint{asked, before, with}, true, 0, false, true, false},
		{"a turn in doubt continues without it", []dialect.Fingerprint{asked, before}, true, 0, false, false, true},
		{"its session has another history", []dialect.Fingerprint{elsewhere}, false, 0, false, false, true},
		{"it is forgotten", nil, false, holdFor + time.Minute, true, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "memory.db")
			p, e := embeddedPipeline(t, path)
			tn := turn("1", "g")
			tn.Session = "session:s"
			for range 2 { // a retry
				if f, err := p.Hold(t.Context(), tn, graphiti.HeldDoubt, before, with); err != nil || f.Name != graphiti.FateHeld || f.Until.IsZero() {
					t.Fatalf("Hold = %v, %v, want a held turn", f, err)
				}
			}
			isHeld(t, e, "g", nil)
			stop(t, p)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			p, e = embeddedPipeline(t, path)
			if n := p.Holds(tn.Session); n != 1 {
				t.Fatalf("Holds = %d after a restart, want 1", n)
			}
			if tc.forget {
				forget(t, p, ledger.Part{Group: "g"})
			}
			if tc.history != nil {
				p.GoesOn(tn.Session, tc.history, !tc.doubt)
			}
			p.settleDoubts(time.Now().Add(tc.wait))
			var want []string
			if tc.kept {
				want = []string{tn.User}
			}
			waitFor(t, "the verdict", func() bool { return len(heldBy(t, e, "g")) == len(want) && isInDoubt(t, e) == tc.held })
			isHeld(t, e, "g", want)
		})
	}
}

// isInDoubt reports whether a ledger has a turn in doubt.
func isInDoubt(t *testing.T, e *embedded.Store) (found bool) {
	t.Helper()
	err := e.Ledger(nil).EachHeld("", func(*ledger.Held) error {
		found = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
