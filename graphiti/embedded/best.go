package embedded

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// spare are the messages that are read at once beside those that can be shown:
// some will not be worth it.
const spare = 4

// best returns the best hits, at most as many, best first, and reads them. Of
// one turn the answer of a model is not shown beside what it answers, and of
// what states nothing, a question or "noted", there is one at most, where
// nothing else was found.
func (e *Store) best(ctx context.Context, g *groupIndex, hits []*hit, most int) ([]*hit, error) {
	order(hits)
	if err := e.load(ctx, g.groupNumber(), e.worth(hits, most+spare)); err != nil {
		return nil, err
	}
	hits, err := e.correct(ctx, g, hits)
	if err != nil {
		return nil, err
	}
	order(hits)
	strongest := 0.0
	for _, h := range hits {
		strongest = max(strongest, h.strength)
	}
	turns := make(map[string]bool)
	var out []*hit
	for at, h := range hits {
		if len(out) >= most || h.score < e.numbers.Marginal*hits[0].score {
			break
		}
		if h.strength < e.numbers.Weakest*strongest {
			continue
		}
		if len(out) > 0 && h.note.Flags&isOnlyAsked != 0 || routine(g, &h.note) {
			continue
		}
		if h.row == nil {
			if err := e.load(ctx, g.groupNumber(), e.worth(hits, at+most+spare)[at:]); err != nil {
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
	newestFirst(out)
	return out, nil
}

// newestFirst puts of what speaks as strongly of the same the newest first.
func newestFirst(hits []*hit) {
	for i := range hits {
		for k := i; k > 0 && !hits[k].note.isNamed() && hits[k].place > hits[k-1].place && hits[k].strength >= sameStrength*hits[k-1].strength; k-- {
			hits[k], hits[k-1] = hits[k-1], hits[k]
		}
	}
}

// sameStrength is the part of a strength from which another one is no weaker.
const sameStrength = 0.75

const (
	// oftenSaid is how often the memory holds nearly the same as a message before that is
	// routine: requests, acknowledgements, answers that vary in a number. What a
	// person says again and again to be followed stands on the card.
	oftenSaid   = 4
	routineSeen = 1000 // of the newest messages that are compared
)

// routine reports whether the memory holds nearly the same as a message many times.
func routine(g *groupIndex, n *messageNote) bool {
	return g.alike(n.formOf(), sameForm, routineSeen, isModels|isAsking, n.Flags&(isModels|isAsking)) >= oftenSaid
}

// order puts hits into the order of what they are worth.
func order(hits []*hit) {
	slices.SortFunc(hits, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.place, a.place))
	})
}

// worth are those of the first hits, at most as many, that may be shown.
func (e *Store) worth(hits []*hit, most int) []*hit {
	n := 0
	for n < min(len(hits), most) && hits[n].score >= e.numbers.Marginal*hits[0].score {
		n++
	}
	return hits[:n]
}
