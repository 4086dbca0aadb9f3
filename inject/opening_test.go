package inject

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// fakeOpening is an Opening with fixed statements.
type fakeOpening struct {
	facts       []graphiti.Fact
	err         error
	hang, panic bool
}

func (f *fakeOpening) Standing(ctx context.Context, _ graphiti.Who) ([]graphiti.Fact, error) {
	if f.panic {
		panic("a bug")
	}
	if f.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.facts, f.err
}

func laid(text string) graphiti.Fact {
	return graphiti.Fact{Text: text, Group: "u", Dated: true, CreatedAt: time.Now()}
}

const hello = `{"messages":[{"role":"user","content":"hello"}]}`

// opened returns a Planner with an Opening. change, if not nil, modifies its options.
func opened(t *testing.T, search searchFunc, f *fakeOpening, change func(*options)) *Planner {
	t.Helper()
	m := memory(t, search, &fakeDecisions{})
	o := *m.opts()
	o.Opening, o.CardChars, o.MinScore, o.Snapshots = f, 400, 0.25, fakeSnapshots{}
	if change != nil {
		change(&o)
	}
	m.Set(o.Groups, o.RecallSettings)
	return m
}

// TestCard checks that a conversation's block begins with the card, regardless of the
// results, that no line repeats another, that only whole lines are cut, and that text
// cannot leave its line.
func TestCard(t *testing.T) {
	failing := func(context.Context, string, string) ([]graphiti.Fact, error) { return nil, errors.New("down") }
	for _, tc := range []struct {
		name   string
		f      fakeOpening
		said   string
		search searchFunc
		change func(*options)
		want   []string // lines of the block
		status Status

		standing int // lines under the label of rules
	}{
		{name: "nothing stands on it", said: "hello", search: always(), status: StatusEmpty},
		{name: "an everyday message", standing: 2, said: "hello", f: fakeOpening{facts: []graphiti.Fact{laid("rule, x: tabs"), laid("rule, x: <b>\nbold")}}, search: always("found"),
			want: []string{"rule, x: tabs", "rule, x: ‹b› bold"}, status: StatusRecalled},
		{name: "the rule itself", said: "Use tabs. Then rewrite the makefile.", f: fakeOpening{facts: []graphiti.Fact{laid("rule, 2026-11-26: Use tabs.")}}, search: always(), status: StatusEmpty},
		{name: "a question", standing: 1, said: "which tabs?", f: fakeOpening{facts: []graphiti.Fact{laid("rule, x: tabs")}}, search: always("rule, x: tabs", "found"),
			want: []string{"rule, x: tabs", "found"}, status: StatusRecalled},
		{name: "a fact in its words", standing: 1, said: "which tabs?", f: fakeOpening{facts: []graphiti.Fact{laid("rule, 2026-11-26: Use tabs.")}}, search: always("Use tabs", "found"),
			want: []string{"rule, 2026-11-26: Use tabs.", "found"}, status: StatusRecalled},
		{name: "off", said: "hello", f: fakeOpening{facts: []graphiti.Fact{laid("rule, x: tabs")}}, search: always(), change: func(o *options) { o.CardChars = 0 }, status: StatusEmpty},
		{name: "small", standing: 2, said: "hello", f: fakeOpening{facts: []graphiti.Fact{laid(strings.Repeat("long ", 8)), laid("rule, x: tabs"), laid("more")}}, search: always(),
			change: func(o *options) { o.CardChars = 24 }, want: []string{"rule, x: tabs", "more"}, status: StatusRecalled},
		{name: "a small model", standing: 1, said: "hello", f: fakeOpening{facts: []graphiti.Fact{laid(strings.Repeat("long ", 20)), laid("tabs")}}, search: always(),
			change: func(o *options) { o.Share, o.Window = 0.05, 1000 }, want: []string{"tabs"}, status: StatusRecalled},
		{name: "few facts", standing: 2, said: "which tabs?", f: fakeOpening{facts: []graphiti.Fact{laid("one"), laid("two")}}, search: always("found"),
			change: func(o *options) { o.MaxFacts = 2 }, want: []string{"one", "two"}, status: StatusRecalled},
		{name: "the memory is down", standing: 1, said: "which tabs?", f: fakeOpening{facts: []graphiti.Fact{laid("rule, x: tabs")}}, search: failing, want: []string{"rule, x: tabs"}, status: StatusError},
		{name: "the card cannot be read", said: "which tabs?", f: fakeOpening{err: errors.New("down")}, search: always("found"), want: []string{"found"}, status: StatusRecalled},
		{name: "a bug", said: "hello", f: fakeOpening{panic: true}, search: always("found"), status: StatusError},
	} {
		m := opened(t, tc.search, &tc.f, tc.change)
		body := `{"messages":[{"role":"user","content":"` + tc.said + `"}]}`
		got, p := ask(t, m, body, both)
		var want string
		if len(tc.want) > 0 {
			want, _ = formatBlock(tc.want, tc.standing, true)
		}
		var block string
		if len(p.Inserts) > 0 && strings.Contains(got, "graphiti_memory") {
			var b struct{ Messages []struct{ Content string } }
			must(t, json.Unmarshal([]byte(got), &b))
			block, _, _ = strings.Cut(b.Messages[0].Content, "\n\n"+tc.said)
		}
		if block != want || p.Outcome.Status != tc.status || p.Outcome.Facts != len(tc.want) {
			t.Errorf("%s: %+v\n%s\nwant\n%s", tc.name, p.Outcome, block, want)
		}
	}
}

// TestCardIsShownOnce checks that the next turn repeats the block and has no card of its
// own, even after a new rule.
func TestCardIsShownOnce(t *testing.T) {
	f := &fakeOpening{facts: []graphiti.Fact{laid("rule, x: tabs")}}
	m := opened(t, always(), f, nil)
	first, _ := ask(t, m, hello, both)
	f.facts = append(f.facts, laid("rule, x: spaces"))
	got, _ := ask(t, m, `{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"Hi."},{"role":"user","content":"thanks"}]}`, both)
	if prefix := strings.TrimSuffix(first, "}]}"); !strings.HasPrefix(got, prefix) || strings.Count(got, "graphiti_memory") != 2 || strings.Contains(got, "spaces") {
		t.Errorf("%s\nand then\n%s", first, got)
	}
	// A conversation with an unknown history has no card: this is not its beginning.
	m = opened(t, always(), f, nil)
	if got, _ := ask(t, m, `{"messages":[{"role":"user","content":"hello there"},{"role":"assistant","content":"Hi."},{"role":"user","content":"thanks"}]}`, both); strings.Contains(got, "tabs") {
		t.Errorf("in the middle: %s", got)
	}
}

// TestCardThatIsSlow checks that a request continues in time without a slow card.
func TestCardThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := opened(t, always("found"), &fakeOpening{hang: true}, nil)
		start := time.Now()
		got, _ := ask(t, m, hello, both)
		if took := time.Since(start); took > 400*time.Millisecond || strings.Contains(got, "graphiti_memory") {
			t.Errorf("after %v: %s", took, got)
		}
		m.Close()
	})
}

// TestLeftOff checks the line about the last conversation, which has a limited length.
func TestLeftOff(t *testing.T) {
	at := time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	begin := "last conversation here, 2026-11-20, "
	for _, tc := range []struct {
		s    snapshot
		sum  string // of the client
		want string
	}{
		{snapshot{Decided: []string{"We moved to Postgres."}}, "", begin + "decided: We moved to Postgres."},
		{snapshot{Asked: "x", Work: tasks{Tasks: []dialect.Task{{Text: "Test it"}, {Text: "Write it", Done: true}}}}, "", begin + "left open: Test it"},
		{snapshot{Decided: []string{"We moved."}, Work: tasks{Tasks: []dialect.Task{{Text: "Test it"}}}}, "", begin + "decided: We moved.; left open: Test it"},
		{snapshot{Asked: "x"}, "Goal: The parser\nNext steps:\n- Test it", begin + "about: The parser; left open: Test it"},
		{snapshot{Asked: "x"}, "Goal: The parser", ""},
		{snapshot{Asked: "Write it.", Files: []string{"a.go", "b.go", "c.go", "d.go"}}, "", begin + "files changed: b.go, c.go, d.go"},
	} {
		tc.s.addSummary(tc.sum)
		if got := plain(tc.s.leftOff(at)); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	// Each part is whole or absent, and open points take precedence over the others.
	word := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n/5)) }
	for _, tc := range []struct {
		s     snapshot
		about string
		want  []string
	}{
		{snapshot{Decided: []string{word(150)}, Work: tasks{Tasks: []dialect.Task{{Text: word(80)}}}}, word(70), []string{"decided: " + word(150), "left open: " + word(80)}},
		{snapshot{Decided: []string{word(80)}, Work: tasks{Tasks: []dialect.Task{{Text: word(40)}}}}, word(80), []string{"about: " + word(80), "decided: " + word(80), "left open: " + word(40)}},
		{snapshot{Decided: []string{word(160)}, Work: tasks{Tasks: []dialect.Task{{Text: word(160)}, {Text: word(80)}}}, Files: []string{"a.go"}}, "x", []string{"about: x", "files changed: a.go", "left open: " + word(160)}},
		{snapshot{Work: tasks{Tasks: []dialect.Task{{Text: word(600)}}}}, word(400), []string{"left open: " + noteLine(word(600))}},
		{snapshot{Work: tasks{Tasks: []dialect.Task{{Text: word(120)}, {Text: word(150)}, {Text: "last"}}}}, "", []string{"left open: " + word(120), "last"}},
	} {
		tc.s.Listed.About = tc.about
		got := plain(tc.s.leftOff(at))
		if want := begin + strings.Join(tc.want, "; "); got != want || utf8.RuneCountInString(got)+3 > leftOffChars {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestLeftOff_LastSession checks that a conversation without anything to continue, such as
// a question, does not count as the last one. A client's summary with an open point does.
func TestLeftOff_LastSession(t *testing.T) {
	for name, tc := range map[string]struct {
		said Ended
		want string
	}{
		"a question":    {Ended{Said: "Which port does the database have?"}, "decided: We moved the staging database to Stockholm."},
		"a decision":    {Ended{Said: "We switched the cache from Redis to Valkey."}, "decided: We switched the cache from Redis to Valkey."},
		"its summary":   {Ended{By: ForSummary, Answered: "## Next Steps\n- Bump the chart\n"}, "left open: Bump the chart"},
		"another agent": {Ended{By: ByAgent, Said: "x", Answered: "y"}, "decided: We moved the staging database to Stockholm."},
	} {
		a := memory(t, always(), &fakeDecisions{})
		o := *a.opts()
		s := *o.Services
		s.Snapshots, s.Decides = fakeSnapshots{}, func(_ context.Context, said string) bool { return strings.HasPrefix(said, "We ") }
		o.Services, o.Groups, o.Resume = &s, inWidgets{}, time.Hour
		a.o.Store(&o)
		a.Remember(graphiti.Who{User: "user:p", Session: "session:a"}, 0, Ended{Said: "We moved the staging database to Stockholm."})
		b := graphiti.Who{User: "user:p", Session: "session:b"}
		a.Remember(b, 0, Ended{Said: "Tell me about the port of the database."})
		a.Remember(b, 0, tc.said)
		sent, _ := ask(t, a, hello, both)
		if !strings.Contains(sent, tc.want) || !strings.Contains(sent, "last conversation here") {
			t.Errorf("%s: got %s, want %q in it", name, sent, tc.want)
		}
	}
}

// inWidgets reads and writes the group of one project.
type inWidgets struct{ targets }

func (inWidgets) Reads(graphiti.Who, bool) []graphiti.Target {
	return []graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: "widgets"}}
}
func (p inWidgets) Writes(w graphiti.Who) []graphiti.Target { return p.Reads(w, false) }

// TestOpens checks that a result that the line about the last conversation quotes is a repeat.
func TestOpens(t *testing.T) {
	const begin = "last conversation here, 2026-11-20, "
	for _, tc := range []struct {
		line string
		want Verdict
	}{
		{begin + "decided: “We moved.”", Repeated},
		{begin + "decided: “We moved.”; left open: “Test it”", Repeated},
		{begin + "decided: “We stayed.”", Shown},
	} {
		ch := &chooser{count: 12, max: 2000}
		ch.openWith([]Candidate{{Line: tc.line, Verdict: Shown}})
		all := ch.choose([]Scoped{{graphiti.ScopeUser, []graphiti.Fact{laid("user, 2026-11-20: We moved.")}}})
		if all[0].Verdict != tc.want {
			t.Errorf("%s: got the verdict %q, want %q", tc.line, all[0].Verdict, tc.want)
		}
	}
}

// TestBlockHasTwoParts checks that rules come first under their label, that results follow,
// newest first, and that a project's block marks personal results.
func TestBlockHasTwoParts(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 12, 0, 0, 0, time.UTC) }
	fact := func(said string, n int) graphiti.Fact {
		head := "user, " + day(n).Format(time.DateOnly)
		return graphiti.Fact{Text: head + ": " + said, Said: head, Dated: true, ValidAt: day(n)}
	}
	ch := &chooser{now: day(20), count: 12, max: 2000}
	all := ch.choose([]Scoped{
		{graphiti.ScopeWorkspace, []graphiti.Fact{fact("the oldest", 1), fact("the newest", 3)}},
		{graphiti.ScopeUser, []graphiti.Fact{fact("my own", 2), {Text: "The user sings", ValidAt: day(1), CreatedAt: day(1)}}},
	})
	got, n := formatBlock(append([]string{"rule, 2026-11-01: tabs"}, plainAll(lines(all))...), 1, true)
	want := blockOpen + blockFrame + standingLabel + "- rule, 2026-11-01: tabs\n" + recalledLabel +
		"- user, 2026-11-03: the newest\n- user (personal), 2026-11-02: my own\n- user, 2026-11-01: the oldest\n- The user sings (personal, since 2026-11-01)\n" + blockClose
	if got != want || n != 5 {
		t.Errorf("got %d lines in\n%s\nwant 5 in\n%s", n, got, want)
	}
}
