package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// round is one tool round: a call and its result.
type round struct{ tool, arguments, result string }

// works sends the requests of one turn, in which the model calls tools before it answers.
func (w *world) works(session, said string, rounds ...round) {
	w.t.Helper()
	w.worksIn([]string{"X-Graphiti-Session", session, "X-Graphiti-Workspace", widgets}, said, rounds...)
}

func (w *world) worksIn(headers []string, said string, rounds ...round) {
	w.t.Helper()
	defer w.model.SetAnswer(proxytest.Recollect)
	messages := []m{user(said)}
	for i := range len(rounds) + 1 {
		w.model.SetAnswer(func(proxytest.Input) proxytest.Reply {
			if i == len(rounds) {
				return proxytest.Reply{Text: "It is repaired: the old server kept the port."}
			}
			return proxytest.Reply{Tool: rounds[i].tool, Arguments: rounds[i].arguments}
		})
		body := chat(messages...)
		body["tools"] = []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object"}}}}
		if status, _ := w.exchange("/v1/chat/completions", body, headers...); status != 200 {
			w.t.Fatalf("round %d: status %d, want 200", i, status)
		}
		if i < len(rounds) {
			r, id := rounds[i], fmt.Sprint("call_", headers[1], i)
			messages = append(messages, m{"role": "assistant", "content": "", "tool_calls": []m{{"id": id, "type": "function", "function": m{"name": r.tool, "arguments": r.arguments}}}},
				m{"role": "tool", "tool_call_id": id, "content": r.result})
		}
	}
}

// work returns the texts about work in the memory of the project.
func (w *world) work() (all string) {
	w.t.Helper()
	waitUntil(w.t, "memory work", func() bool {
		found, err := w.remembers().service.Search(w.t.Context(), &service.SearchRequest{Selector: service.Selector{User: "user:josh", Workspace: widgets}, SearchFilter: service.SearchFilter{Everything: true, Kind: graphiti.KindWork}, Limit: 20})
		all = ""
		for _, f := range found.Facts {
			all += f.Text + "\n"
		}
		return err == nil
	})
	return all
}

func (w *world) worked(line string) {
	w.t.Helper()
	waitUntil(w.t, "work: "+line, func() bool { return strings.Contains(w.work(), line) })
}

const portError = "Error: listen EADDRINUSE: address already in use :::3000"

var rounds = []round{
	{"bash", `{"command":"npm test"}`, portError + "\n<shellId: 0 completed with exit code 1>"},
	{"edit", `{"filePath":"src/server.ts","oldString":"a","newString":"b"}`, "done"},
	{"todowrite", `{"todos":[{"content":"Close the server","status":"completed"},{"content":"Write the docs","status":"pending"}]}`, "ok"},
	{"bash", `{"command":"npm test"}`, "Tests: 4 passed, 4 total\n<shellId: 0 completed with exit code 0>"},
}

// TestWork checks that the work of a turn is listed and recalled, that a new conversation of the
// project begins with the changed files and the open points, and that a forget removes them. No
// error line of the repository enters a block.
func TestWork(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		w := start(t, t.TempDir(), settings)
		project := []string{"X-Graphiti-Workspace", widgets}
		w.works("one", "Please repair the server of the shop.", rounds...)
		w.worked("changed src/server.ts; ran \"npm test\": passed")
		w.remembered("Please repair")
		w = w.restart()
		waitUntil(t, "the vectors of all messages", func() bool {
			return countOf(t, w.dir, "SELECT count(*) FROM messages WHERE id NOT IN (SELECT id FROM vectors)") == 0
		})
		got := w.opening("two", "Where did we leave off?", project...)
		for _, want := range []string{"files changed: “src/server.ts”", "left open: “Write the docs”"} {
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %q in it", got, want)
			}
		}
		if got := w.opening("three", "How do I run the tests here?", project...); !strings.Contains(got, `ran "npm test": passed`) || strings.Contains(got, "EADDRINUSE") {
			t.Errorf("got %q, want the command in it, and no error line", got)
		}
		out, err := w.cli("memory", "work", "--workspace", widgets, "--user", "user:josh")
		for _, want := range []string{`ran "npm test": passed`, "changed src/server.ts"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("memory work: got %s, %v, want %q in it", out, err, want)
			}
		}
		hash := graphiti.SessionHash("session:one")
		x, err := w.remembers().service.Explain(t.Context(), &service.ConversationRequest{Selector: service.Selector{User: "user:josh", Workspace: widgets}, Hash: hash, Limit: 5})
		if err != nil || len(x.Turns) != 1 || len(x.Turns[0].Work) == 0 {
			t.Errorf("the conversation's turns: got %+v, %v, want one with work", x.Turns, err)
		}
		page := w.get("/conversation/" + hash + "?workspace=" + url.QueryEscape(widgets))
		for _, want := range []string{"tool calls: 2 lines", "changed src/server.ts"} {
			if !strings.Contains(page, want) {
				t.Errorf("the conversation's page: got %s, want %q in it", page, want)
			}
		}
		w.forgetSession("one")
		if all := w.work(); all != "" {
			t.Errorf("after forgetting the conversation: got %s, want none of its work", all)
		}
		if got := w.opening("four", "Where did we leave off?", project...); strings.Contains(got, "server.ts") {
			t.Errorf("after forgetting the conversation: got %q, want none of its files", got)
		}
	})
}

// forgetSession forgets a conversation in the project's group.
func (w *world) forgetSession(session string) {
	w.t.Helper()
	group, _ := graphiti.Namer{}.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: widgets})
	_, err := w.remembers().service.Forget(w.t.Context(), &service.ForgetRequest{Selector: service.Selector{Group: group, Session: session}})
	must(w.t, err)
}

func TestWork_Off(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh", "ingest.work": "false"})
	w.works("one", "Please repair the server of the shop.", rounds...)
	w.delivered(1)
	w.remembered("Please repair")
	if all := w.work(); all != "" {
		t.Errorf("got %s, want no work", all)
	}
}

// TestWork_ForgetMessage checks that forgetting one message of a turn forgets its work.
func TestWork_ForgetMessage(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	w.works("one", "Please repair the server of the shop.", rounds...)
	w.worked("npm test")
	w.delivered(1)
	x, err := w.remembers().service.Explain(t.Context(), &service.ConversationRequest{Selector: service.Selector{User: "user:josh", Workspace: widgets}, Hash: graphiti.SessionHash("session:one"), Limit: 5})
	must(t, err)
	in := service.ForgetRequest{Selector: service.Selector{User: "user:josh", Workspace: widgets, Message: x.Turns[0].Messages[0].ID}}
	must(t, helptest.ErrorOf(w.remembers().service.Forget(t.Context(), &in)))
	if all := w.work(); all != "" {
		t.Errorf("got %s, want no work", all)
	}
}
