package capture

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// TestJoinedTurns checks that waiting turns of a conversation are one episode until one has an earlier
// subject or a word of change, that a fact has the messages of its turn as sources, and that forgetting a
// turn sends the others of its episode again.
func TestJoinedTurns(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]graphititest.Options{"REST": {}, "MCP": {MCP: graphititest.Today}} {
		t.Run(name, func(t *testing.T) {
			o.Reads = func(first string) string {
				return strings.ReplaceAll(first, "The release branch is called Falcon.", "Nomad deploys Kestrel to Hetzner.")
			}
			g, m := remoteOf(t, o)
			p, e := pulling(t, m)
			p.Set(*p.opts(), true)
			for _, turn := range []ledger.Turn{
				said("1", "session:a", "The release branch is called Falcon.", "g"),
				said("2", "session:a", "We deploy Kestrel to Hetzner with Nomad.", "g"),
				said("3", "session:a", "My cat is called Miso.", "g"),
				said("4", "session:a", "Kestrel is deployed with Docker.", "g"),
				said("5", "session:a", "Miso no longer lives here.", "g"),
				said("6", "session:b", "The API gateway is Harrier.", "g"),
			} {
				turn.Assistant = "Understood."
				add(t, p, turn)
			}
			p.Set(*p.opts(), false)
			waitFor(t, "all turns", func() bool { st := p.Status(); return st.Verified == 6 && st.Pending == 0 })
			episodes := func() (list []string) {
				for _, e := range g.Episodes("g") {
					var turns []string
					held := remote.EpisodeJSON{Name: e.Name, Content: e.Content, SourceDescription: e.SourceDescription}
					for _, side := range held.Row().Sides() {
						if turn, _ := graphiti.TurnOf(side.Name); side.Role == graphiti.RoleUser {
							turns = append(turns, turn)
						}
					}
					list = append(list, strings.Join(turns, "+"))
				}
				slices.Sort(list)
				return list
			}
			if diff := cmp.Diff([]string{"1+2+3", "4", "5", "6"}, episodes()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			var sources []string
			waitFor(t, "the fact", func() bool {
				_ = e.Distilled(t.Context(), "g", func(d *graphiti.Distilled) error {
					if strings.Contains(d.Text, "Nomad") {
						sources = d.Sources
					}
					return nil
				})
				return len(sources) > 0
			})
			slices.Sort(sources)
			if diff := cmp.Diff([]string{graphiti.EpisodeName("2", graphiti.RoleAssistant), graphiti.EpisodeName("2", graphiti.RoleUser)}, sources); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
			forget(t, p, ledger.Part{Group: "g", Message: graphiti.MessageID(graphiti.EpisodeName("1", graphiti.RoleUser))})
			waitFor(t, "the others again", func() bool { st := p.Status(); return st.Withdrawn == 0 && st.Pending == 0 })
			if diff := cmp.Diff([]string{"2+3", "4", "5", "6"}, episodes()); diff != "" {
				t.Errorf("after a forget (-want +got):\n%s", diff)
			}
		})
	}
}
