package capture

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TestMessagesOfTurn checks that a turn becomes one message, or one per side, and
// none if it has no content.
func TestMessagesOfTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		turn ledger.Turn
		per  Episodes
		want []string
	}{
		"both sides in one":                   {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, []string{"My cat is called Miso.\n(assistant): Noted."}},
		"a message each":                      {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerMessage, []string{"My cat is called Miso.", "Noted."}},
		"with a speaker's name":               {ledger.Turn{Speaker: "josh", User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, []string{"My cat is called Miso.\njosh(assistant): Noted."}},
		"one side":                            {ledger.Turn{User: "My cat is called Miso."}, PerTurn, []string{"My cat is called Miso."}},
		"the rest of a turn":                  {ledger.Turn{Assistant: "Done."}, PerTurn, []string{"Done."}},
		"nobody says anything":                {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerTurn, nil},
		"nor in a message each":               {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerMessage, nil},
		"yes, to a question":                  {ledger.Turn{User: "yes", Assistant: "Noted.", Asked: true}, PerTurn, []string{"yes\n(assistant): Noted."}},
		"nor in whole sentences":              {ledger.Turn{User: "ok thanks", Assistant: "You are welcome."}, PerTurn, nil},
		"nor in German":                       {ledger.Turn{User: "danke!", Assistant: "Gerne."}, PerTurn, nil},
		"the answer to a nod":                 {ledger.Turn{User: "go on", Assistant: "The build fails because Node 18 is missing."}, PerTurn, []string{"go on\n(assistant): The build fails because Node 18 is missing."}},
		"a word that tells":                   {ledger.Turn{User: "Tokyo", Assistant: "Noted."}, PerTurn, []string{"Tokyo\n(assistant): Noted."}},
		"asked and answered of what is known": {ledger.Turn{User: "What is my cat called?", Assistant: "Miso.", Known: true}, PerTurn, nil},
	} {
		tc.turn.ID = "1"
		tc.turn.Said = time.Unix(0, 0)
		var got []string
		var messages []graphiti.Row
		if worthCopy(&tc.turn) {
			messages = messagesOf(&tc.turn, graphiti.ScopeUser, 1000, time.Now())
		}
		for _, m := range episodesOf(messages, tc.per) {
			got = append(got, m.Text)
			if sides := m.Sides(); tc.per == PerTurn && tc.turn.Kind == "" && tc.turn.User != "" && tc.turn.Assistant != "" && (len(sides) != 2 || sides[0].Text != tc.turn.User || sides[1].Text != tc.turn.Assistant) {
				t.Errorf("%s: read back as %+v", name, sides)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWithoutLikeLines: of lines of one shape only the first stay, and the line that is
// unlike them is not lost.
func TestWithoutLikeLines(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, "2026-11-18T03:%02d:%02dZ INFO worker-%d batch=%d took=%dms\n", i/60, i%60, i%8, 9000+i, i)
		if i == 100 {
			log.WriteString("2026-11-18T03:01:40Z ERROR quota of bucket acme-exports exceeded\n")
		}
	}
	got := withoutLikeLines("What is odd here?\n\n" + log.String() + "\nThe pager of Ibex is 5512.")
	for _, want := range []string{"What is odd here?\n\n", "INFO worker-0 batch=9000", "quota of bucket acme-exports exceeded\n", "\nThe pager of Ibex is 5512."} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if lines := strings.Count(got, "\n"); lines > 12 {
		t.Errorf("got %d lines, want the like ones dropped", lines)
	}
	const prose = "One line.\nAnother line here.\n\n\n\nA third.\n"
	if got := withoutLikeLines(prose); got != prose {
		t.Errorf("got %q, want %q", got, prose)
	}
}

func targetsIn(groups ...string) (in []graphiti.Target) {
	for _, g := range groups {
		in = append(in, graphiti.Target{Group: g})
	}
	return in
}

func TestRecentTurnsHaveTheirGroups(t *testing.T) {
	r := newRecent()
	r.begin("begun")
	r.recorded("one", targetsIn("ab", "c"))
	r.recorded("one", targetsIn("d", "ab"))
	for _, tc := range []struct {
		turn   string
		groups []string
		want   bool
	}{
		{"one", []string{"ab"}, true},
		{"one", []string{"d", "c", "ab"}, true},
		{"one", []string{"b"}, false},
		{"one", []string{"a"}, false},
		{"one", []string{"ab", "e"}, false},
		{"one", []string{""}, false},
		{"one", nil, false},
		{"begun", []string{"ab"}, false},
		{"other", []string{"ab"}, false},
	} {
		if got := r.has(tc.turn, targetsIn(tc.groups...)); got != tc.want {
			t.Errorf("turn %s in %q: got %v, want %v", tc.turn, tc.groups, got, tc.want)
		}
	}
}

func TestRecentTurnsAreBounded(t *testing.T) {
	r := newRecent()
	for i := range 2*recentMax + 10 {
		r.recorded(fmt.Sprint("turn", i), targetsIn("group", "other"))
	}
	if r.turns.Len() != recentMax || r.stored.Len() != 2*recentMax {
		t.Errorf("%d turns in %d groups, want %d and %d", r.turns.Len(), r.stored.Len(), recentMax, 2*recentMax)
	}
}

// TestDropBetween checks that thoughts and memory blocks are removed from any text in
// linear time. With quadratic time the large cases would take minutes.
func TestDropBetween(t *testing.T) {
	const n = 1 << 17
	many := func(s string) string { return strings.Repeat(s, n) }
	for _, tc := range []struct{ name, text, thoughts, blocks string }{
		{"nothing", "a < b > c", "a < b > c", "a < b > c"},
		{"some", "a<T>b</T>c<T>d</T>e", "ace", "ace"},
		{"not closed", "a<T>b</T>c<T>d", "ac<T>d", "ac"},
		{"closed and never opened", "a</T>b<T>c</T>", "a</T>b", "a</T>b"},
		{"one within another", "a<T>b<T>c</T>d</T>e", "ae", "ae"},
		{"what is left is a tag", "a<<T>b</T>T>c</T>d", "a<T>c</T>d", "a"},
		{"what is left is a tag that is not closed", "a<<T>b</T>T>c", "a<T>c", "a"},
		{"words behind an end", "a<T>b</T>T>c", "aT>c", "aT>c"},

		{"many", many("a<T>b</T>"), many("a"), many("a")},
		{"many that are not closed", many("a<T>"), many("a<T>"), "a"},
		{"many with one end", many("a<T>") + "</T>b", "ab", "ab"},
		{"many, the ends behind", many("<T>") + many("</T>") + "a", "a", "a"},
		{"many ends", many("</T>"), many("</T>"), many("</T>")},
		{"many brackets", many(">") + "<T>a</T>" + many("<"), many(">") + many("<"), many(">") + many("<")},
	} {
		for _, of := range []struct {
			tag, want string
			drop      func(string) string
		}{{"think", tc.thoughts, dialect.WithoutThoughts}, {"graphiti_memory", tc.blocks, dropBlocks}} {
			tagged := strings.NewReplacer("T>", of.tag+">")
			got, want := of.drop(tagged.Replace(tc.text)), tagged.Replace(of.want)
			if got != want {
				t.Errorf("%s, %s: %d bytes %.100q, want %d bytes %.100q", tc.name, of.tag, len(got), got, len(want), want)
			}
		}
	}
}
