package inject

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestQuery: what is asked of the memory for a turn.
func TestQuery(t *testing.T) {
	long := strings.Repeat("The importer reads rows from the warehouse. ", 8)
	var log strings.Builder
	for i := range 40 {
		fmt.Fprintf(&log, "2026-11-21 09:00:%02d INFO step %d done\n", i, i)
	}
	log.WriteString("2026-11-21 09:01:00 ERROR connection refused by warehouse-7\n")
	var failures strings.Builder
	for i := range 200 {
		fmt.Fprintf(&failures, "test %03d failed\n", i)
	}
	for _, tc := range []struct {
		name  string
		said  []string
		want  []string
		never []string
	}{
		{"a follow-up asks what the conversation is about", []string{"Compare the harbours of Porto and Vigo.", "and the second one?"}, []string{"and the second one?", "Porto and Vigo"}, nil},
		{"less of what was said longer ago", []string{strings.Repeat("first ", 200), strings.Repeat("second ", 200), "and now?"},
			[]string{"and now?", "second second", "first first"}, []string{strings.Repeat("first ", 40), strings.Repeat("second ", 80)}},
		{"a whole question stands by itself", []string{"What about Porto?", "Which of our warehouses is nearest to the harbour of Vigo, counting from the north?"}, []string{"harbour of Vigo"}, []string{"Porto"}},
		{"code is told by its first line", []string{long + "\nWhy?\n```go\nfunc importRows(db *sql.DB) error {\n\tx := 1\n\tsecretName := 2\n}\n```\nthanks"}, []string{"func importRows", "Why?", "thanks"}, []string{"secretName"}},
		{"a log is told by what went wrong", []string{long + "\n" + log.String() + "What happened?"}, []string{"connection refused by warehouse-7", "What happened?"}, []string{"step 7 done", "step 30"}},
		{"a few lines of one stay", []string{long + "\n2026-11-21 09:00:01 INFO step one\nWhat is that?"}, []string{"step one"}, nil},
		{"so is one within a fence", []string{long + "\n```\n$ make test\n" + failures.String() + "```\nWhich of them is mine?"},
			[]string{"$ make test", "test 000 failed", "test 002 failed", "Which of them is mine?"}, []string{"test 003", "test 199"}},
		{"harness text is not asked for", []string{"<system-reminder>The directory is /x</system-reminder>Who owns the importer?"}, []string{"Who owns the importer?"}, []string{"directory"}},
	} {
		var messages []map[string]string
		for i, s := range tc.said {
			if i > 0 {
				messages = append(messages, map[string]string{"role": "assistant", "content": "ok"})
			}
			messages = append(messages, map[string]string{"role": "user", "content": s})
		}
		body, _ := json.Marshal(map[string]any{"messages": messages})
		c, _ := parse(t, string(body))
		q := c.query()
		if len(q) > maxQuery {
			t.Errorf("%s: %d bytes", tc.name, len(q))
		}
		for _, w := range tc.want {
			if !strings.Contains(q, w) {
				t.Errorf("%s: %q does not hold %q", tc.name, q, w)
			}
		}
		for _, n := range tc.never {
			if strings.Contains(q, n) {
				t.Errorf("%s: %q holds %q", tc.name, q, n)
			}
		}
	}
}
