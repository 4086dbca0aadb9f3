package capture

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
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
		history []dialect.Fingerprint // of the session's next turn, or nil
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
				if f, err := p.Hold(t.Context(), tn, &Doubt{Reason: graphiti.HeldDoubt, Before: before, With: with}); err != nil || f.Name != graphiti.FateHeld || f.Until.IsZero() {
					t.Fatalf("Hold = %v, %v, want a held turn", f, err)
				}
			}
			isHeld(t, e, "g", nil)
			stop(t, p)
			must(t, e.Close())
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

// TestHeldTwins checks which of two held turns with one message is recorded: the one that
// continues, else the one that asks for no data, has no other text, or came last.
func TestHeldTwins(t *testing.T) {
	person := dialect.Root("", "ann")
	twin := func(of dialect.Fingerprint, text string, prompt uint64) Twin {
		return Twin{Of: of, Text: []byte(text), Whole: []byte(text), Prompt: prompt}
	}
	check, form, agent := twin(person, "isitsafemycatismiso", 1), twin(person, "mycatismiso", 2), twin(person, "mycatismiso", 3)
	other, same, next := twin(dialect.Root("", "bob"), "mycatismiso", 4), agent, twin(person, "mycatismiso", 5)
	form.Form = true
	for _, tc := range []struct {
		name   string
		held   []Twin
		report func(p *Pipeline)
		wait   time.Duration
		want   []string // numbers of the turns
		isHeld bool
	}{
		{"alone, at once", []Twin{check}, nil, twinFor / 2, nil, true},
		{"alone", []Twin{check}, nil, twinFor, []string{"0"}, false},
		{"a pair, at once", []Twin{form, agent}, nil, twinFor, nil, true},
		{"a form", []Twin{agent, form}, nil, pairFor, []string{"0"}, false},
		{"a quotation", []Twin{agent, check}, nil, pairFor, []string{"0"}, false},
		{"three", []Twin{check, form, agent}, nil, pairFor, []string{"2"}, false},
		{"the last of two", []Twin{agent, next}, nil, pairFor, []string{"1"}, false},
		{"two people", []Twin{agent, other}, nil, twinFor, []string{"0", "1"}, false},
		{"one prompt", []Twin{agent, same}, nil, twinFor, []string{"0", "1"}, false},
		{"the first goes on", []Twin{form, agent}, func(p *Pipeline) { p.GoesOn("0", []dialect.Fingerprint{{1}}, true) }, 0, []string{"0"}, false},
		{"both go on", []Twin{agent, form}, func(p *Pipeline) {
			p.GoesOn("0", []dialect.Fingerprint{{1}}, true)
			p.GoesOn("1", []dialect.Fingerprint{{2}}, true)
		}, 0, []string{"0"}, false},
		{"a turn begins", []Twin{check}, func(p *Pipeline) { p.Twin(&agent, false) }, pairFor, nil, true},
		{"a turn begins, and its conversation goes on", []Twin{check}, func(p *Pipeline) {
			p.Twin(&agent, false)
			p.Release(context.Background(), &Twin{Of: person, Text: []byte("thankyouverymuch"), Prompt: 3})
		}, pairFor, nil, true},
		{"another message", []Twin{check}, func(p *Pipeline) {
			p.Release(context.Background(), &Twin{Of: person, Text: []byte("thankyouverymuch"), Prompt: 3})
		}, 0, []string{"0"}, false},
		{"a turn is stored", []Twin{check, form}, func(p *Pipeline) { p.Twin(&agent, true) }, 0, nil, false},
		{"a turn of somebody else", []Twin{check}, func(p *Pipeline) { p.Twin(&other, true) }, twinFor, []string{"0"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, e := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"))
			for i, twin := range tc.held {
				tn := turn(strconv.Itoa(i), "g")
				tn.Session, tn.User = strconv.Itoa(i), "My cat is number "+strconv.Itoa(i)
				if f, err := p.Hold(t.Context(), tn, &Doubt{Reason: graphiti.HeldTwin, With: dialect.Fingerprint{byte(i + 1)}, Twin: twin}); err != nil || f.Name != graphiti.FateHeld {
					t.Fatalf("Hold = %v, %v, want a held turn", f, err)
				}
			}
			if tc.report != nil {
				tc.report(p)
			}
			p.settleDoubts(time.Now().Add(tc.wait))
			var want []string
			for _, n := range tc.want {
				want = append(want, "My cat is number "+n)
			}
			waitFor(t, "the verdict", func() bool { return len(heldBy(t, e, "g")) == len(want) && isInDoubt(t, e) == tc.isHeld })
			isHeld(t, e, "g", want)
		})
	}
}

// TestTwinsOfStoredTurns checks which messages are about a turn that is stored.
func TestTwinsOfStoredTurns(t *testing.T) {
	person := dialect.Root("", "ann")
	for _, tc := range []struct {
		name  string
		turn  Twin
		asks  string
		about bool
	}{
		{"the same words", Twin{Text: []byte("mycatismiso")}, "mycatismiso", true},
		{"more words", Twin{Text: []byte("mycatismiso")}, "mycatismisomydogisrex", false},
		{"words of an agent", Twin{Text: []byte("mycatismisopleasewriteitintothereadme"), Tools: true}, "titleformycatismisopleasewriteitinto", true},
		{"the beginning of an agent's words", Twin{Text: []byte("mycatismisopleasewriteitintothereadme"), Tools: true}, "mycatismisopleasewriteit", true},
		{"a message that begins like an agent's", Twin{Text: []byte("mycatismisopleasewriteitintothereadme"), Tools: true}, "mycatismisopleasewriteitonapostcard", false},
		{"the same prompt", Twin{Text: []byte("mycatismiso"), Prompt: 9}, "mycatismiso", false},
	} {
		p, e := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"))
		tc.turn.Of = person
		p.Twin(&tc.turn, true)
		f, err := p.Hold(t.Context(), turn("1", "g"), &Doubt{Reason: graphiti.HeldTwin, Twin: Twin{Of: person, Text: []byte(tc.asks), Whole: []byte(tc.asks), Prompt: 9}})
		if err != nil || (f.Name == graphiti.FateAbout) != tc.about || isInDoubt(t, e) == tc.about {
			t.Errorf("%s: Hold = %v, %v, want a request about the turn: %v", tc.name, f, err, tc.about)
		}
	}
}

// storedMeanwhile is a disk that stores a turn's twin while it stores the held turn.
type storedMeanwhile struct {
	holdStore
	report func()
}

func (d storedMeanwhile) Hold(h *ledger.Held) error {
	d.report()
	return d.holdStore.Hold(h)
}

// TestTwinsOfStoredTurns_Meanwhile checks a message about a turn that is stored while the message
// is written to disk.
func TestTwinsOfStoredTurns_Meanwhile(t *testing.T) {
	t.Parallel()
	p, e := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"))
	stored := Twin{Of: dialect.Root("", "ann"), Text: []byte("mycatismiso"), Prompt: 1}
	p.doubts.disk = storedMeanwhile{p.doubts.disk, func() { p.Twin(&stored, true) }}
	asks := stored
	asks.Whole, asks.Prompt = asks.Text, 2
	must(t, helptest.ErrorOf(p.Hold(t.Context(), turn("1", "g"), &Doubt{Reason: graphiti.HeldTwin, Twin: asks})))
	waitFor(t, "the verdict", func() bool { return !isInDoubt(t, e) })
	isHeld(t, e, "g", nil)
}

// isInDoubt reports whether a ledger has a turn in doubt.
func isInDoubt(t *testing.T, e *embedded.Store) (found bool) {
	t.Helper()
	err := e.Ledger(nil).EachHeld("", func(*ledger.Held) error {
		found = true
		return nil
	})
	must(t, err)
	return found
}

// TestHold_AfterTheNextRequest checks that a history that is held after the next request of its
// conversation is stored, and one of another conversation is not.
func TestHold_AfterTheNextRequest(t *testing.T) {
	t.Parallel()
	p, e := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"))
	t.Cleanup(func() { stop(t, p) })
	with := dialect.Fingerprint{1}
	p.GoesOn("one", []dialect.Fingerprint{{9}, with}, true)
	for _, session := range []string{"one", "two"} {
		tn := turn(session, "g")
		tn.Session = session
		must(t, helptest.ErrorOf(p.Hold(t.Context(), tn, &Doubt{Reason: graphiti.HeldHistory, With: with})))
	}
	waitFor(t, "the verdict", func() bool { return len(heldBy(t, e, "g")) == 1 })
	isHeld(t, e, "g", []string{turn("one", "g").User})
}
