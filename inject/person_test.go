package inject

import (
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestPersonInProject: the person's statements enter a project by a match of their own, and
// nothing else of them where nothing matches.
func TestPersonInProject(t *testing.T) {
	fact := func(text string, strength float64) graphiti.Fact {
		return graphiti.Fact{UUID: text, Text: text, Strength: strength, Weighed: true, Dated: true}
	}
	strong, weak, project := fact("strong", 0.5), fact("weak", 0.1), fact("of the project", 0.5)
	oneKey, keys := fact("one key", 0.5), fact("several keys", 0.7)
	oneKey.Messages, keys.Messages = []string{"m1"}, []string{"m2"}
	for _, tc := range []struct {
		name       string
		ofProject  []graphiti.Fact
		ofPerson   []graphiti.Fact
		noProject  bool
		want       []string
		whyNothing Reason
	}{
		{"both answer", []graphiti.Fact{project}, []graphiti.Fact{strong, weak}, false, []string{"of the project", "strong"}, ""},
		{"only the person's answers", nil, []graphiti.Fact{strong, weak}, false, []string{"strong"}, ""},
		{"a word happens to be the same", []graphiti.Fact{project}, []graphiti.Fact{weak}, false, []string{"of the project"}, ""},
		{"distilled", nil, []graphiti.Fact{keys, oneKey}, false, []string{"several keys"}, ""},
		{"nothing answers", nil, []graphiti.Fact{weak}, false, nil, ReasonWeak},
		{"outside of projects", nil, []graphiti.Fact{strong, weak}, true, []string{"strong", "weak"}, ""},
		{"outside of projects, too weak", nil, []graphiti.Fact{weak}, true, nil, ReasonWeak},
		{"nothing was found", nil, nil, false, nil, ReasonNothing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ch := &chooser{minScore: 0.25, count: 12, max: 2000}
			found := []Scoped{{graphiti.ScopeUser, tc.ofPerson}}
			if !tc.noProject {
				found = []Scoped{{graphiti.ScopeWorkspace, tc.ofProject}, {graphiti.ScopeUser, tc.ofPerson}}
			}
			all := ch.choose(found)
			var got []string
			for _, c := range all {
				if c.Verdict == Shown {
					got = append(got, c.Fact.Text)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("shown %q, want %q", got, tc.want)
			}
			if why := silence(all); len(got) == 0 && why != tc.whyNothing {
				t.Errorf("reason %q, want %q", why, tc.whyNothing)
			}
		})
	}
}
