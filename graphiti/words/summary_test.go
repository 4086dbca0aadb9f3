package words

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadSummary reads the forms of several clients' summaries.
func TestReadSummary(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Summary
	}{
		"numbered headings": {
			"1. Primary Request and Intent:\n   Parse the orders.\n   It took long.\n\n3. Files and Code Sections:\n   - src/a.py\n\n4. Errors and fixes:\n   - TypeError\n\n7. Pending Tasks:\n   - Test empty fields\n   - Write the docs\n",
			Summary{About: "Parse the orders.", Open: []string{"Test empty fields", "Write the docs"}},
		},
		"Markdown with check boxes": {
			"## Goal\nMove the queue\n## Constraints & Preferences\n- No globals\n## Progress\n### Done\n- [x] Rename it\n### In Progress\n- [ ] Measure it\n### Blocked\n- (none)\n## Key Decisions\n- **Redis**: it is there already\n## Next Steps\n1. Delete the old one\n## Critical Context\n- Port 6543\n",
			Summary{About: "Move the queue", Decided: []string{"No globals", "Redis: it is there already", "Port 6543"}, Open: []string{"Measure it", "Delete the old one"}, Done: []string{"Rename it"}},
		},
		"elements": {
			"<state_snapshot>\n<overall_goal>\nMove the queue\n</overall_goal>\n<key_knowledge>\n- Port 6543\n</key_knowledge>\n<file_system_state>\n- READ: a.py\n</file_system_state>\n<current_plan>\n1. [DONE] Rename it\n2. [IN PROGRESS] Measure it\n3. [TODO] Delete it\n</current_plan>\n</state_snapshot>",
			Summary{About: "Move the queue", Decided: []string{"Port 6543"}, Open: []string{"Measure it", "Delete it"}, Done: []string{"Rename it"}},
		},
		"what is done now, in prose":  {"7. Pending Tasks:\n   - Write the runbook\n\n8. Current Work:\n   The build passes again.\n\n9. Optional Next Step:\n   Ship it.\n**Active work:** the tests pass\nCurrent plan: tell the team\n", Summary{Open: []string{"Write the runbook", "Ship it.", "tell the team"}}},
		"what is done now, in a list": {"### Active\nIn three steps.\n- lexer\n### Current state\n1. the parser\n[TODO] the docs\n", Summary{Open: []string{"lexer", "the parser", "the docs"}}},
		"on one line":                 {"**Goal:** Move the queue\n**Remaining work:** measure it", Summary{About: "Move the queue", Open: []string{"measure it"}}},
		"nothing is open":             {"Pending tasks:\n- None\nNext steps:\nNo remaining work.", Summary{}},
		"without headings":            {"We moved the queue.\n- It has a port\n- It is fast", Summary{}},
		"a heading inside":            {"Next steps:\n- Note: see b.py\n- measure it", Summary{Open: []string{"Note: see b.py", "measure it"}}},
	} {
		if diff := cmp.Diff(tc.want, ReadSummary(tc.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzReadSummary(f *testing.F) {
	f.Add("## Next\n- [x] a\n- [ ] b\nplan: c\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, list := range [][]string{ReadSummary(text).Open, ReadSummary(text).Decided, ReadSummary(text).Done} {
			if len(list) > maxPoints {
				t.Errorf("got %d points, want at most %d", len(list), maxPoints)
			}
		}
	})
}
