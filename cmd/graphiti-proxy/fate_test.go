package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// fateStep is a request with the answer of its upstream; "" is a 503.
type fateStep struct {
	body   m
	answer string
	header []string
}

func fateAnswer(text string) string {
	raw, _ := json.Marshal(m{"id": "1", "object": "chat.completion", "choices": []m{{"index": 0, "finish_reason": "stop", "message": replied(text)}}})
	return string(raw)
}

// startFates starts a proxy, and returns it with a function that sends the request of a step and
// returns the header of its answer.
func startFates(t *testing.T, mode string) (w *world, send func(s fateStep) string) {
	answer := ""
	up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		if answer == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, answer)
	})
	w = start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL, "identity.mode": mode, "log.requests": "true"})
	return w, func(s fateStep) string {
		answer = s.answer
		_, h := w.exchange("/v1/chat/completions", s.body, s.header...)
		return h.Get("X-Graphiti-Memory")
	}
}

// TestFates checks that each fate of a message is in the request log, the log, the status, the
// metrics and, while the conversation continues, the header, and that memory show lists held
// messages and settles them.
func TestFates(t *testing.T) {
	t.Parallel()
	const asked, answered = "Which port does the staging database of the shop use?", "The staging database of the shop listens on port 6433."
	session := []string{"X-Graphiti-Session", "one", "X-Graphiti-Workspace", widgets}
	with := func(body m, more m) m {
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	tools := m{"tools": []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object", "properties": m{"command": m{"type": "string"}}}}}}}
	begins := fateStep{with(chat(user(asked)), tools), fateAnswer(answered), session}
	goesOn := func(text, answer string) fateStep {
		return fateStep{chat(user(asked), replied(answered), user(text)), answer, session}
	}
	for _, tc := range []struct {
		name, mode, header string // header is a part of the last answer's
		steps              []fateStep
		fate               graphiti.Fate
	}{
		{"stored", "single", "empty", []fateStep{{chat(user(fact)), fateAnswer("Noted."), session}}, graphiti.Fate{Name: graphiti.FateStored}},
		{"without an answer", "single", "", []fateStep{{chat(user(fact)), "", session}}, graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostFailed}},
		{"sent again", "single", "empty", []fateStep{{chat(user(fact)), "", session}, {chat(user(fact)), fateAnswer("Noted."), session}}, graphiti.Fate{Name: graphiti.FateStored}},
		{"held", "single", "", []fateStep{begins, goesOn("My cat is called Miso, by the way.", fateAnswer("Noted."))}, graphiti.Fate{Name: graphiti.FateHeld, Reason: graphiti.HeldDoubt}},
		{"held, seen in the next header", "single", "held=1", []fateStep{begins, goesOn("My cat is called Miso, by the way.", fateAnswer("Noted.")), {with(chat(user(asked), replied(answered), user("And the old one?")), tools), "", session}}, graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostFailed}},
		{"held, a program may ask about it", "single", "empty", []fateStep{{chat(m{"role": "system", "content": "Judge."}, user(fact)), fateAnswer("Noted."), session}}, graphiti.Fate{Name: graphiti.FateHeld, Reason: graphiti.HeldTwin}},
		{"title", "single", "reason=title", []fateStep{{with(chat(user(asked)), m{"response_format": m{"type": "json_schema", "json_schema": m{"name": "t", "schema": m{"type": "object", "properties": m{"title": m{"type": "string"}}}}}}), fateAnswer("{}"), session}}, graphiti.Fate{Name: graphiti.FateClient, Reason: "title"}},
		{"about", "single", "reason=probe", []fateStep{begins, {chat(m{"role": "system", "content": "Judge."}, user("Is this a good answer?\n"+asked+"\n"+answered)), fateAnswer("Yes."), nil}}, graphiti.Fate{Name: graphiti.FateAbout, Reason: "probe"}},
		{"nobody", "multi", "reason=nobody", []fateStep{{chat(user(fact)), fateAnswer("Noted."), []string{"Authorization", ""}}}, graphiti.Fate{Name: graphiti.FateNobody, Reason: "nobody"}},
		{"off", "single", "off; ", []fateStep{{chat(user(fact)), fateAnswer("Noted."), append([]string{"X-Graphiti-Memory", "off"}, session...)}}, graphiti.Fate{Name: graphiti.FateOff, Reason: graphiti.OffOptOut}},
		{"stored for its conversation only", "single", "reason=place", []fateStep{{with(chat(user(fact)), tools), fateAnswer("Noted."), nil}}, graphiti.Fate{Name: graphiti.FateStored}},
		{"place", "single", "reason=place", []fateStep{{with(chat(user(fact)), tools), fateAnswer("Noted."), []string{"User-Agent", "opencode/1.18.33"}}}, graphiti.Fate{Name: graphiti.FatePlace, Reason: "place"}},
		{"lost", "single", "", []fateStep{{chat(user(fact)), "<p>Noted.", session}}, graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostNoEnd}},
		{"lost, seen in the next header", "single", "lost=1", []fateStep{{chat(user(asked)), "<p>Noted.", session}, goesOn(fact, "")}, graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostFailed}},
		{"unreadable", "single", "skipped; facts=0; chars=0; ms=0; reason=encoding", []fateStep{{m{"model": "m"}, fateAnswer("Noted."), session}}, graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostEncoding}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, send := startFates(t, tc.mode)
			var header string
			var last graphiti.LoggedRequest
			for i, s := range tc.steps {
				header = send(s)
				waitUntil(t, "the settled message", func() bool {
					p, err := w.passes(service.Caller{Operator: true})
					if err != nil || len(p.Requests) <= i { // a request is listed after its answer
						return false
					}
					last = p.Requests[len(p.Requests)-1]
					return last.Fate != "open"
				})
			}
			if last.Fate != string(tc.fate.Name) || last.Cause != tc.fate.Reason || !strings.Contains(header, tc.header) {
				t.Errorf("%s %s, header %q; want %+v, %q", last.Fate, last.Cause, header, tc.fate, tc.header)
			}
			if got := w.metric(`graphiti_proxy_messages_total{fate="` + last.Fate + `"}`); got == "0" || got == "not there" {
				t.Errorf("the metric is %s", got)
			}
			if open := w.app.status(t.Context(), false).Messages[graphiti.FateOpen]; open != 0 {
				t.Errorf("the status has %d open messages, want none", open)
			}
			if s := w.status(); !strings.Contains(s, " "+last.Fate) || w.app.status(t.Context(), false).Messages[tc.fate.Name] == 0 {
				t.Errorf("the status has no %s: %s", last.Fate, s)
			}
			if !strings.Contains(w.log.String(), "fate="+last.Fate) && !strings.Contains(w.log.String(), `"fate":"`+last.Fate) {
				t.Errorf("the log has no %s: %s", last.Fate, w.log.String())
			}
		})
	}
}

// TestFates_OfEachMessage checks that each message has one fate at a time in the status: after a
// retry, behind an unanswered one, and after it was held or forgotten.
func TestFates_OfEachMessage(t *testing.T) {
	t.Parallel()
	const other = "The badger lives in burrow Theta."
	session := []string{"X-Graphiti-Session", "one", "X-Graphiti-Workspace", widgets}
	judged := chat(m{"role": "system", "content": "Judge."}, user(fact))
	judge := func(talk ...m) m { return chat(append([]m{{"role": "system", "content": "Judge."}}, talk...)...) }
	agent := func(talk ...m) m {
		body := chat(append([]m{{"role": "system", "content": "You help."}}, talk...)...)
		body["tools"] = []m{{"type": "function", "function": m{"name": "look_up", "parameters": m{"type": "object"}}}}
		return body
	}
	unseen := chat(user(fact), replied("Good."), user(other), replied("Fine."), user("And the owl?"))
	for _, tc := range []struct {
		name   string
		steps  []fateStep
		forget bool
		want   map[graphiti.FateName]int64
	}{
		{"sent again", []fateStep{{chat(user(fact)), "", session}, {chat(user(fact)), "", session}, {chat(user(fact)), fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 1}},
		{"not sent again", []fateStep{{chat(user(fact)), "", session}}, false, map[graphiti.FateName]int64{graphiti.FateLost: 1}},
		{"shown with the next one", []fateStep{{chat(user(fact)), "", session}, {chat(user(fact), user(other)), fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 2}},
		{"two that are lost", []fateStep{{chat(user(fact), user(other)), "", session}}, false, map[graphiti.FateName]int64{graphiti.FateLost: 2}},
		{"two, sent again", []fateStep{{chat(user(fact), user(other)), "", session}, {chat(user(fact), user(other)), "", session}, {chat(user(fact), user(other)), fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 2}},
		{"held", []fateStep{{judged, fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 1}},
		{"a history that was not seen", []fateStep{{unseen, fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 1, graphiti.FateHeld: 2}},
		{"a history that goes on", []fateStep{{unseen, fateAnswer("Noted."), session}, {chat(user(fact), replied("Good."), user(other), replied("Fine."), user("And the owl?"), replied("Noted."), user("And the hare?")), fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 4}},
		{"a history without an answer", []fateStep{{unseen, "", session}, {unseen, fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 1, graphiti.FateHeld: 2}},
		{"a history, forgotten", []fateStep{{unseen, fateAnswer("Noted."), session}}, true, map[graphiti.FateName]int64{graphiti.FateStored: 1, graphiti.FateOff: 2}},
		{"a history of two conversations", []fateStep{{unseen, fateAnswer("Noted."), session}, {unseen, fateAnswer("Noted."), []string{"X-Graphiti-Session", "two", "X-Graphiti-Workspace", widgets}}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 2, graphiti.FateHeld: 2, graphiti.FateClient: 2}},
		{"a program asks about each message, with its history", []fateStep{
			{agent(user("Hello there.")), fateAnswer("Noted."), session},
			{judge(user("Hello there."), replied("Noted."), user(fact)), fateAnswer("{}"), session},
			{agent(user("Hello there."), replied("Noted."), user(fact)), fateAnswer("Noted."), session},
			{judge(user("Hello there."), replied("Noted."), user(fact), replied("Noted."), user(other)), fateAnswer("{}"), session},
			{agent(user("Hello there."), replied("Noted."), user(fact), replied("Noted."), user(other)), fateAnswer("Noted."), session},
		}, false, map[graphiti.FateName]int64{graphiti.FateStored: 3, graphiti.FateAbout: 2}},
		{"an answer, sent to another agent", []fateStep{
			{chat(user(fact)), fateAnswer("The cat Miso is noted in the list of pets."), session},
			{chat(m{"role": "system", "content": "Judge."}, user(fact), user("The cat Miso is noted in the list of pets.")), fateAnswer("Fine."), []string{"X-Graphiti-Workspace", widgets}},
		}, false, map[graphiti.FateName]int64{graphiti.FateStored: 1, graphiti.FateClient: 1}},
		{"an answer of an agent with a name, sent to another one", []fateStep{
			{chat(m{"role": "user", "name": "user", "content": fact}), fateAnswer("The cat Miso is noted in the list of pets."), session},
			{chat(m{"role": "user", "name": "user", "content": fact}, m{"role": "user", "name": "planner", "content": "The cat Miso is noted in the list of pets."}), fateAnswer("Fine."), []string{"X-Graphiti-Workspace", widgets}},
		}, false, map[graphiti.FateName]int64{graphiti.FateStored: 1, graphiti.FateClient: 1}},
		{"the words of a brief answer, in another conversation", []fateStep{
			{chat(user(fact)), fateAnswer("Noted."), session},
			{chat(user("Noted.")), fateAnswer("Fine."), []string{"X-Graphiti-Session", "two", "X-Graphiti-Workspace", widgets}},
		}, false, map[graphiti.FateName]int64{graphiti.FateStored: 2}},
		{"repeated after its answer", []fateStep{{chat(user(fact)), fateAnswer("Noted."), session}, {chat(user(fact)), fateAnswer("Noted."), session}}, false, map[graphiti.FateName]int64{graphiti.FateStored: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, send := startFates(t, "single")
			count := func(f graphiti.FateName) int64 { return w.app.status(t.Context(), false).Messages[f] }
			for _, s := range tc.steps {
				send(s)
				// The proxy reads an answer after its client, and the next request may depend on it.
				waitUntil(t, "the answer to be read", func() bool { return count(graphiti.FateOpen) == 0 })
			}
			if tc.forget {
				waitUntil(t, "the held message", func() bool { return count(graphiti.FateHeld) > 0 && count(graphiti.FateOpen) == 0 })
				if out, err := w.cli("memory", "forget", "--workspace", widgets, "--yes"); err != nil {
					t.Fatalf("%v, %s", err, out)
				}
			}
			defer func() {
				if t.Failed() {
					t.Logf("got %v, want %v", w.app.status(context.Background(), false).Messages, tc.want)
				}
			}()
			waitUntil(t, "the fates", func() bool {
				for _, f := range graphiti.Fates {
					if count(f) != tc.want[f] {
						return false
					}
				}
				return true
			})
		})
	}
}

// TestHeldMessage_Settled checks that memory show lists a held message, and that the person
// stores it, or deletes it for good.
func TestHeldMessage_Settled(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]bool{"--keep": true, "--drop": false} {
		up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, fateAnswer("Noted.")) })
		w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL})
		headers := []string{"X-Graphiti-Session", "one", "X-Graphiti-Workspace", widgets}
		first := chat(user("Hello there."))
		first["tools"] = []m{{"type": "function", "function": m{"name": "f", "parameters": m{"type": "object"}}}}
		w.request(first, headers...)
		w.request(chat(user("Hello there."), replied("Noted."), user(fact)), headers...)
		show := func(more ...string) string {
			out, err := w.cli(append([]string{"memory", "show", "--workspace", widgets}, more...)...)
			if err != nil {
				t.Fatalf("%v: %v, %s", more, err, out)
			}
			return out
		}
		waitUntil(t, "the held message", func() bool { return strings.Contains(show(), "held until") })
		waitUntil(t, "a held message in the status", func() bool { return strings.Contains(w.status(), "1 message held") })
		fields := strings.Fields(show()[strings.Index(show(), "REASON"):])
		id := fields[slices.Index(fields, "TEXT")+1]
		show(flag, id)
		if out := show(); strings.Contains(out, "held until") || strings.Contains(out, fact) != want {
			t.Errorf("%s: got %s, want the message in it: %v, and none held", flag, out, want)
		}
		if out, err := w.cli("memory", "show", "--workspace", widgets, flag, id); err == nil {
			t.Errorf("%s again: got %s, want an error", flag, out)
		}
		if !want { // nor does a history store it
			w = w.restart()
			last := chat(user("Hello there."), replied("Noted."), user(fact), replied("Noted."), user("And the owl?"))
			last["tools"] = first["tools"]
			w.request(last, headers...)
			waitUntil(t, "the last message", func() bool { return strings.Contains(show(), "owl") })
			if out := show(); strings.Contains(out, fact) {
				t.Errorf("after a restart: got %s, want no deleted message", out)
			}
		}
	}
}

// TestFates_OfEarlierMessages checks that the log and the request log name the fate of each new
// message of a request.
func TestFates_OfEarlierMessages(t *testing.T) {
	t.Parallel()
	const other, third = "The badger lives in burrow Theta.", "The heron nests in the reed bed Kappa."
	session := []string{"X-Graphiti-Session", "one", "X-Graphiti-Workspace", widgets}
	history := []m{user(fact), replied("Good."), user(other), replied("Fine."), user(third)}
	for _, tc := range []struct {
		name  string
		steps []fateStep
		want  []string
		heads []string // parts of the headers
	}{
		{"alone", []fateStep{{chat(user(fact)), fateAnswer("Noted."), session}}, []string{""}, []string{""}},
		{"unanswered", []fateStep{{chat(user(fact), user(other), user(third)), fateAnswer("Noted."), session}}, []string{"stored=2"}, []string{`; earlier="open=2"`}},
		{"without an answer", []fateStep{{chat(user(fact), user(other), user(third)), "", session}}, []string{"lost=2"}, []string{""}},
		{"a history that was not seen", []fateStep{{chat(history...), fateAnswer("Noted."), session}, {chat(append(history, replied("Noted."), user("And the badger?"))...), fateAnswer("Theta."), session}}, []string{"held=2", ""}, []string{`; earlier="held=2"`, "; held=2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, send := startFates(t, "single")
			for i, s := range tc.steps {
				if header := send(s); !strings.Contains(header, tc.heads[i]) {
					t.Errorf("request %d: header %q, want %q in it", i, header, tc.heads[i])
				}
				waitUntil(t, "the earlier fates", func() bool {
					p, err := w.passes(service.Caller{Operator: true})
					held := w.app.status(t.Context(), false).Messages[graphiti.FateHeld]
					return err == nil && len(p.Requests) == i+1 && p.Requests[i].Earlier == tc.want[i] && p.Requests[i].Fate != "open" &&
						(held == 2) == (tc.want[i] == "held=2") // the request log names the fates before all are held
				})
			}
			if fates := strings.Contains(w.log.String(), "earlier_fates"); fates == (tc.want[0] == "") {
				t.Errorf("the log names earlier fates: %v", fates)
			}
		})
	}
}
