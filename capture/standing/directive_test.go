package standing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDirectives(t *testing.T) {
	for text, want := range map[string][]Directive{
		"preference: tabs, not spaces":                                                {{"preference", "", "tabs, not spaces"}},
		"Fix it.\n\n- Decision (workspace): Postgres, not MySQL\nthanks":              {{"decision", "workspace", "Postgres, not MySQL"}},
		"terminology (global): \"playbook\" means a runbook":                          {{"terminology", "user", "\"playbook\" means a runbook"}},
		"lesson learned: never on Fridays\ntask: ship it":                             {{"lesson_learned", "", "never on Fridays"}, {"task_update", "", "ship it"}},
		"My preference: is that a word?":                                              nil,
		"the decision: was hard":                                                      nil,
		"```\npreference: in code\n```\npreference (project): outside":                {{"preference", "workspace", "outside"}},
		"*\tTask Update(agent): ship it":                                              {{"task_update", "agent", "ship it"}},
		"- - task: x\n-task: x\n task : x":                                            nil,
		"task (): x\ntask (user: x\ntask user): x\ntask (user) y: x":                  nil,
		"task:x\ntask: \ntask":                                                        nil,
		"task_update: ship it\nrepo_state: main is frozen\nLesson_Learned (user): no": {{"task_update", "", "ship it"}, {"repo_state", "", "main is frozen"}, {"lesson_learned", "user", "no"}},
		"preference:":            nil,
		"preference (galaxy): x": nil,
		"http://preference: x":   nil,
	} {
		got, tooLong := Directives(text)
		if diff := cmp.Diff(want, got); diff != "" || tooLong > 0 {
			t.Errorf("%q (-want +got), %d too long:\n%s", text, tooLong, diff)
		}
	}
	if list, tooLong := Directives("decision: " + strings.Repeat("é", 1001) + "\ndecision: short"); len(list) != 1 || tooLong != 1 {
		t.Errorf("%d, and %d too long", len(list), tooLong)
	}
}
