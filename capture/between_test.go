package capture

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

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
