package capture

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDirectives(t *testing.T) {
	for text, want := range map[string][]Directive{
		"preference: tabs, not spaces":                                   {{"preference", "", "tabs, not spaces"}},
		"Fix it.\n\n- Decision (workspace): Postgres, not MySQL\nthanks": {{"decision", "workspace", "Postgres, not MySQL"}},
		"terminology (global): \"playbook\" means a runbook":             {{"terminology", "user", "\"playbook\" means a runbook"}},
		"lesson learned: never on Fridays\ntask: ship it":                {{"lesson_learned", "", "never on Fridays"}, {"task_update", "", "ship it"}},
		"My preference: is that a word?":                                 nil,
		"the decision: was hard":                                         nil,
		"```\npreference: in code\n```\npreference (project): outside":   {{"preference", "workspace", "outside"}},
		"preference:":            nil,
		"preference (galaxy): x": nil,
		"http://preference: x":   nil,
	} {
		if diff := cmp.Diff(want, Directives(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
