package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

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
