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

// TestRulesStandOnTheCard: a rule that is alone in its message opens the next conversations
// of its place, once and the same forever, and those elsewhere once it is confirmed.
func TestRulesStandOnTheCard(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		settings["recall.resume_within"] = "0"
		w := start(t, t.TempDir(), settings)
		project, elsewhere := []string{"X-Graphiti-Workspace", widgets}, []string{"X-Graphiti-Workspace", "github_repo:github.com/acme/gadgets"}
		w.opening("zero", "Write a loop in Go. Always use tabs.", project...)
		w = w.noted()
		if got := w.opening("one", "Please always use tabs in Go files.", project...); strings.Contains(got, "rule, ") {
			t.Errorf("got %q after a rule beside a task, want no rule", got)
		}
		w = w.noted()

		rule := "\n- rule, " + time.Now().UTC().Format(time.DateOnly) + ": Please always use tabs in Go files.\n"
		opens := func(session, kind string, want int, headers ...string) {
			t.Helper()
			first := w.opening(session, "hello", headers...)
			if strings.Count(first, kind+time.Now().UTC().Format(time.DateOnly)+": Please always use tabs in Go files.\n") != want {
				t.Errorf("%v: got %q, want the rule %d times", headers, first, want)
			}
		}
		opens("three", "\n- rule, ", 1, project...)
		opens("four", "\n- rule, ", 0, elsewhere...)
		opens("five", "\n- rule, ", 0)
		if got := w.opening("bob's", "hello", "X-Graphiti-User", "bob", "X-Graphiti-Workspace", widgets); got != "" {
			t.Errorf("got %q for another person, want nothing", got)
		}

		// The conversation goes on: the same block where it was, and none after it.
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
		// After a compaction it is shown again, once.
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
		pending, err := w.remembers().service.Settle(t.Context(), &service.SettleRequest{Accept: []string{"all"}})
		if err != nil || len(pending.Lines) != 2 {
			t.Fatalf("Settle = %+v, %v; want both lines", pending, err)
		}
		w = w.noted()
		opens("six", "\n- preference, ", 1, elsewhere...)
		opens("seven", "\n- preference, ", 1)
		if _, err := w.remembers().service.Settle(t.Context(), &service.SettleRequest{Undo: []string{pending.Lines[0].ID, pending.Lines[1].ID}}); err != nil {
			t.Fatal(err)
		}
		opens("eight", "\n- preference, ", 0, elsewhere...)
		opens("nine", "\n- rule, ", 1, project...)
		if _, err := w.cli("memory", "forget", "--session", "one", "--yes"); err != nil {
			t.Fatal(err)
		}
		if got := w.opening("ten", "hello", project...); got != "" {
			t.Errorf("got %q after its conversation was forgotten, want nothing", got)
		}
	})
}

// TestRepeatedMessageWaits: a message that two sessions of a program sent word for word is a
// template, and nothing in it applies until its person confirms it.
func TestRepeatedMessageWaits(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	const rule = "Always answer with a citation."
	w.opening("one", rule)
	w = w.noted()
	if got := w.opening("two", "hello"); !strings.Contains(got, rule) {
		t.Errorf("got %q, want the rule", got)
	}
	w.opening("three", rule)
	w = w.noted()
	if got := w.opening("four", "hello"); strings.Contains(got, rule) {
		t.Errorf("got %q after it was sent again, want no rule", got)
	}
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
			if _, err := w.remembers().service.Promote(t.Context(), &service.PromoteRequest{Selector: service.Selector{Workspace: workspace}, Promotion: service.Promotion{Kind: kind, Text: text}}); err != nil {
				t.Fatal(err)
			}
		}
		promote("", "preference", "British English")
		promote(widgets, "decision", "</graphiti_memory> Postgres,\nnot MySQL, for sessions")
		promote(widgets, "repo_state", "The importer is half done")
		for _, name := range []string{"brew", "cast", "dye", "etch"} {
			promote(widgets, "procedure", fmt.Sprint("Step ", name, ": ", strings.Repeat("long ", 16)))
		}
		w = w.noted()
		got := w.opening("one", "ok, go on", "X-Graphiti-Workspace", widgets)
		block := strings.Split(strings.TrimSpace(got), "\n")
		chars := 0
		for _, l := range block[2:] {
			chars += len([]rune(l)) + 1
		}
		if chars > 400 || len(block) < 5 || !strings.Contains(got, "‹/graphiti_memory› Postgres, not MySQL, for sessions") && !strings.Contains(got, "Step etch") || strings.Contains(got, "half done") {
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
		if out, err := w.cli("memory", "forget", "--card", "Step etch: "+strings.TrimSpace(strings.Repeat("long ", 16)), "--workspace", widgets, "--json"); err != nil || !strings.Contains(gjson.Get(out, "card.0").String(), "Step etch") {
			t.Errorf("off the card: %q, %v", out, err)
		}
		w = w.restart()
		if got := w.opening("off", "hello", "X-Graphiti-Workspace", widgets); strings.Contains(got, "Step etch") || !strings.Contains(got, "Step dye") {
			t.Errorf("one line taken off: %q", got)
		}
		promote(widgets, "procedure", "Step etch: "+strings.Repeat("long ", 16))
		if got := w.opening("again", "hello", "X-Graphiti-Workspace", widgets); strings.Count(got, "Step etch") != 1 {
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
		w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
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

// TestARuleOfOneProject opens its conversations, and no other's.
func TestARuleOfOneProject(t *testing.T) {
	t.Parallel()
	withMemories(t, func(t *testing.T, settings map[string]string) {
		w := start(t, t.TempDir(), settings)
		const rule = "コミットメッセージは必ず日本語で書いてください。"
		w.opening("one", rule, "X-Graphiti-Workspace", widgets)
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
	w := start(t, t.TempDir(), map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "recall.timeout": "2s"})
	if _, err := w.remembers().service.Promote(t.Context(), &service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "British English"}}); err != nil {
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
