package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// facts returns the valid facts of a selector, one per line.
func facts(t *testing.T, m *servicetest.Fixture, of service.Selector) string {
	t.Helper()
	var b strings.Builder
	for _, k := range run(t, m, service.Search, service.SearchRequest{Selector: of, SearchFilter: validFacts, Limit: 50}).Facts {
		if k.Origin != service.KindFact && (k.ID == "" || k.Since == "") {
			t.Errorf("without an id or a time: %+v", k)
		}
		fmt.Fprintf(&b, "%s %s %s: %s\n", k.State, k.Scope, k.Origin, k.Text)
	}
	return b.String()
}

// validFacts is the default filter of memory facts.
var validFacts = service.SearchFilter{Kind: service.KindFact, State: service.Valid, Newest: true}

// TestValidFacts checks that promoted texts and statements are listed, the newest first and without
// questions.
func TestValidFacts(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	run(t, m, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "Tabs, not spaces"}})
	lines := []service.Line{
		{Role: "user", Content: "My cat is called Miso.", Timestamp: "2026-01-01T09:00:00Z"},
		{Role: "user", Content: "My dog is called Rex.", Timestamp: "2026-01-02T09:00:00Z"},
		{Role: "user", Content: "Which database do we use?", Timestamp: "2026-01-03T09:00:00Z"},
		{Role: "assistant", Content: "I do not know.", Timestamp: "2026-01-03T09:00:01Z"},
		{Role: "user", Content: "My cat is called  miso.", Timestamp: "2026-01-04T09:00:00Z"},
	}
	run(t, m, service.Import, service.ImportRequest{Lines: lines})
	run(t, m, service.Import, service.ImportRequest{Selector: service.Selector{Workspace: widgets}, Lines: []service.Line{{Scope: "workspace", Role: "user", Content: "We deploy with Helm."}}})
	own := service.Selector{User: "me"}
	const want = "valid user preference: Tabs, not spaces\nvalid user said: My cat is called miso.\nvalid user said: My dog is called Rex.\n"
	if got := strings.Replace(facts(t, m, own), "valid workspace said: We deploy with Helm.\n", "", 1); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := facts(t, m, service.Selector{Workspace: widgets, Own: true}); !strings.Contains(got, "valid workspace said: We deploy with Helm.") || !strings.Contains(got, "Rex") {
		t.Errorf("in a project: %s", got)
	}
	if got := facts(t, m, service.Selector{User: "ann"}); got != "" {
		t.Errorf("another's: %s", got)
	}
	short := run(t, m, service.Search, service.SearchRequest{Selector: own, SearchFilter: validFacts, Limit: 1})
	if len(short.Facts) != 1 || short.All != 4 {
		t.Errorf("one of them: %+v", short)
	}
}

// TestFactsOfGraphiti checks that Graphiti's facts are listed with the messages.
func TestFactsOfGraphiti(t *testing.T) {
	for _, kind := range []string{"graphiti", "graphiti-mcp"} {
		t.Run(kind, func(t *testing.T) {
			g := startGraphiti(t, kind)
			m := onGraphiti(t, kind, g)
			m.Say(t, "", "s1", "", "My cat is called Miso.")
			m.Say(t, "", "s2", "", "My dog is called Rex.")
			must(t, g.Settle(t.Context()))
			got := facts(t, m, service.Selector{})
			for _, want := range []string{"valid user said: My dog is called Rex.", "valid user said: My cat is called Miso."} {
				if strings.Count(got, want) != 1 {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			if !strings.Contains(got, "valid user fact: ") {
				t.Errorf("no facts of Graphiti:\n%s", got)
			}
		})
	}
}
