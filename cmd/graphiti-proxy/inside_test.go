package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestForget_Accepted checks that a request to forget takes effect only when the provider has
// accepted it, and then on the client's next try.
func TestForget_Accepted(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	for n, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		boat, session := fmt.Sprint("Nemo", n), fmt.Sprint("s", n)
		w.say(fmt.Sprintf("My boat number %d is called %s.", n, boat), "X-Graphiti-Session", "seed"+session)
		w.delivered(n + 1)
		forget := chat(user(fmt.Sprintf("Forget that my boat number %d is called %s.", n, boat)))
		w.model.SetFaults(proxytest.Faults{Status: status})
		if _, header := w.exchange("/v1/chat/completions", forget, "X-Graphiti-Session", session); strings.Contains(header.Get("X-Graphiti-Memory"), "ended=") {
			t.Errorf("status %d: %s, want nothing ended", status, header.Get("X-Graphiti-Memory"))
		}
		w.model.SetFaults(proxytest.Faults{})
		question := fmt.Sprintf("What is boat number %d called?", n)
		if _, _, saw := w.say(question, "X-Graphiti-Session", "q"+session); !strings.Contains(saw, boat) {
			t.Errorf("status %d: the statement was forgotten", status)
		}
		if _, header := w.exchange("/v1/chat/completions", forget, "X-Graphiti-Session", session); !strings.Contains(header.Get("X-Graphiti-Memory"), "ended=") {
			t.Errorf("status %d, tried again: %s, want the statement ended", status, header.Get("X-Graphiti-Memory"))
		}
		if _, _, saw := w.say(question+" Tell me.", "X-Graphiti-Session", "r"+session); strings.Contains(saw, boat) {
			t.Errorf("status %d, tried again: the statement is still recalled", status)
		}
	}
}
