package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestEverythingSaidIsRecalledOnce checks that each message is recalled exactly once while
// Graphiti processes one message after the other: before, after each step, and once its
// searches fail.
func TestEverythingSaidIsRecalledOnce(t *testing.T) {
	t.Parallel()
	all := []struct{ said, asked, word string }{
		{fact, question, "Miso"},
		{"The staging database listens on port 6543.", "Which port does the staging database use?", "6543"},
		{"Our on-call engineer is Priya.", "Who is our on-call engineer?", "Priya"},
		{"The wheel encoders come from Baumer.", "Where do the wheel encoders come from?", "Baumer"},
	}
	for name, o := range map[string]graphititest.Options{"graphiti": {}, "graphiti-mcp": {MCP: graphititest.Today}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := make([]string, len(all))
			for i := range all {
				words[i] = all[i].word
			}
			w, g, work := withheld(t, name, o, words...)
			for _, one := range all {
				w.say(one.said)
			}
			recalled := func() {
				t.Helper()
				for _, one := range all {
					w.recalledOnce(one.asked, one.word)
				}
			}
			recalled()
			for i, one := range all {
				work(one.word)
				w.delivered(i + 1)
				recalled()
			}
			g.BreakModel("no such model")
			recalled()
		})
	}
}

// withheld starts a proxy with a Graphiti that processes a message with one of the words
// only after a call of work with that word.
func withheld(t *testing.T, backend string, o graphititest.Options, words ...string) (w *world, g *graphititest.Graphiti, work func(word string)) {
	t.Helper()
	gates := make(map[string]chan struct{})
	for _, word := range words {
		gates[word] = make(chan struct{})
	}
	o.Raises = func(_, content string) bool {
		for word, gate := range gates {
			if strings.Contains(content, word) {
				<-gate
			}
		}
		return false
	}
	g = startGraphiti(t, o)
	opened := make(map[string]bool)
	work = func(word string) {
		if !opened[word] {
			opened[word] = true
			close(gates[word])
		}
	}
	t.Cleanup(func() {
		for _, word := range words {
			work(word)
		}
	})
	return start(t, t.TempDir(), map[string]string{
		"memory.backend": backend, "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw",
	}), g, work
}

// recalledOnce waits until a word is recalled, and fails if it is recalled twice.
func (w *world) recalledOnce(asked, word string) {
	w.t.Helper()
	waitUntil(w.t, word+" is recalled", func() bool {
		_, header, saw := w.say(asked, "X-Graphiti-Memory", "recall")
		n := strings.Count(saw, word)
		if n > 1 {
			w.t.Fatalf("%s is recalled %d times (%s): %s", word, n, header, saw)
		}
		return n == 1
	})
}

// TestWhoWasAskedSaysSomething checks that a one-word answer to a question is sent to
// Graphiti. Without a question before it, a turn of nods has no copy there.
func TestWhoWasAskedSaysSomething(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{
		"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw",
	})
	w.model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Text: "Noted."} })
	for session, before := range map[string]string{"asked": "Are you a vegetarian? I can leave out the meat.", "stated": "The lasagne takes an hour."} {
		dinner := []m{user("Suggest a dinner for tonight."), answered(before), user("yes")}
		w.ask(session, dinner...)
		w.ask(session, append(dinner, answered("Noted."), user("The table is set for two."))...)
	}
	w.delivered(3) // of two conversations, without the request
	settled(t, g)
	nods := 0
	for _, e := range g.Episodes("user_josh") {
		if strings.Contains(e.Content, "(user): yes\n") {
			nods++
		}
	}
	if nods != 1 {
		t.Errorf("Graphiti has %d answers with a yes, want that to a question", nods)
	}
}

// TestHistory_OfAStoredSession checks that an unseen turn in a history is stored at once if the
// ledger has another turn of its session, even without decisions of their blocks.
func TestHistory_OfAStoredSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, dir, nil)
	w.model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Text: "Noted."} })
	talk := []m{user("My cat is called Miso.")}
	w.ask("one", talk...)
	w.delivered(1)
	w.stop()
	files, err := filepath.Glob(filepath.Join(dir, "state.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %q, %v; want the files of the state", files, err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	w = start(t, dir, nil)
	w.ask("one", append(talk, answered("Noted."), user("My dog is called Rex."), answered("Noted."), user("The table is set for two."))...)
	waitUntil(t, "the unseen turn", func() bool {
		return strings.Contains(strings.Join(w.held(), "\n"), "Rex")
	})
	if held := w.app.memory().queue().Held; held > 0 {
		t.Errorf("got %d held turns, want 0", held)
	}
}
