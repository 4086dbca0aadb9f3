package graphiti_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestFactsOf checks that each kind of server returns the facts of an episode, without deleted ones.
func TestFactsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		open func(*testing.T, graphititest.Options) (*graphititest.Graphiti, *graphiti.Memory)
		o    graphititest.Options
	}{
		"REST":                {overREST, graphititest.Options{}},
		"MCP":                 {overMCP, graphititest.Options{MCP: graphititest.Today}},
		"MCP without a tool":  {overMCP, graphititest.Options{MCP: graphititest.Earlier}},
		"MCP of another time": {overMCP, graphititest.Options{MCP: graphititest.Old}},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := tc.open(t, tc.o)
			for i := range 10 {
				err := m.Write(t.Context(), "g", []graphiti.Row{{Name: fmt.Sprint(i), Role: graphiti.RoleUser, Text: fmt.Sprintf("Bed %d is for beans.", i), Said: time.Now().Add(-time.Minute)}})
				must(t, err)
			}
			settle(t, s)
			list, err := m.Episodes(t.Context(), "g", 10)
			if err != nil || len(list) != 10 {
				t.Fatalf("%d episodes, %v", len(list), err)
			}
			for i := range list {
				list[i].Facts = append(list[i].Facts, "gone", "../group/g")
				facts, err := m.FactsOf(t.Context(), "g", &list[i])
				var got []string
				for _, f := range facts {
					got = append(got, f.Group+": "+f.Text)
				}
				if diff := cmp.Diff([]string{"g: " + list[i].Text}, got); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			}
			s.Close()
			if facts, err := m.FactsOf(t.Context(), "g", &list[0]); err == nil {
				t.Errorf("a service that is down: %d facts and no error", len(facts))
			}
		})
	}
	if facts, err := openEmbedded(t).Facts(t.Context(), "g", []string{"embedded-1"}); len(facts) > 0 || err != nil {
		t.Errorf("the embedded store has facts: %v, %v", facts, err)
	}
}

// counted is a searcher that notes how many facts a search asks for.
type counted struct{ most int }

func (c *counted) Search(_ context.Context, _ []string, _ string, most int) ([]graphiti.Fact, error) {
	c.most = most
	return nil, nil
}

// TestTrySearch_CutsNoOther checks that a test of the search asks for no fewer facts than a search of recall,
// whose answer Graphiti would cut.
func TestTrySearch_CutsNoOther(t *testing.T) {
	const ofRecall = 24
	var c counted
	if err := graphiti.TrySearch(t.Context(), &c, "group", "test"); err != nil || c.most < ofRecall {
		t.Errorf("got %d facts and error %v, want at least %d facts", c.most, err, ofRecall)
	}
}
