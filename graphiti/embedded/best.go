package embedded

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// toModel replaces Weakest in conversations with a model, which seldom have a second
// answer.
const toModel = 0.4

// spare is the number of messages read in addition to the requested ones, since some are
// not worth showing.
const spare = 4

// best reads and returns the best most hits, best first. Of each turn it returns only the
// better message. It returns a message that states nothing, such as a question or "noted",
// only in first place, and no message that asks the same question.
func (e *Store) best(ctx context.Context, g *groupIndex, q *asked, hits []*hit, most int) ([]*hit, error) {
	order(hits)
	if err := e.load(ctx, g.groupNumber(), e.worth(hits, most+spare)); err != nil {
		return nil, err
	}
	hits, err := e.correct(ctx, g, hits, q)
	if err != nil {
		return nil, err
	}
	order(hits)
	asked := questionsIn(q.text)
	same := make(map[*hit]bool) // answers of repeats
	repeats := func(h *hit) bool {
		is, known := same[h]
		if !known && h.row != nil && len(asked) > 0 {
			is = sameQuestion(asked, questionsIn(h.content))
			same[h] = is
		}
		return is
	}
	strongest, top := 0.0, 0.0
	for _, h := range hits {
		if !repeats(h) {
			strongest = max(strongest, h.strength)
		}
	}
	for _, h := range hits {
		// An earlier question shares the most words with a question, and gives its words to
		// the model's answer.
		if !repeats(h) && h.strength >= e.numbers.Weakest*strongest {
			top = max(top, h.score)
		}
	}
	turns := make(map[string]bool)
	var out []*hit
	for at, h := range hits {
		if len(out) >= most || h.score < e.numbers.Marginal*top {
			break
		}
		if h.strength < e.numbers.Weakest*strongest || !h.note.isNamed() && h.strength < toModel*strongest {
			continue
		}
		if h.note.Flags&isOnlyAsked != 0 && (len(out) > 0 || !h.note.isNamed() && h.note.Flags&isModels == 0) {
			continue
		}
		if h.row == nil {
			if err := e.load(ctx, g.groupNumber(), hits[at:min(len(hits), at+most+spare)]); err != nil {
				return nil, err
			}
		}
		if h.row == nil { // just deleted
			continue
		}
		if repeats(h) { // the same question does not answer it
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

// questionsIn returns the words of each question in a text, without its function words.
func questionsIn(text string) (all [][]string) {
	if !words.HasQuestion(text) {
		return nil
	}
	for s := range words.Sentences(text[:min(len(text), maxDated)]) {
		if words.IsQuestion(s) {
			all = append(all, words.Of(s, maxAsked))
		}
	}
	return all
}

// sameWords is the least share of the words of two equal questions that both have.
const sameWords = 0.75

// sameQuestion reports whether one of these questions is, but for a few words, one of the
// others.
func sameQuestion(some, others [][]string) bool {
	for _, a := range some {
		for _, b := range others {
			both := 0
			for _, w := range b {
				if slices.Contains(a, w) {
					both++
				}
			}
			if both > 0 && float64(both) >= sameWords*float64(max(len(a), len(b))) {
				return true
			}
		}
	}
	return false
}

// newestFirst moves newer hits before older hits of similar strength, except messages with
// a named speaker.
func newestFirst(hits []*hit) {
	for i := range hits {
		for k := i; k > 0 && !hits[k].note.isNamed() && hits[k].place > hits[k-1].place && hits[k].strength >= sameStrength*hits[k-1].strength; k-- {
			hits[k], hits[k-1] = hits[k-1], hits[k]
		}
	}
}

// sameStrength is the least share of a strength that counts as the same strength.
const sameStrength = 0.75

// order sorts hits by their worth.
func order(hits []*hit) {
	slices.SortFunc(hits, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.place, a.place))
	})
}

// worth returns the first most hits that may be shown.
func (e *Store) worth(hits []*hit, most int) []*hit {
	n := 0
	for n < min(len(hits), most) && hits[n].score >= e.numbers.Marginal*hits[0].score {
		n++
	}
	return hits[:n]
}
