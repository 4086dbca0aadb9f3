package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// scripted is an upstream that answers from a script and records the request bodies.
type scripted struct {
	*httptest.Server
	mu     sync.Mutex // protects the fields below
	bodies []string
	script func(w http.ResponseWriter, r *http.Request, body string)
}

func newScripted(t *testing.T, script func(w http.ResponseWriter, r *http.Request, body string)) *scripted {
	up := &scripted{script: script}
	up.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		up.mu.Lock()
		defer up.mu.Unlock()
		up.bodies = append(up.bodies, string(b))
		up.script(w, r, string(b))
	}))
	t.Cleanup(up.Close)
	return up
}

// got returns the recorded bodies.
func (up *scripted) got() []string {
	up.mu.Lock()
	defer up.mu.Unlock()
	return slices.Clone(up.bodies)
}

// wholeAnswer is an answer of Chat Completions.
const wholeAnswer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Noted."},"finish_reason":"stop"}]}`

// TestPrefilledAnswer_IsWhole checks that a prefilled answer is stored with its beginning,
// which only the request has.
func TestPrefilledAnswer_IsWhole(t *testing.T) {
	t.Parallel()
	up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":" is Tabby."}],"stop_reason":"end_turn"}`)
	})
	w := start(t, t.TempDir(), map[string]string{"upstream.anthropic": up.URL})
	w.requestTo("/v1/messages", chat(user("Invent a name for a cat."), answered("The best name")))
	w = w.restart()
	if held := w.held(); !slices.Contains(held, "The best name is Tabby.") {
		t.Errorf("held %q, want the whole answer", held)
	}
}

// TestRefusedBlock checks that a provider that refuses a request with a new block gets the
// client's own request once, and that later requests do not repeat the block.
func TestRefusedBlock(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge} {
		up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, body string) {
			w.Header().Set("Content-Type", "application/json")
			if strings.Contains(body, "graphiti_memory") {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"error":{"message":"too long"}}`)
				return
			}
			_, _ = io.WriteString(w, wholeAnswer)
		})
		w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL})
		w.request(chat(user(fact)), "X-Graphiti-Session", "1")
		w.delivered(1)
		asked := chat(user(question))
		own, _ := json.Marshal(asked)
		code, header := w.exchange("/v1/chat/completions", asked, "X-Graphiti-Session", "2")
		if got := header.Get("X-Graphiti-Memory"); code != http.StatusOK || !strings.HasPrefix(got, "empty;") || !strings.HasSuffix(got, "reason=refused") {
			t.Errorf("%d: got %d, %q, want 200, empty with reason=refused", status, code, got)
		}
		if got := up.got(); len(got) != 3 || !strings.Contains(got[1], "Miso") || got[2] != string(own) {
			t.Errorf("%d: got %q, want one request with the block, and then the client's own", status, got)
		}
		w.request(chat(user(question)), "X-Graphiti-Session", "2")
		if got := up.got(); len(got) != 4 || got[3] != string(own) {
			t.Errorf("%d, again: got %q, want the client's own request", status, got)
		}
	}
}

// TestRefusedTwice checks that a block was not to blame if the provider refuses the client's
// own request too, or fails it: the client's next request has the block again.
func TestRefusedTwice(t *testing.T) {
	t.Parallel()
	for _, second := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError} {
		up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, body string) {
			w.Header().Set("Content-Type", "application/json")
			switch isMended := !strings.Contains(body, "max_tokens"); {
			case isMended:
				_, _ = io.WriteString(w, wholeAnswer)
			case strings.Contains(body, "graphiti_memory"):
				w.WriteHeader(http.StatusBadRequest)
			default:
				w.WriteHeader(second)
			}
		})
		w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL})
		w.request(chat(user(fact)), "X-Graphiti-Session", "1")
		w.delivered(1)
		asked := chat(user(question))
		asked["max_tokens"] = 10
		own, _ := json.Marshal(asked)
		code, header := w.exchange("/v1/chat/completions", asked, "X-Graphiti-Session", "2")
		if got := header.Get("X-Graphiti-Memory"); code != second || !strings.HasSuffix(got, "reason=refused") {
			t.Errorf("%d: got %d, %q, want the second refusal with reason=refused", second, code, got)
		}
		w.request(chat(user(question)), "X-Graphiti-Session", "2")
		got := up.got()
		if len(got) != 4 || got[2] != string(own) || !strings.Contains(got[3], "Miso") {
			t.Errorf("%d: got %q, want the block in the mended request", second, got)
			continue
		}
		w.request(chat(user(question), answered("Yes."), user("And milk?")), "X-Graphiti-Session", "2")
		if again := up.got()[4]; !strings.Contains(again, got[3][strings.Index(got[3], "<graph"):strings.Index(got[3], "</graph")]) {
			t.Errorf("%d: got %q, want the block of %q", second, again, got[3])
		}
	}
}

// TestRefusedRequest checks that a refused request without a block is not sent again.
func TestRefusedRequest(t *testing.T) {
	t.Parallel()
	up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusBadRequest) })
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL})
	if code := w.request(chat(user(question))); code != http.StatusBadRequest || len(up.got()) != 1 {
		t.Errorf("got %d after %d requests, want 400 after 1", code, len(up.got()))
	}
}

// TestUnservedAPI checks that a request to a model API without memory is forwarded
// unchanged, that its header states this, and that it is counted.
func TestUnservedAPI(t *testing.T) {
	t.Parallel()
	up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, "{}") })
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL, "upstream.gemini": up.URL})
	body := chat(user(fact))
	want, _ := json.Marshal(body)
	paths := []string{
		"/model/anthropic.claude-opus-5/invoke", "/model/anthropic.claude-opus-5/invoke-with-response-stream", "/model/m/converse", "/model/m/converse-stream",
		"/api/chat", "/api/generate", "/v2/chat", "/v1/completions", "/v1/fim/completions", "/v1/fim/completions/", "/v1beta/interactions",
		"/v1/projects/p/locations/l/publishers/google/models/gemini-3:generateContent",
	}
	for _, path := range paths {
		if _, header := w.exchange(path, body); !strings.HasPrefix(header.Get("X-Graphiti-Memory"), "skipped;") || !strings.HasSuffix(header.Get("X-Graphiti-Memory"), "reason=api") {
			t.Errorf("%s: got %q, want skipped with reason=api", path, header.Get("X-Graphiti-Memory"))
		}
	}
	for _, path := range []string{"/v1/embeddings", "/v1/rerank", "/v1/files", "/v1beta/models/m:countTokens", "/v1/models/m:countTokens", "/v1beta/models/m:embedContent", "/v1beta/models/m:batchGenerateContent"} {
		if got := w.header(path, body); got != "" {
			t.Errorf("%s: got %q, want no header", path, got)
		}
		paths = append(paths, path)
	}
	for i, got := range up.got() {
		if got != string(want) {
			t.Errorf("%s: the upstream got %q, want %q", paths[i], got, want)
		}
	}
	if got := w.status(); !strings.Contains(got, "12 skipped (api)") {
		t.Errorf("got %s, want 12 skipped (api)", got)
	}
}

// TestClaudeOnVertex checks that Claude on Vertex AI has the memory of the Messages API.
func TestClaudeOnVertex(t *testing.T) {
	t.Parallel()
	up := newProvider(t)
	up.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/v1/messages"
		up.serve(w, r)
	})
	w := start(t, t.TempDir(), map[string]string{"upstream.anthropic": up.URL})
	const path = "/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-5:"
	said := func(text string) m {
		return m{"anthropic_version": "vertex-2023-10-16", "max_tokens": 10, "messages": []m{user(text)}}
	}
	w.requestTo(path+"rawPredict", said(fact))
	w.delivered(1)
	ask := said(question)
	ask["stream"] = true
	if got := w.header(path+"streamRawPredict", ask); !strings.HasPrefix(got, "recalled;") || !strings.Contains(up.last(), "Miso") {
		t.Errorf("got %q, %s, want the fact recalled", got, up.last())
	}
	w.delivered(2)
}

// TestPromptAlone checks that a Responses request that only refers to a prompt of the
// provider is skipped, because it has no user message.
func TestPromptAlone(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": newProvider(t).URL})
	if got := w.header("/v1/responses", m{"model": "m", "prompt": m{"id": "pmpt_1"}}); !strings.HasPrefix(got, "skipped;") || !strings.HasSuffix(got, "reason=no_user_message") {
		t.Errorf("got %q, want skipped with reason=no_user_message", got)
	}
}

// TestResumedStream checks that a background answer is stored as one turn if its stream
// breaks and is resumed.
func TestResumedStream(t *testing.T) {
	t.Parallel()
	up := newScripted(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_7\",\"background\":true,\"status\":\"queued\"}}\n\n")
			w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's is one
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_7\",\"background\":true,\"status\":\"completed\","+
			"\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"It rains.\"}]}]}}\n\n")
	})
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL})
	base := "http://" + w.app.proxy.Addr().String() + "/v1/responses"
	resp, err := w.client.Post(base, "application/json", strings.NewReader(`{"model":"m","background":true,"stream":true,"input":"How is the weather in Lisbon?"}`))
	must(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	waitUntil(t, "what says that it goes on in the background", w.remembers().pending.Referable)
	resp, err = w.client.Get(base + "/resp_7?stream=true&starting_after=1")
	must(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	w = w.restart()
	if held := w.held(); len(held) != 2 || !strings.Contains(strings.Join(held, " "), "It rains.") {
		t.Errorf("held %q, want one turn with its answer", held)
	}
}

// TestLostAnswers checks that statistics, metrics and the log count lost answers by reason,
// and that the status names their client.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, "<p>Noted.") })
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL})
	for range 4 {
		w.request(chat(user(fact)), "User-Agent", "odd-client/1.0")
	}
	waitUntil(t, "four lost answers", func() bool { return strings.Contains(w.status(), "odd-client, 4 times: an answer that was not stored") })
	if got := w.metric(`graphiti_proxy_answers_not_stored_total{reason="no_end"}`); got != "4" {
		t.Errorf("the metric is %q, want 4", got)
	}
	if log := w.log.String(); strings.Count(log, `msg="message not stored" reason=no_end client=odd-client so_far=1`) != 1 {
		t.Errorf("got %s, want a line about the first", log)
	}
	out, err := w.cli("memory", "stats")
	if err != nil || !strings.Contains(out, "answers not stored, by reason: no_end 4") {
		t.Errorf("got %s, %v, want the count of no_end", out, err)
	}
}

// TestLongMessage_KeepsBothEnds checks that a statement above or below a pasted log is
// recalled without the log.
func TestLongMessage_KeepsBothEnds(t *testing.T) {
	t.Parallel()
	pasted := strings.Repeat("2026-11-25T10:00:00 INFO worker 7 finished job 17\n", 1000)
	for _, text := range []string{pasted + "That is the log. " + fact, fact + "\n" + pasted} {
		w := start(t, t.TempDir(), nil)
		w.say(text)
		w.delivered(1)
		if _, _, saw := w.say(question); !strings.Contains(saw, "Miso") {
			t.Errorf("got %q, want the fact in it", saw)
		} else if strings.Count(saw, "INFO") > 2 {
			t.Errorf("got %q, want two lines of the log at most", saw)
		}
		if out, err := w.cli("memory", "stats"); err != nil || !strings.Contains(out, "shortened in the middle since the proxy started: 1") {
			t.Errorf("got %s, %v, want one text that was cut", out, err)
		}
	}
}

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
		must(t, err)
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

// TestUnansweredMessages checks that a message without an answer is stored with the
// next turn, once, and searched for with it. The upstream refuses the requests that end with
// a message of failing.
func TestUnansweredMessages(t *testing.T) {
	t.Parallel()
	const marmot, badger, thanks = "My marmot lives in burrow Zeta.", "My badger lives in burrow Theta.", "Thanks for that."
	empty := m{"role": "assistant", "content": ""}
	for name, tc := range map[string]struct {
		failing  bool // the first message gets an error
		requests [][]m
	}{
		"in a row":              {false, [][]m{{user(marmot), user(badger)}}},
		"three":                 {false, [][]m{{user(marmot), user("Hello?"), user(badger)}}},
		"behind an answer":      {false, [][]m{{user("Hello.")}, {user("Hello."), answered("Noted."), user(marmot), user(badger)}}},
		"after an error":        {true, [][]m{{user(marmot)}, {user(marmot), user(badger)}}},
		"after an empty answer": {false, [][]m{{user(marmot), empty, user(badger)}}},
		"one after the other":   {true, [][]m{{user(marmot)}, {user(marmot), user("Hello?")}, {user(marmot), user("Hello?"), user(badger)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := tc.failing
			up := newScripted(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
				w.Header().Set("Content-Type", "application/json")
				if failing {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = io.WriteString(w, wholeAnswer)
			})
			w := start(t, t.TempDir(), map[string]string{"upstream.openai": up.URL})
			for _, messages := range tc.requests {
				w.request(chat(messages...))
				failing = false
			}
			w = w.restart()
			all := append(slices.Clone(tc.requests[len(tc.requests)-1]), answered("Noted."), user(thanks))
			w.request(chat(all...))
			w = w.restart()
			w.request(chat(append(all, answered("Noted."), user("Bye."))...))
			w = w.restart()
			held := strings.Join(w.held(), "|")
			for _, text := range []string{marmot, badger, thanks} {
				if strings.Count(held, text) != 1 {
					t.Errorf("held %q, want %q once", held, text)
				}
			}
			w.request(chat(user("Where does my marmot live?"), user("Please answer in one sentence.")), "X-Graphiti-Session", "other")
			if got := up.got(); !strings.Contains(got[len(got)-1], "Zeta") {
				t.Errorf("got %q, want the answer to the first message", got[len(got)-1])
			}
		})
	}
}

// TestToolsDescribeNoFiles checks that the files of a turn come from the calls of its
// tools, and not from the descriptions of the tools.
func TestToolsDescribeNoFiles(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	project := []string{"User-Agent", "test/1", "X-Graphiti-Workspace", widgets, "X-Graphiti-Session", "one"}
	body := chat(user("Look at the parser."), m{"role": "assistant", "content": nil, "tool_calls": []m{{"id": "a", "type": "function", "function": m{"name": "read", "arguments": `{"path":"src/parser.go"}`}}}},
		m{"role": "tool", "tool_call_id": "a", "content": "package parser"})
	body["tools"] = []m{{"type": "function", "function": m{"name": "read", "description": `Reads a file: {"path": "src/example.ts"}`}}}
	w.see(body, project...)
	w.remembered("Look at the parser.")
	saw, _ := w.see(chat(user("Go on.")), append(project[:4:4], "X-Graphiti-Session", "two")...)
	if all := strings.Join(saw, "\n"); strings.Contains(all, "example.ts") {
		t.Errorf("the model was told %q", all)
	}
	if group := w.get("/metrics"); strings.Contains(group, "example.ts") {
		t.Error("a metric names a file")
	}
}
