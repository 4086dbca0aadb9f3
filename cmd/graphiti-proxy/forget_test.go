package main

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// ask sends messages in a session, and returns the request as the model saw it.
func (w *world) ask(session string, messages ...m) string {
	w.t.Helper()
	w.model.Forget()
	w.exchange("/v1/chat/completions", chat(messages...), "X-Graphiti-Session", session)
	return string(w.model.Requests()[0].Body)
}

func (w *world) forget(group string) {
	w.t.Helper()
	if _, err := w.app.curated.Forget(context.Background(), group); err != nil {
		w.t.Fatal(err)
	}
}

func answered(text string) m { return m{"role": "assistant", "content": text} }

// TestForgettingWhatIsUnderWay: a request whose answer ends after its group was
// forgotten leaves nothing, neither in the memory nor in the session's own, and
// the history that its client sends from then on does not bring it back, nor
// what was never kept because its answer failed; also not in a process that
// knows nothing of it. What is said after is kept.
func TestForgettingWhatIsUnderWay(t *testing.T) {
	dir := t.TempDir()
	settings := map[string]string{"identity.owner": "user:josh", "identity.group_ids": "raw"}
	w := start(t, dir, settings)
	var once sync.Once
	asked, answer := make(chan struct{}), make(chan struct{})
	w.model.SetAnswer(func(c proxytest.Conversation) proxytest.Reply {
		if strings.Contains(c.Messages[len(c.Messages)-1].Text, "Foxglove") {
			once.Do(func() { close(asked) })
			<-answer
		}
		return proxytest.Reply{Text: "Understood."}
	})
	w.model.SetFaults(proxytest.Faults{Status: 500})
	failed := user("The depot is called Larkspur.")
	w.ask("s1", failed)
	w.model.SetFaults(proxytest.Faults{})

	talk := []m{failed, answered("Sorry?"), user("We decided to call the heliport Foxglove.")}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.exchange("/v1/chat/completions", chat(talk...), "X-Graphiti-Session", "s1")
	}()
	<-asked
	w.forget("user_josh")
	close(answer)
	<-done

	// One answer after the other is read of a session.
	w.ask("s1", user("The beacon is called Mimosa."))
	w.delivered(1)
	summary := user("This session is being continued from a previous conversation that ran out of context.")
	if saw := w.ask("s1", summary, user("Where were we?")); strings.Contains(saw, "Foxglove") || !strings.Contains(saw, "asked: The beacon is called Mimosa.") {
		t.Errorf("the session is told %s", saw)
	}
	w.delivered(2)
	w.stop()

	w = start(t, dir, settings)
	w.ask("s1", append(talk, answered("Understood."), user("The stable is called Juniper."))...)
	w.ask("s3", user("The ferry is called Oleander."), answered("I see."), user("Thanks.")) // earlier turns come in their order
	waitUntil(t, "the turns", func() bool { return strings.Contains(strings.Join(w.held(), "\n"), "Oleander") })
	for _, episode := range w.heldIn("user_josh") {
		if strings.Contains(episode.Content, "Foxglove") || strings.Contains(episode.Content, "Larkspur") {
			t.Errorf("it came back as %s: %q", episode.Name, episode.Content)
		}
	}
	if saw := w.ask("s4", user("What are the stable, the heliport and the depot called?")); !strings.Contains(saw, "Juniper") || strings.Contains(saw, "Foxglove") || strings.Contains(saw, "Larkspur") {
		t.Errorf("recalled: %s", saw)
	}
}
