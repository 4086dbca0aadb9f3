package graphiti_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// TestForgettingASessionIsProven checks the same for a session.
func TestForgettingASessionIsProven(t *testing.T) {
	for _, tc := range []struct {
		name  string
		o     graphititest.Options
		fails bool
	}{
		{"deleted", graphititest.Options{}, false},
		{"in another graph", graphititest.Options{Deletes: graphititest.Elsewhere}, true},
		{"in words only", graphititest.Options{Deletes: graphititest.InWords}, true},
	} {
		for _, over := range []string{"REST", "MCP"} {
			t.Run(tc.name+" over "+over, func(t *testing.T) {
				m, s := serviceOf(t, over, tc.o)
				writeOne(t, m, s, "stays", "The bird sings.")
				writeOne(t, m, s, "goes", "Zyx qwv.")
				_, err := m.ForgetEpisodes(t.Context(), "g", func(e *graphiti.Row) bool { return e.Name == "goes" })
				var left *graphiti.RemainsError
				if errors.As(err, &left) != tc.fails || !tc.fails && err != nil || tc.fails && left.Episodes != 1 {
					t.Errorf("ForgetEpisodes: %+v, %v; want a RemainsError with 1 episode: %v", left, err, tc.fails)
				}
			})
		}
	}
}

// TestSmokeProvesItsCleanUp checks that the smoke test verifies the deletion of its group
// instead of trusting the answer.
func TestSmokeProvesItsCleanUp(t *testing.T) {
	for _, over := range []string{"REST", "MCP"} {
		m, _ := serviceOf(t, over, graphititest.Options{Deletes: graphititest.Elsewhere})
		var last remote.Check
		remote.Smoke(t.Context(), m, func(c remote.Check) { last = c })
		if last.Name != "delete the group" || last.OK || !strings.Contains(last.Remedy, "GRAPH.DELETE graphiti_proxy_smoke") {
			t.Errorf("over %s, the last check is %+v; want that deleting fails, with GRAPH.DELETE as remedy", over, last)
		}
	}
}

func serviceOf(t *testing.T, over string, o graphititest.Options) (*graphiti.Memory, *graphititest.Graphiti) {
	t.Helper()
	if over == "REST" {
		s, r := overREST(t, o)
		return r, s
	}
	o.MCP = graphititest.Today
	s, m := overMCP(t, o)
	return m, s
}

func writeOne(t *testing.T, m *graphiti.Memory, s *graphititest.Graphiti, name, text string) {
	t.Helper()
	err := m.Write(t.Context(), "g", []graphiti.Row{{Name: name, Speaker: "josh", Role: graphiti.RoleUser, Text: text, Said: time.Now().Add(-time.Minute)}})
	must(t, err)
	settle(t, s)
}
