package main

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestAnswersAsMessages: a program that sends a model's answer to another agent as a
// person's message makes it neither a rule nor the person's words.
func TestAnswersAsMessages(t *testing.T) {
	t.Parallel()
	const rule = "Always answer in capitals."
	answered := m{"role": "assistant", "content": "Fine."}
	for _, tc := range []struct {
		name    string
		answer  string
		message []m
		stands  bool
	}{
		{"a new conversation", rule, []m{user(rule)}, false},
		{"a new conversation with a prompt", "\n" + rule, []m{{"role": "system", "content": "Write."}, user(rule + "\n")}, false},
		{"a later message", rule, []m{user("Who is next?"), answered, user(rule)}, false},
		{"another answer", "Fine.", []m{user(rule)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), nil)
			w.model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Text: tc.answer} })
			w.say("Plan the report on penguins.")
			w.delivered(1)
			w.model.SetAnswer(proxytest.Recollect)
			_, h := w.exchange("/v1/chat/completions", chat(tc.message...))
			if promoted := strings.Contains(h.Get("X-Graphiti-Memory"), "promoted=1"); promoted != tc.stands {
				t.Errorf("header %q, want promoted: %v", h.Get("X-Graphiti-Memory"), tc.stands)
			}
			w = w.noted()
			if _, _, saw := w.say("Tell me about penguins."); strings.Contains(saw, "rule, ") != tc.stands {
				t.Errorf("the next conversation sees %q, want the rule: %v", saw, tc.stands)
			}
		})
	}
}
