package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestHarness: what a harness wrote is taken out, and what a person says of it
// is not, in time that is linear in the text: each of the large ones would take
// minutes if it were not.
func TestHarness(t *testing.T) {
	const n = 1 << 17
	many := func(s string) string { return strings.Repeat(s, n) }
	for _, tc := range []struct {
		name       string
		role       string
		text, want string
	}{
		{"elements beside words", "user", "<system-reminder>a</system-reminder>b<skill name=\"x\">c</skill>\nd", "b\nd"},
		{"one within another", "user", "a<system-reminder>b<skill>c</skill>d</system-reminder>e", "ae"},
		{"one within its like ends with the first end", "user", "a<skill>b<skill>c</skill>d</skill>e", "ad</skill>e"},
		{"a mention, and an element of another kind", "user", "what is <skill>? <system-reminder>x</system-reminder>", "what is <skill>?"},
		{"a mention at the end", "user", "<skill>a</skill>what is <skill", "what is <skill"},
		{"a longer name before an element", "user", "<skills>a</skills><skill>b</skill>c", "<skills>a</skills>c"},
		{"an end without a beginning", "user", "a</skill>b", "a</skill>b"},
		{"thoughts", "assistant", "<think>a</think>b<thinker>c</thinker><think>d</think>", "b<thinker>c</thinker>"},

		{"longer names", "user", many("<skillx ") + "</skill>", many("<skillx ") + "</skill>"},
		{"longer names, and an element at the end", "user", many("<skillx ") + "<skill>a</skill>", strings.TrimSpace(many("<skillx "))},
		{"no end", "user", many("<skill>"), many("<skill>")},
		{"one end", "user", many("<skill>") + "</skill>a", "a"},
		{"all ends behind", "user", many("<skill>") + many("</skill>"), many("</skill>")[len("</skill>"):]},
		{"elements", "user", many("<skill>a</skill>b"), many("b")},
		{"elements of two kinds, crossed", "user", many("<skill><user_action></skill></user_action>") + "a", many("</user_action>") + "a"},
		{"ends alone", "user", many("</skill>"), many("</skill>")},
		{"brackets", "user", many("<"), many("<")},
		{"longer names of thoughts", "assistant", many("<thinker>") + "</think>", many("<thinker>") + "</think>"},
	} {
		body, err := json.Marshal(map[string]any{"messages": []any{map[string]string{"role": tc.role, "content": tc.text}}})
		if err != nil {
			t.Fatal(err)
		}
		c, ok := parse(t, string(body))
		if !ok {
			t.Fatalf("%s: not understood", tc.name)
		}
		if got := string(c.Text(0)); got != tc.want {
			t.Errorf("%s: %d bytes %.100q, want %d bytes %.100q", tc.name, len(got), got, len(tc.want), tc.want)
		}
	}
}
