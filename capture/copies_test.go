package capture

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestCopies checks the copies of turns in Graphiti: only turns with statements have one. With a distiller
// it contains the facts, or the texts after the last failure, and turns without facts have no copy.
func TestCopies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		distils  bool
		distil   func(e *embedded.Store, b *graphiti.Batch) error
		user     string
		has, not string // words of the episodes; an empty has means no episode
	}{
		{"a statement", false, nil, "The harbour opens at 6543.", "6543", ""},
		{"a statement by its words alone", false, nil, "My gate is at 6543.", "6543", ""},
		{"no statement", false, nil, "shorter please", "", ""},
		{"a statement and a request", false, nil, "Write it down. The harbour opens at 6543.", "6543", ""},
		{"facts", true, func(e *embedded.Store, b *graphiti.Batch) error {
			f := graphiti.Distilled{Name: "fact 1", Text: "The gate is at 6543", Role: graphiti.RoleUser, Since: time.Now(), Sources: []string{b.Messages[0].Name}}
			_, err := e.KeepFacts(context.Background(), b, []graphiti.Distilled{f})
			return err
		}, "The harbour opens at 6543.", "The gate is at 6543", "harbour"},
		{"no facts", true, func(e *embedded.Store, b *graphiti.Batch) error {
			_, err := e.KeepFacts(context.Background(), b, nil)
			return err
		}, "The harbour opens at 6543.", "", ""},
		{"a model that fails for good", true, func(e *embedded.Store, b *graphiti.Batch) error {
			for range 9 {
				if err := e.Postpone(context.Background(), b, time.Now(), true); err != nil {
					return err
				}
			}
			return nil
		}, "The harbour opens at 6543.", "harbour", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g, m := remoteOf(t, graphititest.Options{MCP: graphititest.Today})
			p, e := pulling(t, m, func(o *Options) {
				o.States = func(_ context.Context, text string) bool { return strings.HasPrefix(text, "The harbour") }
			})
			if tc.distils {
				e.Distil(func() {})
			}
			tn := spoken("1", "g")
			tn.User, tn.Session = tc.user, "session:1"
			add(t, p, tn)
			if tc.distils {
				waitFor(t, "the messages", func() bool { return len(heldBy(t, e, "g")) == 2 })
				b, _, err := e.Undistilled(t.Context(), 0, 1)
				if err != nil || b == nil {
					t.Fatal(b, err)
				}
				must(t, tc.distil(e, b))
			}
			last := spoken("2", "g")
			last.User, last.Kind = "The harbour is old.", "decision"
			add(t, p, last)
			waitFor(t, "delivery", func() bool { s := p.Status(); return s.Pending == 0 && strings.Contains(textsOf(g), "harbour is old") })
			got := strings.ReplaceAll(textsOf(g), "harbour is old", "")
			if tc.has == "" && strings.Contains(got, "6543") || !strings.Contains(got, tc.has) || tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("Graphiti has %q; want %q and not %q", got, tc.has, tc.not)
			}
		})
	}
}

// textsOf returns the texts of the episodes of group g.
func textsOf(g *graphititest.Graphiti) (all string) {
	for _, e := range g.Episodes("g") {
		all += e.Content + "\n"
	}
	return all
}
