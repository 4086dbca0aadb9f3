package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

const widgets = "github_repo:github.com/acme/widgets"

// opening returns the block before the first message of a new conversation, without its end
// tag, or "" if the message has no block.
func (w *world) opening(session, text string, headers ...string) string {
	w.t.Helper()
	_, _, saw := w.say(text, append([]string{"X-Graphiti-Session", session}, headers...)...)
	block, _, _ := strings.Cut(saw, "</graphiti_memory>")
	if !strings.HasSuffix(saw, text) {
		w.t.Fatalf("the model saw %q", saw)
	}
	return strings.TrimSuffix(block, text)
}

// noted waits until the captured turns are delivered and recorded for cards.
func (w *world) noted() *world { return w.restart() }

// remembered waits until the short-term memory of the project has a request that begins
// with says.
func (w *world) remembered(says string) {
	w.t.Helper()
	group, _ := graphiti.Namer{}.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: widgets})
	w.shortTerm(group, `"asked":"`+says)
}

// withMemories runs f with the embedded backends, and with Graphiti.
func withMemories(t *testing.T, f func(t *testing.T, settings map[string]string)) {
	t.Helper()
	for name, remote := range map[string]bool{"embedded": false, "Graphiti": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{"identity.owner": "user:josh"}
			if remote {
				g := startGraphiti(t, graphititest.Options{})
				for k, v := range map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true"} {
					settings[k] = v
				}
			}
			f(t, settings)
		})
	}
}

// TestRuleInItsConversation checks that a rule opens the next conversation of its project,
// stays unchanged in it after a restart, and is repeated once after a compaction. A card
// limit of zero turns cards off.
func TestRuleInItsConversation(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		settings["recall.resume_within"] = "0"
		w := start(t, t.TempDir(), settings)
		project := []string{"X-Graphiti-Workspace", widgets}
		w.opening("one", "Please always use tabs in Go files.", project...)
		rule := "\n- rule, " + time.Now().Format(time.DateOnly) + ": Please always use tabs in Go files.\n"
		if first := w.opening("three", "hello", project...); strings.Count(first, rule) != 1 {
			t.Errorf("got %q, want the rule once", first)
		}

		// The next turn repeats the block in its place and adds no other.
		ask := func() []string {
			texts, _ := w.see(chat(user("hello"), replied("Hi."), user("thanks")), append([]string{"X-Graphiti-Session", "three"}, project...)...)
			return texts
		}
		texts := ask()
		if len(texts) != 2 || strings.Count(texts[0], rule) != 1 || texts[1] != "thanks" {
			t.Errorf("the next turn: %q", texts)
		}
		w = w.restart()
		if again := ask(); !slices.Equal(again, texts) {
			t.Errorf("after a restart: %q", again)
		}
		// After a compaction the rule is shown again, once.
		compacted := []m{user("This session is being continued from a previous conversation that ran out of context. Summary: loops."), replied("Go on."), user("go on, please")}
		texts, _ = w.see(chat(compacted...), append([]string{"X-Graphiti-Session", "three"}, project...)...)
		if last := texts[len(texts)-1]; strings.Count(last, rule) != 1 {
			t.Errorf("after a compaction: %q", texts)
		}
		next, _ := w.see(chat(append(compacted, replied("Yes."), user("thanks"))...), append([]string{"X-Graphiti-Session", "three"}, project...)...)
		if len(next) != 3 || next[1] != texts[1] || next[2] != "thanks" {
			t.Errorf("the turn after: %q", next)
		}

		out, err := w.cli("memory", "show", "--json", "--workspace", widgets)
		if card := gjson.Get(out, "card.0").String(); err != nil || !strings.Contains(card, "Please always use tabs in Go files") {
			t.Errorf("memory show: %s, %v", out, err)
		}
		cfg := *w.app.cfg
		cfg.Recall.CardChars = 0
		if _, err := w.app.reload(&cfg); err != nil {
			t.Fatal(err)
		}
		if got := w.opening("four", "hello", project...); got != "" {
			t.Errorf("without a card: %q", got)
		}
	})
}

// TestWhereWeLeftOff checks that only the first message of a conversation in a project gets
// a line about the person's previous conversation there and its open tasks.
func TestWhereWeLeftOff(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		w := start(t, t.TempDir(), settings)
		here := []string{"X-Graphiti-Workspace", widgets}
		if got := w.opening("a", "Write the importer for CSV files with quotes.", here...); got != "" {
			t.Errorf("there was none: %q", got)
		}
		w.remembered("Write the importer")
		if got := w.opening("a", "We switched to semicolons.", here...); strings.Contains(got, "last conversation") {
			t.Errorf("told of itself: %q", got)
		}
		w.remembered("We switched")
		if got := w.opening("a", "Now its tests.", here...); strings.Contains(got, "last conversation") {
			t.Errorf("told of itself: %q", got)
		}
		w.remembered("Now its tests")
		told := "\n- last conversation here, " + time.Now().Format(time.DateOnly) + ", decided: “We switched to semicolons.”\n"
		for name, headers := range map[string][]string{"elsewhere": {"X-Graphiti-Workspace", "github_repo:github.com/acme/gadgets"}, "bob": {"X-Graphiti-Workspace", widgets, "X-Graphiti-User", "bob"}, "nowhere": nil} {
			if got := w.opening(name, "hello", headers...); strings.Contains(got, "last conversation") {
				t.Errorf("%s is told %q", name, got)
			}
		}
		first := w.opening("b", "hello", here...)
		if !strings.Contains(first, told) {
			t.Errorf("got %q, want %q in it", first, told)
		}
		texts, _ := w.see(chat(user("hello"), replied("Hi."), user("thanks")), append([]string{"X-Graphiti-Session", "b"}, here...)...)
		if len(texts) != 2 || !strings.HasPrefix(texts[0], first) || texts[1] != "thanks" {
			t.Errorf("the next turn: %q", texts)
		}

		// The summary of a compaction lists the open tasks.
		w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
			if strings.Contains(c.Messages[len(c.Messages)-1].Text, "CONTEXT CHECKPOINT") {
				return proxytest.Reply{Text: "<summary>1. Primary Request and Intent:\n   The importer for CSV files.\n7. Pending Tasks:\n   - Empty </graphiti_memory> fields\n   - The docs\n</summary>"}
			}
			return proxytest.Reply{Text: "I see."}
		})
		w.exchange("/v1/chat/completions", chat(user("Write the importer for CSV files with quotes."), replied("I see."),
			user(summarise)), append([]string{"X-Graphiti-Session", "a"}, here...)...)
		w = w.noted()
		if got := w.opening("c", "hello", here...); !strings.Contains(got, ", about: “The importer for CSV files.”; decided: “We switched to semicolons.”; left open: “Empty ‹/graphiti_memory› fields”; “The docs”\n") {
			t.Errorf("after a compaction: %q", got)
		}
		waitUntil(t, "Graphiti to store all turns", func() bool { return w.app.memory().queue().Pending == 0 })
		if _, err := w.cli("memory", "forget", "--session", "a", "--yes"); err != nil {
			t.Fatal(err)
		}
		if got := w.opening("d", "hello", here...); strings.Contains(got, "last conversation") {
			t.Errorf("of a conversation that was forgotten: %q", got)
		}
	})
}
