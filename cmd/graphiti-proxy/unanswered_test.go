package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

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
