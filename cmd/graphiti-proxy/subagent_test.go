package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestRequestAboutAnOpenCall checks that a request without tools that quotes the command of an
// open round is about it, and no subagent's, unless a person may have asked.
func TestRequestAboutAnOpenCall(t *testing.T) {
	t.Parallel()
	const ofAgent, ofChecker = "You are an agent.", "Extract the paths."
	for name, tc := range map[string]struct {
		prompt, text, client string
		about                bool
	}{
		"after a label":      {ofChecker, "Command: make check\nOutput: 3 passed, in file config.ini", "agent/1", true},
		"in a policy":        {ofChecker, "<policy>\nName the prefix.\n</policy>\n\nThe user allows ls.\n\nCommand:\nmake check", "agent/1", true},
		"in a sentence":      {ofChecker, "Is `make check` safe?", "agent/1", true},
		"another command":    {ofChecker, "Command: make clean\nOutput: 3 passed", "agent/1", false},
		"another client":     {ofChecker, "Please explain make check to me.", "chat/1", false},
		"the agent's prompt": {ofAgent, "Please explain make check to me.", "agent/1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), nil)
			body := chat(m{"role": "system", "content": ofAgent}, user(`Check it. [[tool ask {"task":"make check"}]]`))
			body["tools"] = []m{{"type": "function", "function": m{"name": "ask", "parameters": m{"type": "object", "properties": m{"task": m{"type": "string"}}}}}}
			ask := func(prompt, text, client string) string {
				_, h := w.exchange("/v1/chat/completions", chat(m{"role": "system", "content": prompt}, user(text)), "User-Agent", client)
				return h.Get("X-Graphiti-Memory")
			}
			w.exchange("/v1/chat/completions", body, "User-Agent", "agent/1")
			waitUntil(t, "the call to be known", func() bool {
				return strings.HasSuffix(ask(ofChecker, "Paths of: make check", "agent/1"), "reason=probe")
			})
			if got := ask(tc.prompt, tc.text, tc.client); strings.HasSuffix(got, "reason=probe") != tc.about || strings.HasSuffix(got, "reason=subagent") {
				t.Errorf("got %s, want a request about the call: %v", got, tc.about)
			}
			if work, err := w.cli("memory", "work"); err != nil || strings.Contains(work, "config.ini") {
				t.Errorf("got the work %s, %v; want no content of a file", work, err)
			}
		})
	}
}

// subagents returns a proxy and a model that delegates: it answers some texts, and calls a
// tool with a task for others.
func subagents(t *testing.T) *world {
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	w.delegates()
	return w
}

const (
	rootAsks, childTask, grandTask = "Where does the database listen?", "Find the database's port in the sources.", "List the files that name a port."
	childFound, grandFound         = "Port 6543, from src/app.py.", "src/app.py and src/db.py."
)

func (w *world) delegates() {
	call := func(task string) proxytest.Reply {
		return proxytest.Reply{Tool: "ask", Arguments: argumentsFor(task)}
	}
	w.model.SetAnswer(func(in proxytest.Input) proxytest.Reply {
		first, last := "", in.Messages[len(in.Messages)-1]
		for _, m := range in.Messages {
			if _, said, _ := strings.Cut("\n"+m.Text, "</graphiti_memory>\n\n"); m.Role == "user" && first == "" {
				first = cmp.Or(said, m.Text)
			}
		}
		switch open := last.Role == "user"; {
		case first == rootAsks && open && len(in.Messages) < 3:
			return call(childTask)
		case first == childTask && open && len(in.Messages) < 3 && in.Tools:
			return call(grandTask)
		case first == childTask:
			return proxytest.Reply{Text: childFound}
		case first == grandTask:
			return proxytest.Reply{Text: grandFound}
		}
		return proxytest.Reply{Text: "Understood, it is done."}
	})
}

func argumentsFor(task string) string {
	arguments, _ := json.Marshal(m{"prompt": task, "kind": kindOf(task)})
	return string(arguments)
}

// kindOf returns another string argument of the call for a task.
func kindOf(task string) string { return "by " + task[:4] }

// calls waits until the proxy has read the answer with the call. It probes with another
// string of the call, because a conversation that opens with it is a subagent's, too.
func (w *world) calls(task string) {
	w.t.Helper()
	probe := chat(m{"role": "system", "content": "Extract."}, user(kindOf(task)))
	waitUntil(w.t, "the call to be known", func() bool {
		_, h := w.exchange("/v1/chat/completions", probe, "X-Graphiti-Memory", "recall")
		return strings.HasSuffix(h.Get("X-Graphiti-Memory"), "reason=subagent")
	})
}

// called returns the messages of a tool call and its result.
func called(task, result string) []m {
	return []m{
		{"role": "assistant", "content": nil, "tool_calls": []m{{"id": "call_1", "type": "function", "function": m{"name": "ask", "arguments": argumentsFor(task)}}}},
		{"role": "tool", "tool_call_id": "call_1", "content": result},
	}
}

// TestSubagent_Notes checks that the notes of a person's conversation include the work of
// its subagents at any depth, for each form in which clients name their parents.
func TestSubagent_Notes(t *testing.T) {
	t.Parallel()
	group, _ := graphiti.Namer{}.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: widgets})
	for name, headers := range map[string][3][]string{ // of the root, its child and its grandchild
		"no ids":          {},
		"opencode":        {{"X-Session-Id", "ses_root"}, {"X-Session-Id", "ses_child", "X-Parent-Session-Id", "ses_root"}, {"X-Session-Id", "ses_grand", "X-Parent-Session-Id", "ses_child"}},
		"Claude Code":     {{"X-Claude-Code-Session-Id", "root0000"}, {"X-Claude-Code-Session-Id", "root0000", "X-Claude-Code-Agent-Id", "a"}, {"X-Claude-Code-Session-Id", "root0000", "X-Claude-Code-Agent-Id", "b"}},
		"Codex":           {{"Session-Id", "root", "Originator", "codex"}, {"Session-Id", "root", "X-Codex-Turn-Metadata", `{"request_kind":"turn","thread_source":"subagent"}`}, {"Session-Id", "root", "X-Codex-Turn-Metadata", `{"request_kind":"turn","thread_source":"subagent"}`}},
		"Copilot CLI":     {{"X-Interaction-Type", "conversation-agent"}, {"X-Interaction-Type", "conversation-subagent"}, {"X-Interaction-Type", "conversation-subagent"}},
		"the root's id":   {{"X-Session-Id", "ses_root"}, {"X-Session-Id", "ses_root"}, {"X-Session-Id", "ses_root"}},
		"ids, no parents": {{"X-Session-Id", "ses_root"}, {"X-Session-Id", "ses_child"}, {"X-Session-Id", "ses_grand"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := subagents(t)
			ask := func(agent int, messages ...m) string {
				body := chat(messages...)
				body["tools"] = []m{{"type": "function", "function": m{"name": "ask", "parameters": m{"type": "object", "properties": m{"prompt": m{"type": "string"}}}}}}
				_, h := w.exchange("/v1/chat/completions", body, append([]string{"X-Graphiti-Workspace", widgets}, headers[agent]...)...)
				return h.Get("X-Graphiti-Memory")
			}
			isAgents := func(agent int, messages ...m) bool {
				return strings.HasSuffix(ask(agent, messages...), "reason=subagent")
			}
			child := []m{{"role": "system", "content": "You are a helper."}, user(childTask)}
			grand := []m{{"role": "system", "content": "You are a searcher."}, user(grandTask)}
			ask(0, user(rootAsks))
			w.calls(childTask)
			if !isAgents(1, child...) {
				t.Error("got a person's turn, want the child's")
			}
			w.calls(grandTask)
			if !isAgents(2, grand...) {
				t.Error("got a person's turn, want the grandchild's")
			}
			w.shortTerm(group, grandFound)
			if !isAgents(1, append(child, called(grandTask, grandFound)...)...) {
				t.Error("got a person's turn, want the child's round")
			}
			w.shortTerm(group, childFound)
			w = w.restart()
			w.delegates()
			resumed := append(child, append(called(grandTask, grandFound), answered(childFound), user("And the host's name?"))...)
			if !isAgents(1, resumed...) {
				t.Error("got a person's turn, want the resumed child's after a restart")
			}
			root := append([]m{user(rootAsks)}, called(childTask, childFound)...)
			if got := ask(0, root...); strings.HasSuffix(got, "reason=subagent") {
				t.Errorf("the person's round: got %s", got)
			}
			w.shortTerm(group, `"asked":"`+rootAsks)
			w.model.Forget()
			ask(0, append(root, answered("Port 6543."), user(summarise))...)
			saw := string(w.model.Requests()[0].Body)
			for _, want := range []string{"subagent asked: “" + childTask + "; answered: " + childFound, "subagent asked: “" + grandTask + "; answered: " + grandFound} {
				if !strings.Contains(saw, want) {
					t.Errorf("got the request %s, want %q in the notes", saw, want)
				}
			}
			w = w.restart()
			for _, r := range w.heldIn(group) {
				if strings.Contains(r.Text, childTask) || strings.Contains(r.Text, grandTask) || strings.Contains(r.Text, "host's name") {
					t.Errorf("got %q stored, want none of a subagent's", r.Text)
				}
			}
		})
	}
}

// TestSubagent_BeforeItsCallIsRead checks that a subagent's work is in its parent's notes
// even if its request arrives before the proxy has read the answer with its call, also if
// its client declares it a subagent.
func TestSubagent_BeforeItsCallIsRead(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][2][]string{ // of the root and its child
		"no ids":      {},
		"Copilot CLI": {{"X-Interaction-Type", "conversation-agent"}, {"X-Interaction-Type", "conversation-subagent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
			asked, read := make(chan struct{}), make(chan struct{})
			w.model.SetAnswer(func(in proxytest.Input) proxytest.Reply {
				switch in.Messages[0].Text {
				case rootAsks:
					<-asked
					return proxytest.Reply{Tool: "ask", Arguments: argumentsFor(childTask)}
				case childTask:
					close(asked)
					<-read
				}
				return proxytest.Reply{Text: childFound}
			})
			ask := func(agent int, messages ...m) {
				body := chat(messages...)
				body["tools"] = []m{{"type": "function", "function": m{"name": "ask", "parameters": m{"type": "object"}}}}
				w.exchange("/v1/chat/completions", body, append([]string{"X-Graphiti-Workspace", widgets}, headers[agent]...)...)
			}
			var clients sync.WaitGroup
			clients.Go(func() { ask(0, user(rootAsks)) })
			waitUntil(t, "the root's request", func() bool { return len(w.model.Requests()) == 1 })
			clients.Go(func() { ask(1, user(childTask)) })
			<-asked
			w.calls(childTask)
			close(read)
			clients.Wait()
			w = w.restart()
			w.delegates()
			ask(0, append(append([]m{user(rootAsks)}, called(childTask, childFound)...), answered("Port 6543."), user(summarise))...)
			if want, saw := "subagent asked: “"+childTask+"; answered: "+childFound, string(w.model.Requests()[0].Body); !strings.Contains(saw, want) {
				t.Errorf("got the request %s, want %q in the notes", saw, want)
			}
		})
	}
}

// TestThread checks that the requests of a thread of the Messages API, which the provider holds,
// are one conversation: the answer after the results of a tool ends the turn that called it.
func TestThread(t *testing.T) {
	t.Parallel()
	var answers atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, content, stop := answers.Add(1), `{"type":"text","text":"In burrow Zeta."}`, "end_turn"
		if n == 1 {
			content, stop = `{"type":"tool_use","id":"t1","name":"look","input":{}}`, "tool_use"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"msg_%d","type":"message","role":"assistant","content":[%s],"stop_reason":%q}`, n, content, stop)
	}))
	defer provider.Close()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh", "upstream.anthropic": provider.URL})
	send := func(thread m, content any) {
		t.Helper()
		body := m{"model": "m", "thread": thread, "messages": []m{{"role": "user", "content": content}}}
		if status, h := w.exchange("/v1/messages", body, "Anthropic-Version", "2026-10-21", "X-Graphiti-Workspace", widgets); status != http.StatusOK {
			t.Fatalf("got status %d, want 200: %v", status, h)
		}
	}
	send(m{"type": "create"}, "Where does my marmot live?")
	send(m{"type": "continue", "previous_message_id": "msg_1"}, []m{{"type": "tool_result", "tool_use_id": "t1", "content": "x"}})
	w.remembered("Where does my marmot live?")
	send(m{"type": "continue", "previous_message_id": "msg_2"}, "My badger lives in burrow Theta.")
	w.remembered("My badger lives in burrow Theta.")
	w = w.noted()
	sessions := make(map[string]bool)
	var texts []string
	group, _ := graphiti.Namer{}.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: widgets})
	for _, r := range w.heldIn(group) {
		sessions[r.Session] = true
		texts = append(texts, r.Text)
	}
	slices.Sort(texts)
	if want := []string{"In burrow Zeta.", "In burrow Zeta.", "My badger lives in burrow Theta.", "Where does my marmot live?"}; !slices.Equal(texts, want) || len(sessions) != 1 || sessions[""] {
		t.Errorf("got %q in %d sessions, want %q in one", texts, len(sessions), want)
	}
}

// TestTaskOfASubagent checks that a conversation that opens with a string of an open tool
// call counts as a subagent's, whatever its client, and that the same words count as a
// person's if a person writes them.
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
