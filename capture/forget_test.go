package capture

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// forgets is the last generation, which the tests of this package share.
var forgets atomic.Int64

// forget raises the generation of a part by two, as the beginning and the end of a forget
// do, and forgets the part in the pipeline.
func forget(t *testing.T, p *Pipeline, part ledger.Part) {
	t.Helper()
	generation := forgets.Add(2)
	must(t, p.Forget(context.Background(), part, generation))
}

// gone forgets a part, and waits until Graphiti has nothing left of it.
func gone(t *testing.T, p *Pipeline, part ledger.Part) {
	t.Helper()
	forget(t, p, part)
	waitFor(t, "the deletion in Graphiti", func() bool {
		left, err := p.Withdrawn(t.Context(), part.Group, true)
		return left == 0 && err == nil
	})
}

// said returns a turn of a session with a text, from a request that arrives now.
func said(id, session, text string, groups ...string) ledger.Turn {
	tn := turn(id, groups...)
	tn.Session, tn.Owner, tn.User = session, "user:o", text
	return tn
}

// lasts counts the last turns of holds.
var lasts atomic.Int64

// holds adds a last turn, waits for its delivery, and compares the messages delivered
// before.
func holds(t *testing.T, p *Pipeline, m *fakeMemory, group string, want ...string) {
	t.Helper()
	last := said(rand.Text(), "session:last", fmt.Sprint("the last one: ", lasts.Add(1)), group)
	last.Backfill = true
	add(t, p, last)
	waitFor(t, "the last turn", func() bool { return slices.Contains(m.contents(group), last.User) && p.Status().Pending == 0 })
	got := slices.DeleteFunc(m.contents(group), func(s string) bool { return strings.HasPrefix(s, "the last one: ") })
	slices.Sort(got)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: not what was said (-want +got):\n%s", group, diff)
	}
}

// TestOpenTurnsAreForgotten checks that an open turn of a forgotten group is stored neither
// on its timeout nor with its end.
func TestOpenTurnsAreForgotten(t *testing.T) {
	path, m := filepath.Join(t.TempDir(), "spool.db"), &fakeMemory{}
	p := pipeline(t, path, m)
	held := NewPending(time.Hour, p.Add, slog.New(slog.DiscardHandler))
	open, other := said("1", "session:s", "a tool loop under way, with a lot to say about it all", "g"), said("2", "session:t", "another, which is long enough to be worth keeping without its end", "h")
	held.Hold(open)
	held.Hold(other)
	forget(t, p, ledger.Part{Group: "g"})
	ended := open
	ended.Generation, ended.Assistant = forgets.Load(), "the end" // a new request does not know when the turn began
	held.Close()
	add(t, p, ended)
	holds(t, p, m, "g")
	holds(t, p, m, "h", other.User)
}

// TestForgettingASession checks that no turn of a forgotten session stays in the given
// groups of any backend, including accepted turns and those under way, and that turns of
// other sessions stay.
func TestForgettingASession(t *testing.T) {
	type held func(group string) []string
	contents := func(list []graphititest.Episode) (out []string) {
		for _, e := range list {
			out = append(out, e.Content)
		}
		return out
	}
	for name, open := range map[string]func(*testing.T) (Memory, held, func(ledger.Say) *ledger.Ledger){
		"REST": func(t *testing.T) (Memory, held, func(ledger.Say) *ledger.Ledger) {
			g, m := service(t, graphititest.Options{Delay: 5 * time.Millisecond})
			return m, func(group string) []string { settle(t, g); return contents(g.Episodes(group)) }, nil
		},
		"MCP": func(t *testing.T) (Memory, held, func(ledger.Say) *ledger.Ledger) {
			g, m := mcpService(t, graphititest.Options{Delay: 5 * time.Millisecond, MCP: graphititest.Today})
			return m, func(group string) []string { settle(t, g); return contents(g.Episodes(group)) }, nil
		},
		"embedded": func(t *testing.T) (Memory, held, func(ledger.Say) *ledger.Ledger) {
			e, err := embedded.Open(filepath.Join(t.TempDir(), "memory.db"))
			must(t, err)
			t.Cleanup(func() { e.Close() })
			return e.Memory(), func(group string) (out []string) {
				for r, err := range e.Rows(context.Background(), group, graphiti.Filter{Text: true}) {
					must(t, err)
					out = append(out, r.Speaker+"("+string(r.Role)+"): "+r.Text)
				}
				return out
			}, e.Ledger
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, holds, turns := open(t)
			path := filepath.Join(t.TempDir(), "spool.db")
			slow := func(o *Options) {
				if o.Timeout = 5 * time.Second; turns != nil {
					o.Ledger, o.Graph = turns, nil
				}
			}
			p := verifying(t, path, m, slow)
			late := said("late", "session:s", "forget the late one", "g", "other")
			for i := range 5 {
				add(t, p, said(fmt.Sprint("s", i), "session:s", fmt.Sprint("forget ", i), "g", "h"))
				add(t, p, said(fmt.Sprint("t", i), "session:t", fmt.Sprint("keep ", i), "g"))
			}
			if list, err := p.SessionGroups(context.Background(), "session:s"); err != nil || len(list) != 2 || list[0].Group != "g" || list[1].Group != "h" || list[0].Session != "session:s" {
				t.Errorf("got %+v, %v, want no error, 2 of them, Group \"g\", Group \"h\", Session \"session:s\"", list, err)
			}
			for _, group := range []string{"g", "h"} {
				gone(t, p, ledger.Part{Group: group, Session: "session:s"})
			}
			if list, err := p.SessionGroups(context.Background(), "session:s"); err != nil || len(list) != 0 {
				t.Errorf("got %+v, %v, want no error, none", list, err)
			}
			add(t, p, late)
			for range 2 {
				for i := range 5 {
					again := said(fmt.Sprint("s", i), "session:s", fmt.Sprint("forget ", i), "g", "h")
					again.Backfill = true // its generation is unknown
					add(t, p, again)
				}
				last := said(rand.Text(), "session:t", "keep the last", "g", "h", "other")
				last.Backfill = true
				last.User += fmt.Sprint(lasts.Add(1))
				add(t, p, last)
				waitFor(t, "the last turn", func() bool { return p.Status().Pending == 0 })
				for group, want := range map[string]int{"g": 5, "h": 0, "other": 0} {
					n := 0
					for _, text := range holds(group) {
						if strings.Contains(text, "forget") || strings.Contains(text, "checks that") {
							t.Errorf("%s holds %q", group, text)
						}
						if !strings.Contains(text, "the last") {
							n++
						}
					}
					if n != want {
						t.Errorf("%s holds %d others, want %d", group, n, want)
					}
				}
				stop(t, p)
				p = verifying(t, path, m, slow)
			}
			add(t, p, said("new", "session:s", "keep what is new", "g"))
			waitFor(t, "a new turn", func() bool { return strings.Contains(strings.Join(holds("g"), "|"), "what is new") })
		})
	}
}

// TestForgettingASessionThatWaits checks that forgetting a person's session removes its
// waiting and dead turns, and leaves another person's session of the same name.
func TestForgettingASessionThatWaits(t *testing.T) {
	m := &fakeMemory{fail: func(_ string, messages []graphiti.Row) error {
		switch text := messages[0].Text; {
		case strings.Contains(text, "refused"):
			return &graphiti.StatusError{Code: 422}
		case strings.Contains(text, "accepted"): // else the memory refuses all
			return nil
		}
		return &graphiti.StatusError{Code: 503}
	}}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m)
	hers := said("hers", "session:s", "what she said", "g")
	hers.Owner = "user:ann"
	for _, tn := range []ledger.Turn{said("dead", "session:s", "refused", "g"), said("good", "session:t", "accepted", "g"), hers, said("other", "session:t", "of another session", "g")} {
		add(t, p, tn)
	}
	waitFor(t, "the first to be refused", func() bool { return p.Status().Dead == 1 })
	add(t, p, said("waits", "session:s", "waits", "g"))
	forget(t, p, ledger.Part{Group: "g", Session: "session:s", Owner: "user:o"})
	list, all, err := p.Turns(context.Background(), ledger.ListOptions{Limit: 9, Text: true})
	if err != nil || all != 2 || list[0].User != "what she said" || list[1].User != "of another session" {
		t.Errorf("got %+v, %v, want no error, 2 in all, User \"what she said\", User \"of another session\"", list, err)
	}
	if s := p.Status(); s.Pending != 2 || s.Dead != 0 {
		t.Errorf("got %+v, want Pending 2, Dead 0", s)
	}
}

func settle(t *testing.T, g *graphititest.Graphiti) {
	t.Helper()
	must(t, g.Settle(context.Background()))
}

// TestForgetOfPartialTurn checks that the end of a turn is delivered only to groups
// that have not forgotten its beginning, and that no history brings it back to the others.
// A complete answer given after the forget is stored.
func TestForgetOfPartialTurn(t *testing.T) {
	path, m := filepath.Join(t.TempDir(), "spool.db"), &fakeMemory{}
	p := pipeline(t, path, m)
	begun, cut := said("1", "session:s", "a tool loop", "g", "h"), said("2", "session:s", "cut off", "g")
	begun.Open, begun.Assistant, cut.Assistant = true, "I shall look.", "half"
	add(t, p, begun)
	must(t, p.CutOff(context.Background(), cut))
	waitFor(t, "the beginning", func() bool { return p.Status().Delivered == 2 })
	forget(t, p, ledger.Part{Group: "g"})
	whole := begun
	whole.Open, whole.Assistant = false, "It is done."
	add(t, p, whole)
	for range 2 {
		for _, tn := range []ledger.Turn{whole, cut} {
			for _, id := range []string{tn.ID, tn.ID + ", renamed"} {
				tn.ID, tn.Backfill, tn.Generation = id, true, forgets.Load()
				add(t, p, tn)
			}
		}
		holds(t, p, m, "g")
		stop(t, p)
		p = pipeline(t, path, m)
	}
	holds(t, p, m, "h", "I shall look.", "It is done.", "a tool loop")
	cut.Assistant, cut.Generation = "all of it", forgets.Load()
	add(t, p, cut)
	cut.Backfill = true
	add(t, p, cut)
	holds(t, p, m, "g", "all of it", "cut off")
}
