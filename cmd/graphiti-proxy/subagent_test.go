package main

import (
	"strings"
	"testing"
)

// TestTaskOfASubagent: a conversation that opens with a string of an open tool call is
// a model's, whichever client it is; what a person says in the same words is theirs.
func TestTaskOfASubagent(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	const path, task = "/v1/chat/completions", "My cat is called Miso."
	offer := func(messages ...m) m {
		body := chat(messages...)
		body["tools"] = []m{{"type": "function", "function": m{"name": "ask", "parameters": m{"type": "object", "properties": m{"task": m{"type": "string"}}}}}}
		return body
	}
	ask := func(body m, headers ...string) string {
		t.Helper()
		_, h := w.exchange(path, body, headers...)
		return h.Get("X-Graphiti-Memory")
	}
	isAgents := func(header string) bool { return strings.HasSuffix(header, "reason=subagent") }
	wish := user(`Ask the helper. [[tool ask {"task":"` + task + `","tags":["x"]}]]`)
	if got := ask(offer(wish)); isAgents(got) {
		t.Fatalf("the person's own message: got %s", got)
	}
	child := []m{{"role": "system", "content": "You are a helper."}, user(task)}
	waitUntil(t, "the task to be known", func() bool { return isAgents(ask(chat(child...))) })
	if got := ask(chat(append(child, m{"role": "assistant", "content": "Understood, I will keep that in mind."}, user("Which cat?"))...)); !isAgents(got) {
		t.Errorf("the subagent goes on: got %s, want reason=subagent", got)
	}
	if got := ask(chat(child...)); !isAgents(got) {
		t.Errorf("the subagent's request is sent again: got %s, want reason=subagent", got)
	}
	if got := ask(chat(child...), "X-Graphiti-Workspace", "other"); isAgents(got) {
		t.Errorf("another conversation that opens so: got %s, want none of a subagent", got)
	}
	if got := ask(chat(child...), "X-Graphiti-User", "bob"); isAgents(got) {
		t.Errorf("another person's: got %s, want none of a subagent", got)
	}
	call := m{"role": "assistant", "content": nil, "tool_calls": []m{{"id": "call_1", "type": "function", "function": m{"name": "ask", "arguments": `{"task":"` + task + `","tags":["x"]}`}}}}
	if got := ask(offer(wish, call, m{"role": "tool", "tool_call_id": "call_1", "content": "Miso."})); isAgents(got) {
		t.Errorf("the person's turn goes on: got %s", got)
	}
	for range 3 { // an agent that loops
		if got := ask(chat(child...)); isAgents(got) {
			t.Errorf("the same words after the call has ended: got %s, want none of a subagent", got)
		}
	}
	if got := ask(chat(append(child, m{"role": "assistant", "content": "Understood, I will keep that in mind."}, user("Which cat is it?"))...)); isAgents(got) {
		t.Errorf("they go on: got %s, want none of a subagent", got)
	}
}

// TestRequestAboutAnOpenCall: some clients ask a small model about a call of a tool while
// the call is open. The request names the call's argument after a label.
func TestRequestAboutAnOpenCall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		about bool
	}{
		"one line":         {"Command: make check\nOutput: 3 passed", true},
		"label on a line":  {"Command:\nmake check\nOutput:\n3 passed", true},
		"only the label":   {"Command: make check", true},
		"another command":  {"Command: make clean\nOutput: 3 passed", false},
		"part of a longer": {"Command: make check all\nOutput: 3 passed", false},
		"no label":         {"Please explain make check\nto me.", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, t.TempDir(), nil)
			body := chat(user(`Check it. [[tool ask {"task":"make check"}]]`))
			body["tools"] = []m{{"type": "function", "function": m{"name": "ask", "parameters": m{"type": "object", "properties": m{"task": m{"type": "string"}}}}}}
			w.request(body)
			ask := chat(m{"role": "system", "content": "Extract the paths."}, user(tc.text))
			if !tc.about { // the call must be open by then
				waitUntil(t, "the call to be known", func() bool {
					return strings.HasSuffix(w.header("/v1/chat/completions", chat(m{"role": "system", "content": "Extract."}, user("make check"))), "reason=subagent")
				})
				if got := w.header("/v1/chat/completions", ask); strings.HasSuffix(got, "reason=subagent") {
					t.Errorf("got %s, want a person's turn", got)
				}
				return
			}
			waitUntil(t, "the request to count as one about the call", func() bool {
				return strings.HasSuffix(w.header("/v1/chat/completions", ask), "reason=subagent")
			})
		})
	}
}
