package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answering returns the URL of a model that answers each request by calling answer.
func answering(t *testing.T, answer func(w http.ResponseWriter, request string)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		answer(w, string(b))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// whole writes an answer that is not streamed.
func whole(w http.ResponseWriter, message, finish string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":`+message+`,"finish_reason":"`+finish+`"}]}`)
}

const (
	calls   = `{"role":"assistant","content":"I shall look at the weather service of Oslo first.","tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]}`
	isSunny = `{"role":"assistant","content":"It is sunny in Oslo."}`
)

// weather returns the two requests of a turn with a tool call.
func weather() (first, second m) {
	ask := m{"role": "user", "content": "Weather in Oslo?"}
	return chat(ask), chat(ask,
		m{"role": "assistant", "content": "I shall look at the weather service of Oslo first.", "tool_calls": []m{{"id": "c", "type": "function", "function": m{"name": "weather", "arguments": "{}"}}}},
		m{"role": "tool", "tool_call_id": "c", "content": "sun"})
}

// forecaster returns the URL of a model that calls a tool with the given finish_reason, and
// then answers.
func forecaster(t *testing.T, finish string) string {
	return answering(t, func(w http.ResponseWriter, request string) {
		if strings.Contains(request, `"role":"tool"`) {
			whole(w, isSunny, "stop")
			return
		}
		whole(w, calls, finish)
	})
}

// TestCallThatEndsWithStop checks that a tool call with finish_reason "stop" does not end
// its turn, and that the final answer is stored.
func TestCallThatEndsWithStop(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": forecaster(t, "stop")})
	first, second := weather()
	w.request(first, "X-Graphiti-Session", "x")
	w.request(second, "X-Graphiti-Session", "x")
	w.delivered(1)
	if diff := cmp.Diff([]string{"Weather in Oslo?", "It is sunny in Oslo."}, w.held()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSameWordsToTwoAgents checks that a message sent to two agents in one session is
// stored in the memory of both, and once in the person's. The same applies to two system
// actors.
func TestSameWordsToTwoAgents(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh", "identity.group_ids": "raw"})
	for i, tc := range []struct{ session, header, name, group string }{
		{"ticket-42", "X-Graphiti-Agent", "ava", "agent_ava__user_josh"},
		{"ticket-42", "X-Graphiti-Agent", "bob", "agent_bob__user_josh"},
		{"nightly", "X-Graphiti-System-Actor", "bot1", "system_bot1"},
		{"nightly", "X-Graphiti-System-Actor", "bot2", "system_bot2"},
	} {
		w.request(history(0, "Summarise what is open."), "X-Graphiti-Session", tc.session, tc.header, tc.name)
		w.delivered([]int{2, 3, 4, 5}[i])
		if got := w.heldIn(tc.group); len(got) != 2 || !strings.HasSuffix(got[0].Text, "Summarise what is open.") {
			t.Errorf("%s has %+v", tc.group, got)
		}
	}
	if got := w.heldIn("user_josh"); len(got) != 2 {
		t.Errorf("the person has it more than once: %+v", got)
	}
}

// TestDirectivesOutliveTheirAnswer checks that a directive that the header reports as
// promoted is stored even if its answer is cut off or ends in a tool call. A personal one
// applies in its place and waits for confirmation.
func TestDirectivesOutliveTheirAnswer(t *testing.T) {
	t.Parallel()
	opening := ""
	up := answering(t, func(w http.ResponseWriter, request string) {
		switch {
		case strings.Contains(request, "hello"):
			opening = request
			whole(w, isSunny, "stop")
		case strings.Contains(request, "preference: answers"):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"half an answ"},"finish_reason":null}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			whole(w, calls, "tool_calls")
		}
	})
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": up, "promote.directives": "true", "identity.owner": "user:josh"})
	for workspace, ends := range map[string]string{"": "; promoted=1; pending=1", widgets: "; promoted=1"} {
		for _, text := range []string{"preference: answers that are cut short", "preference: tabs, not spaces"} {
			req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+"/v1/chat/completions",
				strings.NewReader(fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":%q}]}`, text)))
			req.Header.Set("X-Graphiti-Workspace", workspace)
			resp, err := w.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if h := resp.Header.Get("X-Graphiti-Memory"); !strings.HasSuffix(h, ends) || strings.Contains(h, "pending=") != (workspace == "") {
				t.Errorf("%s in %q: got %s, want %q at its end", text, workspace, h, ends)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	w.delivered(2)
	stored := ""
	for _, g := range w.groups() {
		for _, r := range w.heldIn(g) {
			stored += r.Text + "\n"
		}
	}
	if strings.Count(stored, "cut short") != 1 || strings.Count(stored, "tabs, not spaces") != 1 {
		t.Errorf("got %q, want both directives of the project", stored)
	}
	if lines := w.waitingLines("single", ""); strings.Count(lines, "cut short") != 1 || strings.Count(lines, "tabs, not spaces") != 1 {
		t.Errorf("waiting are %q, want both personal directives", lines)
	}
	for _, workspace := range []string{"", widgets} {
		w.request(chat(user("hello")), "X-Graphiti-Session", "next"+workspace, "X-Graphiti-Workspace", workspace)
		if !strings.Contains(opening, "cut short") || !strings.Contains(opening, "tabs, not spaces") {
			t.Errorf("a conversation in %q begins with %s, want both directives", workspace, opening)
		}
	}
}

// TestAnswerWithoutACleanEndIsNeverKept checks that an answer without a clean end is not
// stored, not even after a restart, when the client's history shows a part of it. An answer
// that a second attempt completed is stored.
func TestAnswerWithoutACleanEndIsNeverKept(t *testing.T) {
	t.Parallel()
	tries := 0
	up := answering(t, func(w http.ResponseWriter, request string) {
		switch {
		case strings.Contains(request, "Go on."):
			whole(w, `{"role":"assistant","content":"I go on."}`, "stop")
		case strings.Contains(request, "refuse"):
			whole(w, `{"role":"assistant","content":null,"refusal":"I will not."}`, "stop")
		case strings.Contains(request, "filter"):
			whole(w, `{"role":"assistant","content":"As I was say"}`, "content_filter")
		case strings.Contains(request, "twice") && tries > 0:
			whole(w, `{"role":"assistant","content":"half an answer, and the rest"}`, "stop")
		default:
			tries++
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"half an answ"},"finish_reason":null}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	dir, settings := t.TempDir(), map[string]string{"upstream.openai": up, "recall.enabled": "false"}
	ask := func(w *world, session string, messages ...m) {
		b, _ := json.Marshal(chat(messages...))
		req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", strings.NewReader(string(b)))
		req.Header.Set("X-Graphiti-Session", session)
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // the answer may be cut off
	}
	talks := []struct{ session, said, shows string }{
		{"a", "Tell me of alpacas.", "half an answ"},
		{"b", "Tell me what they filter.", "As I was say"},
		{"c", "Tell me what you refuse.", "I will not."},
	}
	w := start(t, dir, settings)
	for _, talk := range talks {
		ask(w, talk.session, user(talk.said))
	}
	tries = 0
	for range 2 {
		ask(w, "d", user("I ask twice."))
	}
	w.delivered(1)
	w.stop()
	w = start(t, dir, settings)
	for _, talk := range talks {
		ask(w, talk.session, user(talk.said), m{"role": "assistant", "content": talk.shows}, user("Go on."))
	}
	for _, talk := range talks[:2] { // a shortened history is recognized by its messages
		ask(w, talk.session+"-short", user(talk.said), m{"role": "assistant", "content": talk.shows}, user("Go on."))
	}
	ask(w, "d", user("I ask twice."), m{"role": "assistant", "content": "half an answer, and the rest"}, user("Go on."))
	w.stop()
	w = start(t, dir, settings) // turns from the histories are on disk
	waitUntil(t, "delivery", func() bool { return w.app.memory().queue().Pending == 0 })
	want := []string{"I ask twice.", "half an answer, and the rest"}
	for range len(talks) + 2 + 1 {
		want = append(want, "Go on.", "I go on.")
	}
	if diff := cmp.Diff(want, w.held()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnswersAboveLimitsAreCounted checks that the metrics and the status count answers
// that exceeded the limits.
func TestAnswersAboveLimitsAreCounted(t *testing.T) {
	t.Parallel()
	up := answering(t, func(w http.ResponseWriter, _ string) {
		whole(w, `{"role":"assistant","content":"`+strings.Repeat("x", 9<<20)+`"}`, "stop")
	})
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": up})
	told := func() (metrics, words string) {
		resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		s, out := w.app.status(t.Context(), true), &strings.Builder{}
		printStatus(out, &s)
		return string(b), out.String()
	}
	metrics, words := told()
	if !strings.Contains(metrics, "\ngraphiti_proxy_answers_dropped_total 0\n") || strings.Contains(words, "exceeded the limits") {
		t.Errorf("before: %s", words)
	}
	w.request(history(0, "Tell me everything."))
	waitUntil(t, "an answer to be given up", func() bool { return w.app.memory().queue().GivenUp == 1 })
	metrics, words = told()
	if !strings.Contains(metrics, "\ngraphiti_proxy_answers_dropped_total 1\n") || !strings.Contains(words, "1 answers exceeded the limits") {
		t.Errorf("after: %s", words)
	}
}
