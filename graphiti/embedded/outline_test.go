package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// manyMessages writes n messages into a group, in conversations of twenty.
func manyMessages(t testing.TB, e *Store, group string, n int) {
	t.Helper()
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for from := 0; from < n; from += 500 {
		var list []graphiti.Row
		for i := from; i < min(from+500, n); i++ {
			role := []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant}[i%2]
			list = append(list, graphiti.Row{
				Name: graphiti.EpisodeName(fmt.Sprintf("%032x", i/2), role), Role: role, Said: at.Add(time.Duration(i) * time.Second),
				Text:   fmt.Sprintf("Message %d is about the database of project %d, which Miriam Weber runs on otter%d. ", i, i%97, i%13) + strings.Repeat("It says more. ", 20),
				Source: fmt.Sprintf(`{"v":1,"client":"codex","session":"%012x","workspace":"github_repo:github.com/acme/widgets"}`, i/20),
			})
		}
		must(t, e.Write(t.Context(), group, list))
	}
}

// rowsOf returns the rows of a group.
func rowsOf(t testing.TB, e *Store, group string, f graphiti.Filter) (all []graphiti.Row) {
	t.Helper()
	for r, err := range e.Memory().Rows(t.Context(), group, f) {
		must(t, err)
		all = append(all, r)
	}
	return all
}

// TestOutline covers headings of new and deleted messages.
func TestOutline(t *testing.T) {
	e := openEmbedded(t)
	read := func(group string) []graphiti.Row { return rowsOf(t, e, group, graphiti.Filter{}) }
	if all := read("g"); all != nil {
		t.Errorf("got %v of no group, want none", all)
	}
	manyMessages(t, e, "g", 42)
	all := read("g")
	if len(all) != 42 || all[0].Session != "000000000000" || all[41].Session != "000000000002" || all[0].Turn != all[1].Turn || all[1].Turn == all[2].Turn ||
		all[0].ID == all[1].ID || all[1].Role != graphiti.RoleAssistant || !all[1].Said.Equal(time.Date(2026, 11, 1, 0, 0, 1, 0, time.UTC)) {
		t.Errorf("got %d headings: %+v", len(all), all[:min(len(all), 2)])
	}
	same := graphiti.Row{Name: graphiti.EpisodeName(fmt.Sprintf("%032x", 0), graphiti.RoleUser), Role: graphiti.RoleUser, Text: "x"}
	for _, m := range []graphiti.Row{same, {Name: "another client's", Role: graphiti.RoleSystem, Text: "y", Source: "none"}} {
		must(t, e.Write(t.Context(), "other", []graphiti.Row{m}))
	}
	if other := read("other"); len(other) != 2 || other[0].ID != all[0].ID || other[1].Turn != (graphiti.TurnID{}) || other[1].Session != "" || other[1].Role != graphiti.RoleSystem {
		t.Errorf("got %+v of another group", other)
	}
	manyMessages(t, e, "g", 50)
	if all = read("g"); len(all) != 50 {
		t.Errorf("got %d messages after eight arrived, want 50", len(all))
	}
	if _, err := e.ForgetEpisodes(t.Context(), "g", func(r *graphiti.Row) bool {
		return r.Name == graphiti.EpisodeName(fmt.Sprintf("%032x", 3), graphiti.RoleAssistant)
	}); err != nil {
		t.Fatal(err)
	}
	if all = read("g"); len(all) != 49 {
		t.Errorf("got %d messages after a deletion, want 49", len(all))
	}
	must(t, e.Forget(t.Context(), "g"))
	if all = read("g"); all != nil {
		t.Errorf("got %d messages after the deletion of all, want none", len(all))
	}
}
