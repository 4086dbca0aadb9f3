package main

import (
	"strings"
	"testing"
)

// TestEditedMessagesReplaceEarlierOnes: an edited message after the same history ends the
// earlier turn as soon as it is answered, and any other as soon as the conversation continues
// with it.
func TestEditedMessagesReplaceEarlierOnes(t *testing.T) {
	t.Parallel()
	const noted = "Understood, I will keep that in mind."
	answered := func(text string) []m { return []m{user(text), {"role": "assistant", "content": noted}} }
	cat, rex, bello := answered("My cat is called Miso."), answered("My dog is called Rex."), answered("My dog is called Bello.")
	red, blue := answered("My bicycle is red, and it is new."), answered("My bicycle is blue, and it is new.")
	thanks := user("Thanks, that is all for today.")
	with := func(parts ...[]m) (all []m) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, tc := range []struct {
		name     string
		session  string
		requests [][]m
		rex      bool // the message about Rex is valid
	}{
		{"edited", "s", [][]m{with(cat[:1]), with(cat, rex[:1]), with(cat, bello[:1]), with(cat, bello, []m{thanks})}, false},
		{"edited, without a session id", "", [][]m{with(cat[:1]), with(cat, rex[:1]), with(cat, bello[:1]), with(cat, bello, []m{thanks})}, false},
		{"back over two messages, edited", "s", [][]m{with(bello[:1]), with(bello, red[:1]), with(bello, red, rex[:1]), with(bello, blue[:1])}, false},
		{"back over two messages, another one", "s", [][]m{with(bello[:1]), with(bello, red[:1]), with(bello, red, rex[:1]), with(bello, cat[:1]), with(bello, cat, []m{thanks})}, false},
		{"back over two messages, not continued", "s", [][]m{with(bello[:1]), with(bello, red[:1]), with(bello, red, rex[:1]), with(bello, cat[:1])}, true},
		{"the first message", "s", [][]m{with(rex[:1]), with(bello[:1]), with(bello, []m{thanks})}, false},
		{"two conversations that begin alike", "", [][]m{with(rex[:1]), with(bello[:1]), with(bello, []m{thanks})}, true},
		{"not continued", "s", [][]m{with(cat[:1]), with(cat, rex[:1]), with(cat, bello[:1])}, false},
		{"another message, not continued", "s", [][]m{with(cat[:1]), with(cat, rex[:1]), with(cat, []m{thanks})}, true},
		{"the first message, not continued", "s", [][]m{with(rex[:1]), with(bello[:1])}, true},
		{"continued with the first", "s", [][]m{with(cat[:1]), with(cat, bello[:1]), with(cat, rex[:1]), with(cat, rex, []m{thanks})}, true},
		{"one after the other", "s", [][]m{with(rex[:1]), with(rex, bello[:1]), with(rex, bello, []m{thanks})}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), nil)
			for i, messages := range tc.requests {
				var headers []string
				if tc.session != "" {
					headers = []string{"X-Graphiti-Session", tc.session}
				}
				if status, _ := w.exchange("/v1/chat/completions", chat(messages...), headers...); status != 200 {
					t.Fatalf("request %d: status %d", i, status)
				}
				w.delivered(i + 1)
			}
			_, valid := w.asks("", "memory/search", m{"user": "me", "kind": "fact", "state": "valid"})
			if strings.Contains(valid, "Rex") != tc.rex {
				t.Errorf("got the valid facts %s, want Rex in them: %v", valid, tc.rex)
			}
			if _, _, saw := w.say("What is my dog called?"); !tc.rex && strings.Contains(saw, "Rex") {
				t.Errorf("a later conversation sees %q, want no Rex", saw)
			}
		})
	}
}

// TestEditedRulesReplaceEarlierOnes: the rule of an edited message does not open later
// conversations.
func TestEditedRulesReplaceEarlierOnes(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	place := []string{"X-Graphiti-Workspace", "github_repo:github.com/acme/shop"}
	replied := m{"role": "assistant", "content": "Understood, I will keep that in mind."}
	const first, second = "Always deploy with make ship.", "Always deploy with make release."
	for i, messages := range [][]m{{user("hello")}, {user("hello"), replied, user(first)}, {user("hello"), replied, user(second)}, {user("hello"), replied, user(second), replied, user("Thanks, that is all.")}} {
		w.exchange("/v1/chat/completions", chat(messages...), append([]string{"X-Graphiti-Session", "s"}, place...)...)
		w.delivered(i + 1)
	}
	if block := w.opening("next", "hello", place...); strings.Contains(block, "make ship") || !strings.Contains(block, "make release") {
		t.Errorf("the next conversation begins with %q, want the second rule only", block)
	}
}
