package main

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestChangeOfSubject checks that recall follows a change of subject, even to a question of
// common words. Graphiti does not weigh earlier questions against the current one, so the
// proxy adds them only to a question that depends on them.
func TestChangeOfSubject(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"search", "get-memory"} {
		t.Run(query, func(t *testing.T) { changeOfSubject(t, query) })
	}
}

func changeOfSubject(t *testing.T, query string) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{"recall.query": query, "memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh"})
	for i, said := range []string{"Ann does live in Porto.", "Where Ann does live she has a boat.", "Miso is our cat.", "Farid has the pager, he is on call."} {
		w.say(said)
		w.delivered(i + 1)
	}
	settled(t, g)
	talk := []m{user("Where does Ann live?")}
	for _, turn := range []struct{ said, known string }{
		{"", "Porto"}, {"What do you know about our cat?", "Miso is"}, {"Who is on call?", "pager"},
	} {
		if turn.said != "" {
			talk = append(talk, answered("ok"), user(turn.said))
		}
		saw := w.ask("s", talk...)
		if !strings.Contains(saw, turn.known) {
			t.Errorf("%q: the model saw %s", turn.said, saw)
		}
	}
	if n := g.Counts().Calls[graphititest.GetMemory]; n > 0 != (query == "get-memory") {
		t.Errorf("%d calls of get-memory", n)
	}
}
