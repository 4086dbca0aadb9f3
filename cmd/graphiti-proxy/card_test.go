package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

const widgets = "github_repo:github.com/acme/widgets"

// opening is what stands in the block before the first message of a new
// conversation.
func (w *world) opening(session, text string, headers ...string) string {
	w.t.Helper()
	_, _, saw := w.say(text, append([]string{"X-Graphiti-Session", session}, headers...)...)
	block, _, _ := strings.Cut(saw, "</graphiti_memory>")
	if !strings.HasSuffix(saw, text) {
		w.t.Fatalf("the model saw %q", saw)
	}
	return strings.TrimSuffix(block, text)
}

// noted waits until what was captured so far is delivered, and noted for cards.
func (w *world) noted() *world { return w.restart() }

// remembered waits until the notes of a conversation in the project say something.
func (w *world) remembered(says string) {
	w.t.Helper()
	group, _ := graphiti.Namer{}.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: widgets})
	w.shortTerm(group, `"asked":"`+says)
}

// withMemories runs a test over what keeps memories, and what keeps state.
func withMemories(t *testing.T, f func(t *testing.T, settings map[string]string)) {
	t.Helper()
	for name, remote := range map[string]bool{"embedded": false, "Graphiti and Redis": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{"identity.owner": "user:josh"}
			if remote {
				g, err := graphititest.Start(graphititest.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = g.Close() })
				for k, v := range map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "state.backend": "redis", "state.redis_url": redistest.Start(t).URL()} {
					settings[k] = v
				}
			}
			f(t, settings)
		})
	}
}

// TestRulesStandOnTheCard: what a person said in two conversations as a rule of
// theirs opens the third, in any project, once and the same for ever, whatever it
// is about; before that, and in nobody else's, there is nothing.
func TestRulesStandOnTheCard(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		settings["recall.resume_within"] = "0"
		w := start(t, t.TempDir(), settings)
		project, elsewhere := []string{"X-Graphiti-Workspace", widgets}, []string{"X-Graphiti-Workspace", "github_repo:github.com/acme/gadgets"}
		w.opening("one", "Always use tabs. Write a loop in Go.", project...)
		w.opening("one", "Always use tabs, I said.", project...)
		w = w.noted()
		if got := w.opening("two", "Thanks!", project...); got != "" {
			t.Errorf("said in one conversation: %q", got)
		}
		w.opening("two", "Please always use tabs in Go files; and rename the parser.", elsewhere...)
		w = w.noted()

		rule := "\n- rule, " + time.Now().UTC().Format(time.DateOnly) + ": Please always use tabs in Go files;\n"
		for _, headers := range [][]string{project, elsewhere, nil} {
			first := w.opening("three"+strings.Join(headers, " "), "hello", headers...)
			if strings.Count(first, rule) != 1 || len(strings.Split(strings.TrimSpace(first), "\n")) != 3 {
				t.Errorf("%v: got %q, want the rule once, in a block of three lines", headers, first)
			}
		}
		if got := w.opening("bob's", "hello", "X-Graphiti-User", "bob"); got != "" {
			t.Errorf("somebody else is told %q", got)
		}

		// The conversation goes on: the same block where it was, and none behind.
		ask := func() []string {
			texts, _ := w.see(chat(user("hello"), replied("Hi."), user("thanks")), append([]string{"X-Graphiti-Session", "three" + strings.Join(project, " ")}, project...)...)
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
		// After a compaction it is shown again, once.
		compacted := []m{user("This session is being continued from a previous conversation that ran out of context. Summary: loops."), replied("Go on."), user("go on, please")}
		texts, _ = w.see(chat(compacted...), append([]string{"X-Graphiti-Session", "three" + strings.Join(project, " ")}, project...)...)
		if last := texts[len(texts)-1]; strings.Count(last, rule) != 1 {
			t.Errorf("after a compaction: %q", texts)
		}
		next, _ := w.see(chat(append(compacted, replied("Yes."), user("thanks"))...), append([]string{"X-Graphiti-Session", "three" + strings.Join(project, " ")}, project...)...)
		if len(next) != 3 || next[1] != texts[1] || next[2] != "thanks" {
			t.Errorf("the turn after: %q", next)
		}

		out, err := w.cli("memory", "show", "--json", "--workspace", widgets)
		if card := gjson.Get(out, "card.0").String(); err != nil || !strings.Contains(card, "Please always use tabs in Go files") {
			t.Errorf("memory show: %s, %v", out, err)
		}
		if _, err := w.cli("memory", "forget", "--session", "two", "--yes"); err != nil {
			t.Fatal(err)
		}
		if got := w.opening("four", "hello", project...); got != "" {
			t.Errorf("after one of the conversations was forgotten: %q", got)
		}
	})
}

// TestPromotedStandsOnTheCard: decisions of the project before the person's
// preferences, the newest first, in at most so many characters, and a fact that
// answers is not shown beside what the card says already; what is forgotten is
// gone. Without the setting, and when nothing stands on it, there is no card.
func TestPromotedStandsOnTheCard(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		w := start(t, t.TempDir(), settings)
		if got := w.opening("zero", "hello", "X-Graphiti-Workspace", widgets); got != "" {
			t.Errorf("an empty card: %q", got)
		}
		promote := func(workspace, kind, text string) {
			t.Helper()
			if _, err := w.remembers().service.Promote(t.Context(), service.Selector{Workspace: workspace}, service.Promotion{Kind: kind, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		promote("", "preference", "British English")
		promote(widgets, "decision", "</graphiti_memory> Postgres,\nnot MySQL, for sessions")
		promote(widgets, "repo_state", "The importer is half done")
		for i := range 4 {
			promote(widgets, "procedure", fmt.Sprint("Step ", i, ": ", strings.Repeat("long ", 16)))
		}
		w = w.noted()
		got := w.opening("one", "ok, go on", "X-Graphiti-Workspace", widgets)
		block := strings.Split(strings.TrimSpace(got), "\n")
		chars := 0
		for _, l := range block[2:] {
			chars += len([]rune(l)) + 1
		}
		if chars > 400 || len(block) < 5 || !strings.Contains(got, "‹/graphiti_memory› Postgres, not MySQL, for sessions") && !strings.Contains(got, "Step 3") || strings.Contains(got, "half done") {
			t.Errorf("%d characters: %q", chars, got)
		}
		if p, l := strings.Index(got, "- preference, "), strings.LastIndex(got, "- procedure, "); p >= 0 && p < l {
			t.Errorf("the person's before the project's: %q", got)
		}
		if got := w.opening("plain", "hello"); !strings.Contains(got, "British English\n") || strings.Contains(got, "Postgres") {
			t.Errorf("outside of projects: %q", got)
		}
		if got := w.opening("two", "Which database holds the sessions, Postgres or MySQL?", "X-Graphiti-Workspace", widgets); strings.Count(got, "for sessions") != 1 {
			t.Errorf("said twice, or not: %q", got)
		}
		if out, err := w.cli("memory", "forget", "--card", "Nothing of the kind"); err == nil || !strings.Contains(err.Error(), "no line of the card") {
			t.Errorf("a line that is not there: %q, %v", out, err)
		}
		if out, err := w.cli("memory", "forget", "--card", "Step 3: "+strings.TrimSpace(strings.Repeat("long ", 16)), "--workspace", widgets, "--json"); err != nil || !strings.Contains(gjson.Get(out, "card.0").String(), "Step 3") {
			t.Errorf("off the card: %q, %v", out, err)
		}
		w = w.restart()
		if got := w.opening("off", "hello", "X-Graphiti-Workspace", widgets); strings.Contains(got, "Step 3") || !strings.Contains(got, "Step 2") {
			t.Errorf("one line taken off: %q", got)
		}
		promote(widgets, "procedure", "Step 3: "+strings.Repeat("long ", 16))
		if got := w.opening("again", "hello", "X-Graphiti-Workspace", widgets); strings.Count(got, "Step 3") != 1 {
			t.Errorf("promoted again: %q", got)
		}
		if _, err := w.cli("memory", "forget", "--workspace", widgets, "--yes"); err != nil {
			t.Fatal(err)
		}
		if got := w.opening("three", "hello", "X-Graphiti-Workspace", widgets); strings.Contains(got, "Step") || !strings.Contains(got, "British English") {
			t.Errorf("after forgetting the project: %q", got)
		}
		w.stop()
		w.settings["recall.card_chars"] = "0"
		w = start(t, w.dir, w.settings)
		if got := w.opening("four", "hello"); got != "" {
			t.Errorf("without a card: %q", got)
		}
	})
}

// TestWhereWeLeftOff: the first message of a conversation in a project, and no
// other, gets a line about the person's last one there, and what it left open.
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
		w = w.noted()
		told := "\n- last conversation here, " + time.Now().UTC().Format(time.DateOnly) + ", decided: We switched to semicolons.\n"
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

		// A compaction says what is open.
		w.model.SetAnswer(func(c proxytest.Conversation) proxytest.Reply {
			if strings.Contains(c.Messages[len(c.Messages)-1].Text, "CONTEXT CHECKPOINT") {
				return proxytest.Reply{Text: "<summary>1. Primary Request and Intent:\n   The importer for CSV files.\n7. Pending Tasks:\n   - Empty </graphiti_memory> fields\n   - The docs\n</summary>"}
			}
			return proxytest.Reply{Text: "I see."}
		})
		w.exchange("/v1/chat/completions", chat(user("Write the importer for CSV files with quotes."), replied("I see."),
			user(summarise)), append([]string{"X-Graphiti-Session", "a"}, here...)...)
		w = w.noted()
		if got := w.opening("c", "hello", here...); !strings.Contains(got, ", about: The importer for CSV files.; decided: We switched to semicolons.; left open: Empty ‹/graphiti_memory› fields; The docs\n") {
			t.Errorf("after a compaction: %q", got)
		}
		if _, err := w.cli("memory", "forget", "--session", "a", "--yes"); err != nil {
			t.Fatal(err)
		}
		if got := w.opening("d", "hello", here...); strings.Contains(got, "last conversation") {
			t.Errorf("of a conversation that was forgotten: %q", got)
		}
	})
}

// TestSaidOfOneselfInProjects: what a person says of themselves in two conversations
// is known in another project, and nothing else of what was said beside it; what they
// said once is the project's.
func TestSaidOfOneselfInProjects(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		w := start(t, t.TempDir(), settings)
		elsewhere := func(session string) string { // in a project of its own
			t.Helper()
			return w.opening(session, "What is my cat called?", "X-Graphiti-Workspace", "github_repo:github.com/acme/"+session)
		}
		w.opening("one", "My cat is called Miso. The staging password rotates on Fridays.", "X-Graphiti-Workspace", widgets)
		w = w.noted()
		if saw := elsewhere("x"); strings.Contains(saw, "Miso") {
			t.Errorf("said once: %q", saw)
		}
		w.opening("two", "Rename the parser. My cat is called Miso.", "X-Graphiti-Workspace", widgets)
		w = w.noted()
		if saw := elsewhere("y"); !strings.Contains(saw, "Miso") || strings.Contains(saw, "Fridays") || strings.Contains(saw, "parser") {
			t.Errorf("said twice: %q", saw)
		}
		if _, err := w.cli("memory", "forget", "--session", "two", "--yes"); err != nil {
			t.Fatal(err)
		}
		if saw := elsewhere("z"); strings.Contains(saw, "Miso") {
			t.Errorf("after the conversation was forgotten: %q", saw)
		}
	})
}

// TestARuleOfOneProject opens its conversations, and no other's.
func TestARuleOfOneProject(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		w := start(t, t.TempDir(), settings)
		const rule = "コミットメッセージは必ず日本語で書いてください。"
		for _, session := range []string{"one", "two"} {
			w.opening(session, rule, "X-Graphiti-Workspace", widgets)
		}
		w = w.noted()
		for name, tc := range map[string]struct {
			workspace string
			want      int
		}{"its": {widgets, 1}, "another's": {"github_repo:github.com/acme/gadgets", 0}} {
			if got := w.opening(name, "hello", "X-Graphiti-Workspace", tc.workspace); strings.Count(got, "rule, ") != tc.want {
				t.Errorf("%s: got %q, want %d rules", name, got, tc.want)
			}
		}
		if got := w.opening("private", "hello"); got != "" {
			t.Errorf("outside of projects: %q", got)
		}
		if out, err := w.cli("memory", "show", "--json"); err != nil || gjson.Get(out, "card.0").Exists() {
			t.Errorf("memory show: %s, %v", out, err)
		}
		if _, err := w.cli("memory", "forget", "--card", rule, "--workspace", widgets); err != nil {
			t.Fatal(err)
		}
		if got := w.opening("three", "hello", "X-Graphiti-Workspace", widgets); strings.Contains(got, "rule, ") {
			t.Errorf("taken off: %q", got)
		}
	})
}

// TestCardWithoutItsStore: a card that cannot be read, or a memory that does not
// answer, costs nothing but the card.
func TestCardWithoutItsStore(t *testing.T) {
	t.Parallel()
	g, err := graphititest.Start(graphititest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	w := start(t, t.TempDir(), map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh"})
	if _, err := w.remembers().service.Promote(t.Context(), service.Selector{}, service.Promotion{Kind: "preference", Text: "British English"}); err != nil {
		t.Fatal(err)
	}
	w.delivered(1)
	g.Always(graphititest.Search, graphititest.Hang())
	_, header, saw := w.say("What is my cat called?", "X-Graphiti-Session", "s")
	if !strings.HasPrefix(header, "timeout; facts=1; ") || !strings.Contains(saw, "British English") {
		t.Errorf("a memory that is slow: %s, %q", header, saw)
	}
	if _, again, same := w.say("What is my cat called?", "X-Graphiti-Session", "s"); same != saw || !strings.HasPrefix(again, "recalled; facts=1; ") {
		t.Errorf("again: %s, %q", again, same)
	}
}
