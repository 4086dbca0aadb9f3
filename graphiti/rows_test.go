package graphiti_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestMemory_Rows checks the filters of rows.
func TestMemory_Rows(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var list []graphiti.Row
	for i := range 4 {
		user, answer := graphiti.EpisodeName(fmt.Sprint(i), graphiti.RoleUser), graphiti.EpisodeName(fmt.Sprint(i), graphiti.RoleAssistant)
		source := fmt.Sprintf(`{"session":"s%d"}`, i%2)
		at := start.Add(time.Duration(i) * time.Minute)
		if i == 3 { // both sides in one entry
			list = append(list, graphiti.Row{Name: user, Role: graphiti.RoleUser, Text: "q3" + graphiti.SideMark("", graphiti.RoleAssistant) + "a3", Said: at, Source: `{"session":"s1","parts":[[2]]}`})
			continue
		}
		list = append(list, graphiti.Row{Name: user, Role: graphiti.RoleUser, Text: fmt.Sprint("q", i), Said: at, Source: source},
			graphiti.Row{Name: answer, Role: graphiti.RoleAssistant, Text: fmt.Sprint("a", i), Said: at.Add(time.Second), Source: source})
	}
	name := func(i int, role graphiti.RoleType) string { return graphiti.EpisodeName(fmt.Sprint(i), role) }
	filters := map[string]struct {
		f    graphiti.Filter
		want string
	}{
		"all":               {graphiti.Filter{}, "q0 a0 q1 a1 q2 a2 q3 a3"},
		"newest":            {graphiti.Filter{Newest: true}, "a3 q3 a2 q2 a1 q1 a0 q0"},
		"last ones by time": {graphiti.Filter{Last: 2, Newest: true}, "a3 q3 a2"},
		"a session":         {graphiti.Filter{Session: "s1"}, "q1 a1 q3 a3"},
		"a role":            {graphiti.Filter{Roles: []graphiti.RoleType{graphiti.RoleUser}, Newest: true}, "q3 q2 q1 q0"},
		"an ID":             {graphiti.Filter{IDs: []graphiti.ID{graphiti.IDOf(name(1, graphiti.RoleAssistant))}}, "a1"},
		"names":             {graphiti.Filter{Names: []string{name(0, graphiti.RoleUser), name(3, graphiti.RoleUser), "gone"}}, "q0 q3"},
		"no such ID":        {graphiti.Filter{IDs: []graphiti.ID{{1}}}, ""},
	}
	m := openEmbedded(t)
	must(t, m.Write(t.Context(), "g", list))
	key := ""
	for name, tc := range filters {
		var texts []string
		tc.f.Text = true
		for r, err := range m.Rows(t.Context(), "g", tc.f) {
			if err != nil || r.ID != graphiti.IDOf(r.Name) {
				t.Fatalf("%s: got %+v, %v", name, r, err)
			}
			texts, key = append(texts, r.Text), r.Key
		}
		if diff := cmp.Diff(tc.want, strings.Join(texts, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for r, err := range m.Rows(t.Context(), "g", graphiti.Filter{Keys: []string{key}, Text: true}) {
		if err != nil || r.Key != key {
			t.Errorf("got %+v, %v, want key %q", r, err, key)
		}
		break // the rest is not needed
	}
}
