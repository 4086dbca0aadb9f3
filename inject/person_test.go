package inject

import (
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestWhatIsKnownOfThePersonInAProject: what answers by itself is shown beside the
// project's; what they said of themselves only where nothing answers; nothing of it
// because a word happens to be the same.
func TestWhatIsKnownOfThePersonInAProject(t *testing.T) {
	fact := func(text string, strength float64, profile bool) graphiti.Fact {
		return graphiti.Fact{UUID: text, Text: text, Strength: strength, Weighed: true, Dated: true, Profile: profile}
	}
	strong, weak, profile := fact("strong", 0.5, false), fact("weak", 0.1, false), fact("profile", 0, true)
	project := fact("of the project", 0.5, false)
	for _, tc := range []struct {
		name       string
		ofProject  []graphiti.Fact
		ofPerson   []graphiti.Fact
		noProject  bool
		want       []string
		whyNothing Reason
	}{
		{"both answer", []graphiti.Fact{project}, []graphiti.Fact{strong, weak, profile}, false, []string{"of the project", "strong"}, ""},
		{"a word happens to be the same", []graphiti.Fact{project}, []graphiti.Fact{weak, profile}, false, []string{"of the project"}, ""},
		{"nothing answers", nil, []graphiti.Fact{weak, profile}, false, []string{"profile"}, ""},
		{"outside of projects", nil, []graphiti.Fact{profile}, true, nil, ReasonNothing},
		{"outside of projects, too weak", nil, []graphiti.Fact{weak, profile}, true, nil, ReasonWeak},
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
