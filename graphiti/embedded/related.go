package embedded

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	mostOfRelated = 30  // newest messages of one related word to visit
	mostRelated   = 600 // messages of all related words
)

// relations has the lines of the table and, by the stem of a word, the lines of its related
// words.
type relations struct {
	lines [][]string
	of    map[string][]int
}

//go:embed related.txt
var relatedWords string

var related = sync.OnceValue(func() (r relations) {
	r.of = make(map[string][]int)
	for line := range strings.Lines(relatedWords) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		asked, answers, ok := strings.Cut(line, ">")
		if !ok {
			answers = asked
		}
		for w := range strings.FieldsSeq(asked) {
			s := words.Term(w)
			r.of[s] = append(r.of[s], len(r.lines))
		}
		var line []string
		for w := range strings.FieldsSeq(answers) {
			line = append(line, words.Term(w))
		}
		r.lines = append(r.lines, line)
	}
	return r
})

// answering has the places of the words related to a word of a question, in ascending
// order, with the weights of the related words.
type answering []scored

// relatedTo looks up the words related to the words of a question, in at most most
// messages.
func relatedTo(g *groupIndex, asked []string, most int) (all []answering) {
	most = max(0, min(most, mostRelated))
	table, size := related(), g.messageCount()
	for _, w := range asked {
		var found answering
		for _, line := range table.of[w] {
			for _, r := range table.lines[line] {
				places, messages := g.find(r, min(mostOfRelated, most))
				if len(places) == 0 || slices.Contains(asked, r) {
					continue
				}
				most -= len(places)
				tells := idf(messages, size)
				for _, p := range places {
					found = append(found, scored{p, tells})
				}
			}
		}
		if len(found) > 0 {
			slices.SortFunc(found, func(a, b scored) int { return cmp.Compare(a.place, b.place) })
			all = append(all, found)
		}
	}
	return all
}
