package capture

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestSilenceAfterListings checks that a server that listed messages before and then shows
// none counts as stalled: its turn waits, and is stored once after the repair.
func TestSilenceAfterListings(t *testing.T) {
	broken := false
	g := &graph{apart: true, takes: time.Second,
		raises: func(string) bool { return broken },
		fails: func(call, _ string) error {
			if broken && call == "search" {
				return &graphiti.StatusError{Code: http.StatusInternalServerError, Detail: "Error code: 401 - {'error': {'message': 'Incorrect API key provided: sk-secret', 'code': 'invalid_api_key'}}"}
			}
			return nil
		}}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("1", "a"))
		until(t, "the first turn", func() bool { return p.Status().Verified == 1 })
		g.set(func() { broken = true })
		add(t, p, spoken("2", "a"))
		until(t, "the stall and its cause", func() bool { st := p.Status(); return st.Stalled != nil && st.Diagnosis == graphiti.ModelKey })
		if st := p.Status(); st.Unlisted != nil || st.Pending != 1 {
			t.Errorf("got %+v, want Unlisted not set, Pending 1", st)
		}
		g.set(func() { broken = false })
		until(t, "the second turn", func() bool { return p.Status().Verified == 2 })
		want := []string{
			graphiti.EpisodeName("1", graphiti.RoleUser), graphiti.EpisodeName("1", graphiti.RoleAssistant),
			graphiti.EpisodeName("2", graphiti.RoleUser), graphiti.EpisodeName("2", graphiti.RoleAssistant),
		}
		slices.Sort(want)
		until(t, "each message once, and no barrier", func() bool { return slices.Equal(g.names("a"), want) })
	})
}

// TestStallDiagnosis checks that the diagnosis of a stalled memory depends on whether it
// has ever stored a turn.
func TestStallDiagnosis(t *testing.T) {
	for _, tc := range []struct {
		kept      int // turns stored before the worker ends
		diagnosis graphiti.Diagnosis
		remedy    string
	}{
		{0, graphiti.NeverKept, "neo4j<6"},
		{1, graphiti.WorkerDead, "restart Graphiti"},
	} {
		g := &graph{}
		inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
			for i := range tc.kept {
				add(t, p, spoken(fmt.Sprint(i), "a"))
				until(t, "a turn", func() bool { return p.Status().Verified == i+1 })
			}
			g.set(func() { g.dead = true })
			add(t, p, spoken("lost", "a"))
			until(t, "the stall", func() bool { return p.Status().Stalled != nil })
			if st := p.Status(); st.Diagnosis != tc.diagnosis || !strings.Contains(st.Diagnosis.Remedy(), tc.remedy) || st.Pending != 1 {
				t.Errorf("after %d turns: got %+v, want Diagnosis %q, %q in its remedy, Pending 1", tc.kept, st, tc.diagnosis, tc.remedy)
			}
		})
	}
}

// TestServerThatListsNothing checks a server that lists no messages. Whether a search shows facts or
// not, each turn is sent once and counts as delivered, and delivery does not stall.
func TestServerThatListsNothing(t *testing.T) {
	for blind, want := range map[graphititest.Blindness]graphiti.Diagnosis{graphititest.BlindListing: graphiti.Unlisted, graphititest.BlindAll: graphiti.Unshown} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			s, m := mcpService(t, graphititest.Options{MCP: graphititest.Today})
			s.Blind(blind)
			p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m)
			var ids []string
			for i := range 6 {
				ids = append(ids, fmt.Sprint(i))
				add(t, p, spoken(ids[i], "a", "b"))
			}
			waitFor(t, "all turns", func() bool { st := p.Status(); return st.Delivered == 12 && st.Pending == 0 })
			if st := p.Status(); st.Unlisted == nil || st.Stalled != nil || st.Diagnosis != want {
				t.Errorf("got %+v, want Unlisted set, no stall, Diagnosis %s", st, want)
			}
			settled(t, s)
			for _, g := range []string{"a", "b"} {
				count := make(map[string]int)
				for _, e := range s.Episodes(g) {
					count[e.Name]++
				}
				for _, id := range ids[1:] {
					if n := count[graphiti.EpisodeName(id, graphiti.RoleUser)]; n != 1 {
						t.Errorf("group %s has turn %s %d times", g, id, n)
					}
				}
			}
		})
	}
}
