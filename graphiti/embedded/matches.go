package embedded

import (
	"cmp"
	"context"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Matches returns the messages and facts of a group with the words of a query, whatever their
// strength, the best first, and then the other results of Search.
func (e *Store) Matches(ctx context.Context, group, query string, max int) ([]graphiti.Fact, error) {
	facts, err := e.Search(ctx, []string{group}, query, max)
	if err != nil {
		return nil, err
	}
	g, err := e.index.Get(ctx, group)
	if err != nil || g.groupNumber() == 0 {
		return facts, err
	}
	q := &asked{text: query, words: words.Of(query, maxAsked)}
	all := lookUp(g, q.words, len(q.words))
	terms := chooseTerms(all)
	if len(terms) == 0 {
		return facts, nil
	}
	hits, err := e.known(ctx, g, rank(&e.numbers, terms, maxHits), q)
	if err != nil {
		return nil, err
	}
	whole := questionsOf(&e.numbers, terms, all, q, g.messageCount())[0]
	for _, h := range hits {
		if h.strength = whole.answeredBy(h, h.ranked.own); h.note.Flags&isOnlyAsked != 0 {
			h.strength /= 2 // it answers nothing
		}
	}
	hits = slices.DeleteFunc(hits, func(h *hit) bool { return h.strength == 0 })
	slices.SortFunc(hits, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.strength, a.strength), cmp.Compare(b.place, a.place))
	})
	hits = hits[:min(max, len(hits))]
	if err := e.load(ctx, g.groupNumber(), hits); err != nil {
		return nil, err
	}
	var out []graphiti.Fact
	for _, h := range hits {
		if h.row == nil { // just deleted
			continue
		}
		f := h.fact(group)
		if i := slices.IndexFunc(facts, func(o graphiti.Fact) bool { return o.UUID == f.UUID }); i >= 0 {
			f = facts[i]
			facts = slices.Delete(facts, i, i+1)
		}
		out = append(out, f)
	}
	out = append(out, facts...) // found by their meaning
	return out[:min(max, len(out))], nil
}
