package inject

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestQuery checks the contents of a turn's query.
func TestQuery(t *testing.T) {
	long := strings.Repeat("The importer reads rows from the warehouse. ", 8)
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
		{"of a long text the ends are searched", []string{"Why does this fail?\n```\n" + strings.Repeat("2026-11-21 09:00:00 INFO step done\n", 9000) + "ERROR refused by warehouse-7\n```\nWho owns it?" + long},
			[]string{"Why does this fail?", "ERROR refused by warehouse-7", "Who owns it?"}, nil},
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
	for name, tc := range map[string]struct{ body, want string }{
		"a question":          {chat("Why does " + secret + " not work?"), "Why does [redacted] not work?"},
		"a long one":          {chat(upTo(maxQuery)), "The importer"},
		"what was asked":      {chat("Use "+secret+" for Porto.", "and now?"), "Use [redacted] for Porto."},
		"what was asked, cut": {chat(upTo(window[0]), "and now?"), "The importer"},
		"the end of a log":    {chat(strings.Repeat("x", 9000) + " " + secret + words[:maxQuery/4-len(secret)/2]), "The importer"},
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
