package capture

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// factsOf returns the texts of the facts of a group, sorted.
func factsOf(t *testing.T, e *embedded.Store, group string) (texts []string) {
	t.Helper()
	if err := e.Distilled(t.Context(), group, func(d *graphiti.Distilled) error {
		texts = append(texts, d.Text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return texts
}

// pulling opens a pipeline on a new store that also gets the facts of Graphiti.
func pulling(t *testing.T, m Memory, also ...func(*Options)) (*Pipeline, *embedded.Store) {
	t.Helper()
	e, err := embedded.Open(filepath.Join(t.TempDir(), "memory.db"))
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return verifying(t, filepath.Join(t.TempDir(), "unused.db"), m, func(o *Options) {
		o.Ledger, o.Facts, o.Episodes = e.Ledger, e, PerTurn
		for _, set := range also {
			set(o)
		}
	}), e
}

// TestFactsArePulled checks that the facts of a delivered turn are stored with its messages,
// also if Graphiti fails at first, and that forgetting the turn deletes them, also while
// Graphiti is down.
func TestFactsArePulled(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]graphititest.Options{"REST": {}, "MCP": {MCP: graphititest.Today}, "earlier MCP": {MCP: graphititest.Earlier}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Reads = func(string) string { return "The feline answers to Miso; user 1" }
			g, m := remoteOf(t, o)
			g.Next(graphititest.ShowEdge, graphititest.Answer(500, ""))
			p, e := pulling(t, m)
			add(t, p, spoken("1", "g"))
			waitFor(t, "the fact", func() bool { return len(factsOf(t, e, "g")) == 1 })
			g.Close()
			forgets.Add(1)
			must(t, p.Forget(t.Context(), ledger.Part{Group: "g"}, forgets.Load()))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if left, err := p.Withdrawn(ctx, "g", true); left == 0 || err == nil {
				t.Errorf("%d are left in Graphiti, which is down, %v", left, err)
			}
			if left := append(heldBy(t, e, "g"), factsOf(t, e, "g")...); len(left) > 0 {
				t.Errorf("left after a forget without Graphiti: %q", left)
			}
		})
	}
}

// late lists an episode before its facts, as Graphiti does on FalkorDB, which has no transactions.
type late struct {
	graphiti.Arrivals
	reads atomic.Int32
}

func (l *late) FactsOf(ctx context.Context, group string, episode *graphiti.Row) ([]graphiti.Fact, error) {
	if l.reads.Add(1) == 1 {
		return nil, nil
	}
	return l.Arrivals.FactsOf(ctx, group, episode)
}

// TestFactsAfterTheirEpisode checks that an episode without facts is read once more.
func TestFactsAfterTheirEpisode(t *testing.T) {
	t.Parallel()
	for want, reads := range map[string]func(string) string{"one": func(string) string { return "The feline answers to Miso; user 1" }, "none": func(string) string { return "" }} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, c := mcpService(t, graphititest.Options{MCP: graphititest.Today, Reads: reads})
			m, l := c.Memory(), &late{Arrivals: c}
			m.Arrivals = l
			p, e := pulling(t, m)
			add(t, p, spoken("1", "g"))
			if want == "one" {
				waitFor(t, "the fact", func() bool { return len(factsOf(t, e, "g")) == 1 })
			}
			waitFor(t, "the second read, and no third", func() bool {
				left, err := e.Ledger(nil).Unread(t.Context(), 1)
				return err == nil && len(left) == 0 && l.reads.Load() == 2
			})
		})
	}
}

// outdated returns the facts of the first call again and again, and its first call ends after a forget.
type outdated struct {
	graphiti.Arrivals
	fails     bool          // the first call
	asked     chan struct{} // closed by the first call
	forgotten chan struct{}
	facts     []graphiti.Fact
}

func (o *outdated) FactsOf(ctx context.Context, group string, episode *graphiti.Row) (facts []graphiti.Fact, err error) {
	if o.facts != nil {
		return o.facts, nil
	}
	o.facts, err = o.Arrivals.FactsOf(ctx, group, episode)
	close(o.asked)
	<-o.forgotten
	if o.fails {
		return nil, errors.New("the connection broke")
	}
	return o.facts, err
}

// TestFactsOfForgottenMessage checks that the facts of an episode are not stored if one of its messages is
// forgotten before they are read, or meanwhile.
func TestFactsOfForgottenMessage(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"before": true, "meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := service(t, graphititest.Options{Reads: func(string) string { return "The feline answers to Miso" }})
			m, o := c.Memory(), &outdated{Arrivals: c, fails: fails, asked: make(chan struct{}), forgotten: make(chan struct{})}
			m.Arrivals = o
			p, e := pulling(t, m)
			add(t, p, spoken("1", "g"))
			<-o.asked
			forget(t, p, ledger.Part{Group: "g", Message: graphiti.MessageID(graphiti.EpisodeName("1", graphiti.RoleUser))})
			close(o.forgotten)
			waitFor(t, "the read", func() bool {
				left, err := e.Ledger(nil).Unread(t.Context(), 1)
				return err == nil && len(left) == 0
			})
			if diff := cmp.Diff([]string{"assistant 1"}, append(heldBy(t, e, "g"), factsOf(t, e, "g")...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// remoteOf starts a Graphiti, and returns a client in all roles.
func remoteOf(t *testing.T, o graphititest.Options) (*graphititest.Graphiti, Memory) {
	t.Helper()
	if o.MCP != 0 {
		g, c := mcpService(t, o)
		return g, c.Memory()
	}
	g, c := service(t, o)
	return g, c.Memory()
}

// TestHistoryIsImported checks that messages that only Graphiti has are stored once, without
// credentials, with their facts, and are not sent again. Forgotten ones do not come back.
func TestHistoryIsImported(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]graphititest.Options{"REST": {}, "MCP": {MCP: graphititest.Today}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := remoteOf(t, o)
			before, _ := pulling(t, m)
			for _, id := range []string{"1", "2"} {
				add(t, before, spoken(id, "g"))
			}
			waitFor(t, "delivery", func() bool { return before.Status().Verified == 2 })
			stop(t, before)
			secret := "ghp_" + rand.Text() + "aB3dE6gH9j"
			other := graphiti.Row{Name: "another program's", Role: graphiti.RoleUser, Text: "Our key is token=" + secret, Said: time.Now().Add(-time.Hour)}
			must(t, m.Write(t.Context(), "g", []graphiti.Row{other}))
			settle(t, g)
			p, e := pulling(t, m)
			p.Import(turn("", "g"))
			waitFor(t, "the history", func() bool { return len(heldBy(t, e, "g")) == 5 })
			waitFor(t, "the facts", func() bool { return len(factsOf(t, e, "g")) > 0 })
			all := strings.Join(heldBy(t, e, "g"), "\n")
			for _, want := range []string{"user 1", "assistant 1", "user 2", "assistant 2", "Our key is token="} {
				if strings.Count(all, want) != 1 {
					t.Errorf("%q is not there once:\n%s", want, all)
				}
			}
			facts := strings.Join(factsOf(t, e, "g"), "\n")
			if strings.Contains(all+facts, secret) {
				t.Errorf("got %s, and facts %q; want no secret", all, facts)
			}
			if n := len(g.Episodes("g")); n != 3 || p.Status().Pending != 0 {
				t.Errorf("Graphiti has %d episodes, %d turns wait; want 3, 0", n, p.Status().Pending)
			}
			part := ledger.Part{Group: "g", Message: graphiti.MessageID("another program's")}
			forgets.Add(1)
			must(t, box(p).Forget(part, forgets.Load()))
			owner := turn("", "g")
			owner.Generation = forgets.Load() // as if the import had begun after the forget
			must(t, box(p).pulls.importSince(t.Context(), &owner, time.Time{}))
			if diff := cmp.Diff(4, len(heldBy(t, e, "g"))); diff != "" {
				t.Errorf("after a forget (-want +got):\n%s", diff)
			}
		})
	}
}
