package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
