package mcp

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

var factCalls = graphititest.Tool("search_memory_facts")

// sideBySide searches groups as a recall does.
func sideBySide(t *testing.T, m *Client, query string, max int, groups ...string) [][]graphiti.Fact {
	t.Helper()
	together := m.Memory().Together(groups)
	out := make([][]graphiti.Fact, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() {
			var err error
			if out[i], err = together.Search(t.Context(), []string{g}, query, max); err != nil {
				t.Error(g, ": ", err)
			}
		})
	}
	wg.Wait()
	return out
}

// about writes facts, each of one group.
func about(t *testing.T, s *graphititest.Server, m *Client, group, format string, n int) {
	t.Helper()
	for i := range n {
		if err := m.Write(t.Context(), group, []graphiti.Message{saying(fmt.Sprint(i), fmt.Sprintf(format, i))}); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, s)
}

// TestOneCallForAllGroups is made where the server has one index and names the
// groups of what it finds, and as long as one answer has all that they hold; each group
// gets its own facts, and never another's.
func TestOneCallForAllGroups(t *testing.T) {
	for _, tc := range []struct {
		name     string
		o        graphititest.Options
		tool     graphititest.Call
		calls    int
		unasked  bool // nobody has asked for the server's health
		faults   []graphititest.Fault
		inOther  int
		perGroup int
		next     int // calls for the next question; 0: as many
	}{
		{name: "Neo4j", o: graphititest.Options{MCP: graphititest.Today, Database: "Neo4j"}, calls: 1, inOther: 1},
		{name: "nothing in one group", o: graphititest.Options{MCP: graphititest.Today, Database: "neo4j"}, calls: 1},
		{name: "as many as the answer has", o: graphititest.Options{MCP: graphititest.Today, Database: "neo4j"}, calls: 1, inOther: 3, perGroup: 20},
		{name: "few beside many", o: graphititest.Options{MCP: graphititest.Today, Database: "neo4j"}, calls: 3, inOther: 2, perGroup: 30, next: 2},
		{name: "the one call fails", o: graphititest.Options{MCP: graphititest.Today, Database: "neo4j"}, calls: 3, next: 2, inOther: 1, faults: []graphititest.Fault{graphititest.Answer(500, "")}},
		{name: "FalkorDB", o: graphititest.Options{MCP: graphititest.Today, Database: "FalkorDB"}, calls: 2, inOther: 1},
		{name: "unknown database", o: graphititest.Options{MCP: graphititest.Today}, calls: 2, inOther: 1},
		{name: "not asked yet", o: graphititest.Options{MCP: graphititest.Today, Database: "neo4j"}, calls: 2, unasked: true, inOther: 1},
		{name: "a server whose search takes one group", o: graphititest.Options{MCP: graphititest.Old, Database: "neo4j"}, tool: graphititest.Tool("search_facts"), calls: 2, inOther: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, m := standIn(t, tc.o)
			if tc.tool == "" {
				tc.tool = factCalls
			}
			about(t, s, m, "g", "My cat Miso has toy %d.", max(tc.perGroup, 2))
			about(t, s, m, "h", "My cat Tom sleeps %d.", tc.inOther)
			about(t, s, m, "stranger", "My cat Felix hides %d.", 3)
			if !tc.unasked {
				if err := m.Health(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			s.Next(tc.tool, tc.faults...)
			before := s.Counts().Calls[tc.tool]
			found := sideBySide(t, m, "Which toy has my cat?", 12, "g", "h")
			if n := s.Counts().Calls[tc.tool] - before; n != tc.calls {
				t.Errorf("%d calls", n)
			}
			sideBySide(t, m, "And which toy sleeps?", 12, "g", "h")
			if n := s.Counts().Calls[tc.tool] - before - tc.calls; n != cmp.Or(tc.next, tc.calls) {
				t.Errorf("%d calls for the next question", n)
			}
			if len(found[0]) != min(max(tc.perGroup, 2), 12) || len(found[1]) != tc.inOther {
				t.Errorf("found %d and %d", len(found[0]), len(found[1]))
			}
			for i, name := range []string{"Miso", "Tom"} {
				for _, f := range found[i] {
					if !strings.Contains(f.Text, name) || f.Group != []string{"g", "h"}[i] {
						t.Errorf("in group %d: %+v", i, f)
					}
				}
			}
		})
	}
}

// TestFactsOfAnotherGroupAreLeftOut, whatever the server was asked for: it says
// itself where they are from.
func TestFactsOfAnotherGroupAreLeftOut(t *testing.T) {
	for _, tc := range []struct {
		asked, said string
		groups      []string
		want        string
	}{
		{"g", "g", []string{"g"}, "g"},
		{"g", "", []string{"g"}, "g"},
		{"g", "other", []string{"g"}, ""},
		{"", "h", []string{"g", "h"}, "h"},
		{"", "", []string{"g", "h"}, ""},
		{"", "other", []string{"g", "h"}, ""},
	} {
		if group, ok := where(tc.asked, tc.said, tc.groups); ok != (tc.want != "") || ok && group != tc.want {
			t.Errorf("%+v: %q, %v", tc, group, ok)
		}
	}
}
