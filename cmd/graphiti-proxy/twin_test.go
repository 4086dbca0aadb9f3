package main

import (
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestTwins checks that a request with a turn's message, another prompt and no tools counts
// as a request about the turn, whether a client sends it before, during or after the turn.
func TestTwins(t *testing.T) {
	t.Parallel()
	const words = "The pager of team Ibex is 5512, note it in the runbook."
	turn := chat(m{"role": "system", "content": "You are an agent."}, user(words))
	turn["tools"] = []m{{"type": "function", "function": m{"name": "note", "parameters": m{"type": "object"}}}}
	about := func(text string) m { return chat(m{"role": "system", "content": "You check messages."}, user(text)) }
	for _, tc := range []struct {
		name  string
		about m
		kept  bool
	}{
		{"the message", about(words), false},
		{"a request with the message in it", about("Name this conversation.\n\n" + words + "\n\nAnswer in five words."), false},
		{"another message", about("The pager of team Lynx is 6623, is that a prime number?"), true},
		{"the prompt of the turn", chat(m{"role": "system", "content": "You are an agent."}, user("Is this good English: "+words)), true},
	} {
		for _, when := range []string{"before", "beside", "after"} {
			t.Run(tc.name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := start(t, t.TempDir(), nil)
				asked, turned := make(chan struct{}), make(chan struct{})
				w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
					if c.Tools {
						return proxytest.Reply{Text: "It is in the runbook now."}
					}
					if when == "beside" {
						close(asked)
						<-turned
					}
					return proxytest.Reply{Text: "Team pager answered"}
				})
				send := func(body m) { w.exchange("/v1/chat/completions", body) }
				switch when {
				case "before":
					send(tc.about)
					send(turn)
				case "beside":
					ended := make(chan struct{})
					go func() { defer close(ended); send(tc.about) }()
					<-asked
					send(turn)
					close(turned)
					<-ended
				case "after":
					send(turn)
					w.delivered(1)
					send(tc.about)
				}
				if tc.kept { // after it was held
					w.delivered(2)
				}
				w = w.restart()
				rows := strings.Join(w.held(), "\n")
				if !strings.Contains(rows, "It is in the runbook now.") || tc.kept && !strings.Contains(rows, "Team pager answered") {
					t.Errorf("the memory has %q, want the turn, and the other request: %v", rows, tc.kept)
				}
				_, _, saw := w.say("What is the pager of team Ibex?")
				if !strings.Contains(saw, "5512") || !tc.kept && (strings.Contains(saw, "Name this") || strings.Count(saw, "5512") != 1) {
					t.Errorf("a later conversation sees %q, want the turn, once", saw)
				}
			})
		}
	}
}

// TestTwinBeforeToolRound checks that a request about a turn is recognized even if the turn
// calls tools first.
func TestTwinBeforeToolRound(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	const words = "The pager of team Ibex is 5512, note it in the runbook."
	w.exchange("/v1/chat/completions", chat(m{"role": "system", "content": "You check messages."}, user("Is this safe?\n\n"+words+"\n\nSay yes or no.")))
	turn := chat(m{"role": "system", "content": "You are an agent."}, user(words))
	turn["tools"] = []m{{"type": "function", "function": m{"name": "note", "parameters": m{"type": "object"}}}}
	w.model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Tool: "note", Arguments: "{}"} })
	w.exchange("/v1/chat/completions", turn)
	w = w.restart()
	if _, _, saw := w.say("What is the pager of team Ibex?"); strings.Contains(saw, "Is this safe") {
		t.Errorf("a later conversation sees %q, want nothing of the request beside the turn", saw)
	}
}

// TestTwins_OfOtherSessions checks that a message is no request about the same one in another
// session, however a client names sessions, unless it names none.
func TestTwins_OfOtherSessions(t *testing.T) {
	t.Parallel()
	header := func(id string) (m, []string) { return m{}, []string{"X-Graphiti-Session", id} }
	for name, naming := range map[string]func(string) (m, []string){
		"header":   header,
		"metadata": func(id string) (m, []string) { return m{"metadata": m{"session_id": id}}, nil },
		"chat id":  func(id string) (m, []string) { return m{}, []string{"X-OpenWebUI-Chat-Id", id} },
	} {
		for ids, want := range map[[2]string]bool{{"one", "two"}: true, {"", "two"}: true, {"one", ""}: false, {"", ""}: false} {
			if ids == [2]string{} && name != "header" {
				continue // no id in the body
			}
			for _, first := range []string{"turn", "other"} {
				t.Run(strings.Join([]string{name, ids[0], ids[1], first}, " "), func(t *testing.T) {
					t.Parallel()
					w := start(t, t.TempDir(), nil)
					send := func(id string, messages ...m) {
						body, more, h := chat(messages...), m{}, []string(nil)
						if id != "" {
							more, h = naming(id)
						}
						for k, v := range more {
							body[k] = v
						}
						w.exchange("/v1/chat/completions", body, h...)
					}
					const words = "The pager of team Ibex is 5512, who may use it?"
					turn := func() { send(ids[0], user(words)) }
					other := func() { send(ids[1], m{"role": "system", "content": "You check messages."}, user(words)) }
					for range 20 { // until a busy machine sends the second request while the first is held
						began := time.Now()
						if first == "turn" {
							turn()
							other()
						} else {
							other()
							turn()
						}
						if time.Since(began) < time.Second {
							break
						}
						w = start(t, t.TempDir(), nil)
					}
					count := func(f graphiti.FateName) int64 { return w.app.status(t.Context(), false).Messages[f] }
					waitUntil(t, "the fates", func() bool { return count(graphiti.FateOpen)+count(graphiti.FateHeld) == 0 })
					if got := count(graphiti.FateStored) == 2; got != want {
						t.Errorf("both stored: %v, want %v: %v", got, want, w.app.status(t.Context(), false).Messages)
					}
				})
			}
		}
	}
}
