package embedded

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded/index"
)

// spare are the messages that are read at once beside those that can be shown:
// some will not be worth it.
const spare = 4

// best returns the best hits, at most as many, best first, and reads them. Of
// one turn the answer of a model is not shown beside what it answers, and of
// what states nothing, a question or "noted", there is one at most, where
// nothing else was found.
func (e *Store) best(ctx context.Context, g *index.Group, hits []*hit, max int) ([]*hit, error) {
	order(hits)
	if err := e.load(ctx, g.Number(), worth(hits, max+spare)); err != nil {
		return nil, err
	}
	hits, err := e.correct(ctx, g, hits)
	if err != nil {
		return nil, err
	}
	order(hits)
	turns := make(map[string]bool)
	var out []*hit
	for at, h := range hits {
		if len(out) >= max || h.score < marginal*hits[0].score {
			break
		}
		if len(out) > 0 && h.note.Flags&isOnlyAsked != 0 {
			continue
		}
		if h.row == nil {
			if err := e.load(ctx, g.Number(), worth(hits, at+max+spare)[at:]); err != nil {
				return nil, err
			}
		}
		if h.row == nil { // deleted a moment ago
			continue
		}
		if turn, ok := strings.CutPrefix(h.name, "graphiti-proxy.turn."); ok {
			turn, _, _ = strings.Cut(turn, ".")
			if turns[turn] {
				continue
			}
			turns[turn] = true
		}
		out = append(out, h)
	}
	return out, nil
}

// order puts hits into the order of what they are worth.
func order(hits []*hit) {
	slices.SortFunc(hits, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.place, a.place))
	})
}

// worth are those of the first hits, at most as many, that may be shown.
func worth(hits []*hit, most int) []*hit {
	n := 0
	for n < min(len(hits), most) && hits[n].score >= marginal*hits[0].score {
		n++
	}
	return hits[:n]
}
