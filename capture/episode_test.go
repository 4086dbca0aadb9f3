package capture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

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
