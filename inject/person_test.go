package inject

import (
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestPersonInProject checks that, in a project, a person's facts need a match of their own
// to enter the block.
func TestPersonInProject(t *testing.T) {
	fact := func(text string, strength float64) graphiti.Fact {
		return graphiti.Fact{UUID: text, Text: text, Strength: strength, Weighed: true, Dated: true}
	}
	strong, weak, project, other := fact("strong", 0.5), fact("weak", 0.1), fact("of the project", 0.5), fact("another of the project", 0.2)
	noKey, key := fact("no key", 0.9), fact("a key", 0.6)
	noKey.Messages, noKey.Meant, noKey.OfUser, key.Messages = []string{"m1"}, true, true, []string{"m2"}
	common := key
	common.Text, common.Strength = "a common key", 0.45
	rule := fact("everywhere", 0.55)
	rule.Messages, rule.OfUser = []string{"m3"}, true
	weakRule := rule
	weakRule.Strength = 0.45
	for _, tc := range []struct {
		name       string
		ofProject  []graphiti.Fact
		ofPerson   []graphiti.Fact
		noProject  bool
		apart      bool
		want       []string
		whyNothing Reason
	}{
		{"both answer", []graphiti.Fact{project}, []graphiti.Fact{strong, weak}, false, false, []string{"of the project", "strong"}, ""},
		{"only the person's answers", nil, []graphiti.Fact{strong, weak}, false, false, []string{"strong"}, ""},
		{"a word happens to be the same", []graphiti.Fact{project}, []graphiti.Fact{weak}, false, false, []string{"of the project"}, ""},
		{"only the person's answers, and the project has others", []graphiti.Fact{other, weak}, []graphiti.Fact{strong}, false, false, []string{"strong"}, ""},
		{"distilled", nil, []graphiti.Fact{key, noKey, common}, false, false, []string{"a key"}, ""},
		{"everywhere, in the first person", nil, []graphiti.Fact{weakRule}, false, false, []string{"everywhere"}, ""},
		{"nothing answers", nil, []graphiti.Fact{weak}, false, false, nil, ReasonWeak},
		{"outside of projects", nil, []graphiti.Fact{strong, weak}, true, false, []string{"strong", "weak"}, ""},
		{"outside of projects, too weak", nil, []graphiti.Fact{weak}, true, false, nil, ReasonWeak},
		{"not about the person", []graphiti.Fact{project}, []graphiti.Fact{strong, key, noKey, rule}, false, true, []string{"of the project", "everywhere"}, ""},
		{"not about the person, and weak", nil, []graphiti.Fact{strong, weakRule}, false, true, nil, ReasonWeak},
		{"nothing was found", nil, nil, false, false, nil, ReasonNothing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i := range tc.ofPerson {
				tc.ofPerson[i].Group = "person"
			}
			ch := &chooser{minScore: 0.25, count: 12, max: 2000, apart: tc.apart}
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
			if why := ch.silence(all); len(got) == 0 && why != tc.whyNothing {
				t.Errorf("reason %q, want %q", why, tc.whyNothing)
			}
		})
	}
}

// TestVisible_Personal checks that in a conversation that shows one personal line, another one is
// not visible, and the same one is.
func TestVisible_Personal(t *testing.T) {
	const shown, other = "user (personal), 2026-11-29: I live in Graz.", "user (personal), 2026-11-29: I eat no meat."
	visible := statementsIn([]string{blockOpen + "- " + shown + "\n" + blockClose})
	if !visible.has(shown) {
		t.Errorf("%q is not visible", shown)
	}
	if visible.has(other) {
		t.Errorf("%q is visible", other)
	}
}
