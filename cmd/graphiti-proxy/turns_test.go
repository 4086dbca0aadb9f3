package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answering is a model that says what answer makes of a request.
func answering(t *testing.T, answer func(w http.ResponseWriter, request string)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		answer(w, string(b))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// whole is an answer that is not streamed.
func whole(w http.ResponseWriter, message, finish string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":`+message+`,"finish_reason":"`+finish+`"}]}`)
}

const (
	calls   = `{"role":"assistant","content":"I shall look at the weather service of Oslo first.","tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]}`
	isSunny = `{"role":"assistant","content":"It is sunny in Oslo."}`
)

// weather are the two requests of a turn with a tool.
func weather() (first, second m) {
	ask := m{"role": "user", "content": "Weather in Oslo?"}
	return chat(ask), chat(ask,
		m{"role": "assistant", "content": "I shall look at the weather service of Oslo first.", "tool_calls": []m{{"id": "c", "type": "function", "function": m{"name": "weather", "arguments": "{}"}}}},
		m{"role": "tool", "tool_call_id": "c", "content": "sun"})
}

// forecaster calls a tool, with that finish_reason, and answers then.
func forecaster(t *testing.T, finish string) string {
	return answering(t, func(w http.ResponseWriter, request string) {
		if strings.Contains(request, `"role":"tool"`) {
			whole(w, isSunny, "stop")
			return
		}
		whole(w, calls, finish)
	})
}

// TestCallThatEndsWithStop: a server that calls a tool and says "stop" has not
// ended the turn; what it answers in the end is kept.
func TestCallThatEndsWithStop(t *testing.T) {
	w := start(t, t.TempDir(), map[string]string{"upstream.openai": forecaster(t, "stop")})
	first, second := weather()
	w.request(first, "X-Graphiti-Session", "x")
	w.request(second, "X-Graphiti-Session", "x")
	w.delivered(1)
	if diff := cmp.Diff([]string{"Weather in Oslo?", "It is sunny in Oslo."}, w.held()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
