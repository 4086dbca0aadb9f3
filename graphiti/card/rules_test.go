package card

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

var (
	other   = graphiti.Target{Scope: graphiti.ScopeWorkspace, Group: "v"}
	nowhere = graphiti.Target{Scope: graphiti.ScopeUser, Group: "u"}
)

// said is a message of a conversation of its own.
type message struct {
	to   graphiti.Target
	text string
}

// TestWhereARuleHolds: a rule of one project never opens another's conversation; it
// is everywhere once it was said in two, outside of projects, or says so.
func TestWhereARuleHolds(t *testing.T) {
	const (
		tabs   = "Always use tabs for indentation."
		apply  = "Never run the migration without asking me."
		plain  = "Use British spelling in the thesis."
		all    = "Always answer in English, whatever project it is."
		spaces = "Never use tabs for indentation."
	)
	for name, tc := range map[string]struct {
		said                   []message
		here, elsewhere, alone string // what stands on the card of the project, of another, and outside
	}{
		"in one conversation":                       {said: []message{{project, tabs}}},
		"twice in a project":                        {[]message{{project, tabs}, {project, tabs}}, tabs, "", ""},
		"twice in another":                          {[]message{{other, apply}, {other, apply}}, "", apply, ""},
		"in two projects":                           {[]message{{project, tabs}, {other, tabs}}, tabs, tabs, tabs},
		"in other words in two projects":            {[]message{{project, tabs}, {other, "Please always indent with tabs, use them."}}, "Please always indent with tabs, use them.", "Please always indent with tabs, use them.", "Please always indent with tabs, use them."},
		"twice outside of projects":                 {[]message{{nowhere, tabs}, {nowhere, tabs}}, tabs, tabs, tabs},
		"in a project and outside":                  {[]message{{project, tabs}, {nowhere, tabs}}, tabs, tabs, tabs},
		"once, for all projects":                    {said: []message{{project, all}}},
		"twice in one project, for all":             {[]message{{project, all}, {project, all}}, all, all, all},
		"one thing here, and its opposite there":    {said: []message{{project, tabs}, {other, spaces}}},
		"nothing says that it is a rule":            {[]message{{project, plain}, {project, plain}}, plain, "", ""},
		"nothing says so, outside of projects":      {[]message{{nowhere, plain}, {nowhere, plain}}, plain, plain, plain},
		"nothing says so, and in two projects":      {said: []message{{project, plain}, {other, plain}}},
		"nothing says so, and then in a second one": {said: []message{{project, plain}, {project, plain}, {other, plain}}, here: plain},
		"nothing says so, over and over":            {said: []message{{project, plain}, {project, plain}, {project, plain}, {project, plain}}},
		"a rule that is said over and over":         {[]message{{project, tabs}, {project, tabs}, {project, tabs}, {project, tabs}, {project, tabs}}, tabs, "", ""},
		"a short request":                           {said: []message{{project, "Run the tests."}, {project, "Run the tests."}}},
		"an error":                                  {said: []message{{project, "git push fails: rejected, non-fast-forward"}, {project, "git push fails: rejected, non-fast-forward"}}},
		"a question":                                {said: []message{{project, "Why does it always fail on the second run?"}, {project, "Why does it always fail on the second run?"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Cards{Lists: &fakeLists{}}
			for n, m := range tc.said {
				keep(t, c, m.to, fmt.Sprint("session:", n), "", m.text, n+1)
			}
			for _, on := range []struct {
				card  string
				reads []graphiti.Target
				want  string
			}{{"here", []graphiti.Target{project, ann}, tc.here}, {"elsewhere", []graphiti.Target{other, ann}, tc.elsewhere}, {"outside", []graphiti.Target{ann}, tc.alone}} {
				var got []string
				for _, line := range texts(t, c, on.reads...) {
					_, text, _ := strings.Cut(line, ": ")
					got = append(got, text)
				}
				if strings.Join(got, "|") != on.want {
					t.Errorf("%s: %q, want %q", on.card, got, on.want)
				}
			}
		})
	}
}

// TestRoutineRequests: what is said twice in one conversation, and only looks like a
// rule, comes off the card.
func TestRoutineRequests(t *testing.T) {
	const routine = "Bump the version and publish to npm."
	c := Cards{Lists: &fakeLists{}}
	keep(t, c, project, "session:1", "", routine, 1)
	keep(t, c, project, "session:2", "", routine, 2)
	if got := texts(t, c, project); len(got) != 1 {
		t.Errorf("said in two: %q", got)
	}
	keep(t, c, project, "session:2", "", routine, 3)
	if got := texts(t, c, project); got != nil {
		t.Errorf("said twice in one: %q", got)
	}
}

// TestManySentencesPushOutNoRule: what may be said again is noted apart from rules.
func TestManySentencesPushOutNoRule(t *testing.T) {
	f := &fakeLists{}
	c := Cards{Lists: f}
	for n := range 200 {
		keep(t, c, project, fmt.Sprint("session:", n), "", fmt.Sprintf("Write handler %d for request type%d with field%d.", n, n, n), 1)
	}
	for list := range f.lists {
		if !strings.HasPrefix(list, "seen:") {
			t.Errorf("%d entries of %s", len(f.lists[list]), list)
		}
	}
}

// TestSaidAgainOfOneself: what a person says of themselves in two conversations of
// projects goes into their own memory, once, and stands on no card.
func TestSaidAgainOfOneself(t *testing.T) {
	var own []string
	c := Cards{Lists: &fakeLists{}, Own: func(said []ledger.Turn) bool {
		for _, s := range said {
			own = append(own, s.User)
			if s.Sure || len(s.Targets) != 1 || s.Targets[0] != ann || s.Session == "" {
				t.Errorf("got turn %+v, want one of the person alone, not sure", s)
			}
		}
		return true
	}}
	keep(t, c, project, "session:1", "", "My cat is called Miso. The staging host is down.", 1)
	keep(t, c, project, "session:1", "", "My cat is called Miso.", 2)
	if own != nil {
		t.Errorf("of one conversation: %q", own)
	}
	keep(t, c, other, "session:2", "", "Fix it. My cat is called Miso.", 3)
	keep(t, c, other, "session:3", "", "What was it? My cat is called Miso.", 4)
	if diff := cmp.Diff([]string{"My cat is called Miso."}, own); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, to := range []graphiti.Target{project, other} {
		if got := texts(t, c, to, ann); got != nil {
			t.Errorf("on the card: %q", got)
		}
	}
}

// TestRulesBelongToWhatIsForgotten: what is noted of a project for the person ends
// with the project too, and with the conversation.
func TestRulesBelongToWhatIsForgotten(t *testing.T) {
	f := &fakeLists{}
	c := Cards{Lists: f}
	keep(t, c, project, "session:1", "", "Always use tabs. Use British spelling in the thesis.", 1)
	sessions := []string{graphiti.SessionScope("session:1", ""), graphiti.SessionScope("session:1", "user:ann")}
	if len(f.lists) != 3 {
		t.Errorf("%d lists", len(f.lists))
	}
	for list, got := range f.scopes {
		want := append([]string{"u", "w"}, sessions...)
		if list == "said:w" {
			want = want[1:]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list, diff)
		}
	}
}

// BenchmarkCard reads a card with as many entries as its lists hold.
func BenchmarkCard(b *testing.B) {
	c := Cards{Lists: &fakeLists{}}
	for n := range 64 {
		turn := &ledger.Turn{
			User: fmt.Sprintf("Always write the %c%cfield of %c%chandlers in lower case.", 'a'+n/4, 'a'+n/2%26, 'a'+n/2%26, 'a'+n/4), Sure: true, Session: fmt.Sprint("session:", n), Owner: "user:ann", Said: day(1),
			Person: ann.Group, Targets: []graphiti.Target{project},
		}
		if err := c.Keep(turn, []string{project.Group}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if facts, err := c.Facts(b.Context(), reads); err != nil || len(facts) != 32 {
			b.Fatalf("%d, %v", len(facts), err)
		}
	}
}
