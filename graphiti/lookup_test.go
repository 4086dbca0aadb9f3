package graphiti_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestFactsAreLookedUp checks that backends with a lookup return facts by id, in the order
// of the request and without deleted ones.
func TestFactsAreLookedUp(t *testing.T) {
	for name, tc := range map[string]struct {
		open func(*testing.T, graphititest.Options) (*graphititest.Graphiti, *graphiti.Memory)
		o    graphititest.Options
		ok   bool
	}{
		"REST":                {overREST, graphititest.Options{}, true},
		"MCP":                 {overMCP, graphititest.Options{MCP: graphititest.Today}, true},
		"MCP without a tool":  {overMCP, graphititest.Options{MCP: graphititest.Earlier}, false},
		"MCP of another time": {overMCP, graphititest.Options{MCP: graphititest.Old}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := tc.open(t, tc.o)
			for i := range 10 {
				err := m.Write(t.Context(), "g", []graphiti.Row{{Name: fmt.Sprint(i), Role: graphiti.RoleUser, Text: fmt.Sprintf("Bed %d is for beans.", i), Said: time.Now().Add(-time.Minute)}})
				if err != nil {
					t.Fatal(err)
				}
			}
			settle(t, s)
			all, err := m.Search(t.Context(), []string{"g"}, "beans", 10)
			if err != nil || len(all) != 10 {
				t.Fatalf("%d facts, %v", len(all), err)
			}
			uuids, want := []string{"gone", "../group/g", ""}, []string(nil)
			for _, f := range all {
				uuids, want = append(uuids, f.UUID), append(want, f.Text)
			}
			if !tc.ok {
				want = nil
			}
			facts, ok, err := m.Facts(t.Context(), "g", uuids)
			var got []string
			for _, f := range facts {
				got = append(got, f.Text)
				if f.Group != "g" {
					t.Errorf("of group %q", f.Group)
				}
			}
			if diff := cmp.Diff(want, got); ok != tc.ok || err != nil || diff != "" {
				t.Errorf("%v, %v (-want +got):\n%s", ok, err, diff)
			}
			s.Close()
			if facts, _, err := m.Facts(t.Context(), "g", uuids); tc.ok && err == nil {
				t.Errorf("a service that is down: %d facts and no error", len(facts))
			}
		})
	}
	if facts, ok, err := openEmbedded(t).Facts(t.Context(), "g", []string{"embedded-1"}); len(facts) > 0 || !ok || err != nil {
		t.Errorf("the embedded store has facts: %v, %v, %v", facts, ok, err)
	}
}
