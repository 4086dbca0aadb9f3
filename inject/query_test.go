package inject

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestQuery checks the contents of a turn's query.
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
	quiet := strings.Repeat("2026-11-21 09:00:00 INFO nothing happened\n", lookedAt/20) // longer than both ends that are read
	prose := strings.Repeat("Rows are read in the order of their numbers.\n", lookedAt/20)
	for _, tc := range []struct {
		name  string
		said  []string
		want  []string
		never []string
	}{
		{"a follow-up asks what the conversation is about", []string{"Compare the harbours of Porto and Vigo.", "and the second one?"}, []string{"and the second one?" + graphiti.Earlier + "Compare", "Porto and Vigo"}, nil},
		{"what has paragraphs is one question", []string{"Compare the harbours.", "The second one:\n \r\n\nhow deep is it?"}, []string{"one:\nhow deep is it?" + graphiti.Earlier + "Compare"}, nil},
		{"less of what was said longer ago", []string{strings.Repeat("first ", 200), strings.Repeat("second ", 200), "and now?"},
			[]string{"and now?", "second second", "first first"}, []string{strings.Repeat("first ", 40), strings.Repeat("second ", 80)}},
		{"a whole question stands by itself", []string{"What about Porto?", "Which of our warehouses is nearest to the harbour of Vigo, counting from the north?"}, []string{"harbour of Vigo"}, []string{"Porto"}},
		{"code is told by its first line", []string{long + "\nWhy?\n```go\nfunc importRows(db *sql.DB) error {\n\tx := 1\n\tsecretName := 2\n}\n```\nthanks"}, []string{"func importRows", "Why?", "thanks"}, []string{"secretName"}},
		{"a log is told by what went wrong", []string{long + "\n" + log.String() + "What happened?"}, []string{"connection refused by warehouse-7", "What happened?"}, []string{"step 7 done", "step 30"}},
		{"a few lines of one stay", []string{long + "\n2026-11-21 09:00:01 INFO step one\nWhat is that?"}, []string{"step one"}, nil},
		{"so is one within a fence", []string{long + "\n```\n$ make test\n" + failures.String() + "```\nWhich of them is mine?"},
			[]string{"$ make test", "test 000 failed", "test 002 failed", "Which of them is mine?"}, []string{"test 003", "test 199"}},
		{"of a large log the ends are looked at", []string{"```\n$ make run\nERROR early\n" + quiet + "ERROR between\n" + quiet + "ERROR late\n```\nWhat happened?"},
			[]string{"$ make run", "ERROR early", "ERROR late", "What happened?"}, []string{"between"}},
		{"so are those of one that stands by itself", []string{quiet + "2026-11-21 09:00:00 ERROR between\n" + quiet + "2026-11-21 09:00:00 ERROR late\nWhat happened?"},
			[]string{"ERROR late", "What happened?"}, []string{"between"}},
		{"a block that ends between does not swallow the question", []string{"```\nx := 1\n" + prose + "```\n" + quiet + "What is x?"}, []string{"x := 1", "What is x?"}, []string{"Rows"}},
		{"a block that begins between is none of the person's words", []string{quiet + "```\n" + prose + "y := 2\n```\nWhat is y?"}, []string{"What is y?"}, []string{"Rows", "y := 2"}},
		{"a line has no end", []string{"```\n" + strings.Repeat("x", lookedAt) + "\n```\n" + strings.Repeat("word ", lookedAt)}, []string{"xxx\nword word"}, nil},
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
		q := query(c, c.Text(c.Last), c.Last)
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

func BenchmarkQuery(b *testing.B) {
	for name, line := range map[string]string{"log": "2026-11-21 09:00:00 INFO step one done and nothing else\n", "prose": "The importer reads rows from the warehouse.\n", "empty": "\n"} {
		text := []byte("```\n" + strings.Repeat(line, (1<<20)/len(line)) + "```\nWhat happened?")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				reduced(text)
			}
		})
	}
}

// TestNothingAskedHoldsASecret checks that the query of a turn contains no secret, and no part
// of one at a cut. A redaction that takes too long costs the
// recall, but no time.
func TestNothingAskedHoldsASecret(t *testing.T) {
	const secret = "key-abcdefghijklmnopqrstuvwxyz"
	redact := func(text string, _ time.Time) (string, bool) {
		return strings.ReplaceAll(text, secret, "[redacted]"), true
	}
	words := strings.Repeat("The importer reads rows. ", 200)
	upTo := func(n int) string { return words[:n-len(secret)/2] + " " + secret + " is it, and so on." }
	chat := func(said ...string) string {
		var messages []map[string]string
		for i, s := range said {
			if i > 0 {
				messages = append(messages, map[string]string{"role": "assistant", "content": "ok"})
			}
			messages = append(messages, map[string]string{"role": "user", "content": s})
		}
		body, _ := json.Marshal(map[string]any{"messages": messages})
		return string(body)
	}
	logs := strings.Repeat("2026-11-21 09:00:00 INFO step done\n", 9) + "2026-11-21 09:01:00 ERROR refused: " + words[:lineLength-40-len(secret)/2] + " " + secret + "\n"
	for name, tc := range map[string]struct{ body, want string }{
		"a question":          {chat("Why does " + secret + " not work?"), "Why does [redacted] not work?"},
		"a long one":          {chat(upTo(maxQuery)), "The importer"},
		"what was asked":      {chat("Use "+secret+" for Porto.", "and now?"), "Use [redacted] for Porto."},
		"what was asked, cut": {chat(upTo(window[0]), "and now?"), "The importer"},
		"code":                {chat(words[:400] + "\n```\n" + words[:lineLength-len(secret)/2] + " " + secret + "\n```\n"), "The importer"},
		"a log":               {chat(words[:400] + "\n" + logs), "ERROR refused"},
	} {
		var mu sync.Mutex
		var asked []string
		m := memory(t, func(_ context.Context, _, query string) ([]graphiti.Fact, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, query)
			return nil, nil
		}, &fakeDecisions{})
		m.opts().Redact = redact
		ask(t, m, tc.body, both)
		if len(asked) != 2 || !strings.Contains(asked[0], tc.want) || strings.Contains(strings.Join(asked, " "), "key-a") {
			t.Errorf("%s: got %q, want two questions, %q in the first, no key", name, asked, tc.want)
		}
		m.opts().Redact = func(_ string, by time.Time) (string, bool) { return "", time.Now().After(by) }
		asked = nil
		if _, p := ask(t, m, chat("Something else, that takes long"), both); p.Outcome.Status != StatusTimeout || len(asked) != 0 {
			t.Errorf("too late: %+v, %q", p.Outcome, asked)
		}
	}
}

// TestRoutineMessages checks that greetings, thanks and requests to continue do not ask
// in any language, unless they come with other words, and that a question about the person
// does.
func TestRoutineMessages(t *testing.T) {
	for said, want := range map[string]bool{
		"hello": false, "Ok, thanks!": false, "go on, please": false, "continue": false, "why?": false, "": false,
		"ja, mach das": false, "Danke schön": false, "c'est parfait, merci": false, "continúa": false, "ok grazie": false,
		"dziękuję": false, "Спасибо": false, "谢谢": false, "继续": false, "ありがとう": false, "감사합니다": false,
		"go on with the parser": true, "thanks, and Miso?": true, "beans?": true, "danke, und die Datenbank?": true, "谢谢，我的猫呢？": true,
		"who am I?": true, "Wer bin ich?": true,
	} {
		if got := asks([]byte(said)); got != want {
			t.Errorf("%q: got %v, want %v", said, got, want)
		}
	}
}
