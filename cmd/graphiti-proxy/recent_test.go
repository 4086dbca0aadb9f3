package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestRecentMessageIsRecalled checks that another conversation recalls a message before
// Graphiti has processed it, even after a restart, and while Graphiti is down. While the
// message is being forgotten, no conversation recalls it.
func TestRecentMessageIsRecalled(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]graphititest.Options{
		"REST": {Delay: time.Hour},
		"MCP":  {Delay: time.Hour, MCP: graphititest.Today},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := graphititest.Start(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { g.Close() })
			backend := "graphiti"
			if o.MCP != 0 {
				backend = "graphiti-mcp"
			}
			w := start(t, t.TempDir(), map[string]string{
				"memory.backend": backend, "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw",
			})
			w.say(fact)
			w.recalledLocally()
			w.stop()
			w = start(t, w.dir, w.settings)
			w.recalledLocally()
			if backend != "graphiti" { // over MCP, the proxy needs Graphiti to end
				return
			}
			g.Close()
			w.recalledLocally()
			if _, err := w.cli("memory", "forget", "--yes"); err == nil {
				t.Error("forgetting is proven without Graphiti")
			}
			if _, header, saw := w.say(question, "X-Graphiti-Memory", "recall"); strings.Contains(saw, "Miso") {
				t.Errorf("what is being forgotten is recalled: %s", header)
			}
		})
	}
}

// recalledLocally waits until the fact is recalled, once.
func (w *world) recalledLocally() {
	w.t.Helper()
	waitUntil(w.t, "what was said is recalled", func() bool {
		_, header, saw := w.say(question, "X-Graphiti-Memory", "recall")
		return strings.Count(saw, "Miso") == 1 && strings.HasPrefix(header, "recalled; ")
	})
}

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
	g, err := graphititest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
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

// TestACorrectionComesFirst checks that a correction is recalled before the message that it
// corrects, whether or not Graphiti has processed either of them.
func TestACorrectionComesFirst(t *testing.T) {
	t.Parallel()
	const before, after = "6543", "7654"
	for name, o := range map[string]graphititest.Options{"graphiti": {}, "graphiti-mcp": {MCP: graphititest.Today}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, work := withheld(t, name, o, before, after)
			const asked = "Which port does the staging database use?"
			w.say("The staging database listens on port " + before + ".")
			w.recalledOnce(asked, before)
			w.say("The staging database has moved to port " + after + ".")
			w.recalledOnce(asked, after)
			corrected := func(when string) {
				t.Helper()
				_, header, saw := w.say(asked, "X-Graphiti-Memory", "recall")
				newer, older := strings.Index(saw, after), strings.Index(saw, before)
				if newer < 0 || older >= 0 && older < newer {
					t.Errorf("%s: got %s: %s, want the newer before the older", when, header, saw)
				}
			}
			corrected("both were just said")
			work(before)
			w.delivered(1)
			corrected("what it corrects was worked off")
			work(after)
			w.delivered(2)
			corrected("both were worked off")
		})
	}
}

// TestAFactInOtherWordsIsRecalled checks that a fact of Graphiti answers a question without
// words of the message.
func TestAFactInOtherWordsIsRecalled(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]graphititest.Options{"graphiti": {}, "graphiti-mcp": {MCP: graphititest.Today}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Reads = func(string) string { return "Called by the user, the feline answers to Miso" }
			g, err := graphititest.Start(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { g.Close() })
			w := start(t, t.TempDir(), map[string]string{
				"memory.backend": name, "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw",
			})
			w.say(fact)
			waitUntil(t, "the fact is recalled", func() bool {
				_, _, saw := w.say("To which name does the feline answer?", "X-Graphiti-Memory", "recall")
				return strings.Contains(saw, "answers to Miso")
			})
		})
	}
}

// TestWhoWasAskedSaysSomething checks that a one-word answer to a question is sent to
// Graphiti. Without a question before it, a turn of nods has no copy there.
func TestWhoWasAskedSaysSomething(t *testing.T) {
	t.Parallel()
	g, err := graphititest.Start(graphititest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
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
