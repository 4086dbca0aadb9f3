package embedded

import (
	"cmp"
	"context"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	mostFitted = 3 // lines for one question

	// The shares of the best strength for further lines. A newer one may correct the best, and a fact is short.
	olderShare, newerShare = 0.6, 0.25

	// surelyAsked is the highest gate of a question or a request, which answers nothing. The gate of a
	// short statement, such as "My cat is called Miso.", is often just below zero.
	surelyAsked = -0.2 / gateUnit
)

// understood compares a question with the vectors of a group, and sets the results of the gates. The
// likenesses of another model count from their median on. It returns nil if the model is too slow.
func (e *Store) understood(ctx context.Context, g *groupIndex, q *asked) *groupVectors {
	v, vec := e.mean.compared(ctx, g.groupNumber(), q.text)
	if q.vec = vec; vec == nil {
		return nil
	}
	if !e.mean.own {
		q.answer, q.gate, q.level = vec, surelyAsks, v.level(vec)
		q.states = func(h *hit) float64 { return 1 - 2*bit(h.note.Flags&isNoStatement != 0) }
		return v
	}
	q.answer, q.gate, q.states = e.fit.Answers.Of(vec), e.fit.Wants(vec), func(h *hit) float64 { return e.fit.States.Of(h.vec) }
	q.asks = q.asks || q.gate >= maybeAsks
	return v
}

// fitted returns the candidates that are likely to answer a question, by the fitted score, the
// best first. Messages between people are ranked by their words.
func (e *Store) fitted(ctx context.Context, g *groupIndex, v *groupVectors, q *asked, hits []*hit, most int) ([]*hit, error) {
	if slices.ContainsFunc(hits, func(h *hit) bool { return h.note.isNamed() }) {
		return hits, nil
	}
	if q.gate < asksNothing { // the usual request: likenesses would cost milliseconds
		return slices.DeleteFunc(hits, func(h *hit) bool { return h.strength < certain }), nil
	}
	all, err := e.rated(ctx, q, g, v, hits)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *hit) int { return cmp.Or(cmp.Compare(b.strength, a.strength), cmp.Compare(b.place, a.place)) })
	n := 0
	for n < min(len(all), most, mostFitted) {
		share := map[bool]float64{true: newerShare, false: olderShare}[all[n].place > all[0].place || all[n].note.Flags&isFact != 0]
		// If one suffices, others must, too; otherwise an explanation shows all.
		if best := all[0].strength; all[n].strength < share*best || best >= enough && all[n].strength < enough {
			break
		}
		n++
	}
	all = all[:n]
	if err := e.load(ctx, g.groupNumber(), all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(h *hit) bool { return h.row == nil }), nil
}

// rated returns the candidates with their strengths, without the person's questions and requests. To
// settle which facts are valid compares the strengths, and may give an ended fact's to another one.
func (e *Store) rated(ctx context.Context, q *asked, g *groupIndex, v *groupVectors, hits []*hit) ([]*hit, error) {
	pieces := g.pieces(q.words[:q.own])
	all, err := e.joined(ctx, g, q, v, g.candidates(q, v, hits, pieces))
	if err != nil {
		return nil, err
	}
	q.features(g, v, all, pieces)
	all = slices.DeleteFunc(all, func(h *hit) bool {
		return h.note.Flags&(isFact|isModels) == 0 && h.exchange == nil && h.features[fStates] < surelyAsked && h.strength < certain
	})
	for _, h := range all {
		if h.strength = q.score.Strength(&h.features); q.gate >= asksNothing && h.covers >= certain {
			h.strength = max(h.strength, enough)
		}
	}
	return g.settle(once(all, q), q), nil
}

const (
	// copyFrom is the likeness of the words of copies. In it, all numbers are equal.
	copyFrom = 0.85

	// repeatedFrom is the same for texts without numbers, such as "This is Codex. The queue is called Miso.".
	repeatedFrom = 0.65
)

// once returns hits without the older copies of a statement, and without other rows of the same
// table. A copy has all that the older one has of the question, another row less.
func once(hits []*hit, q *asked) (out []*hit) {
	const kind = isModels | isFact
	for _, h := range hits {
		better := func(o *hit) bool {
			if o.note.Flags&(isAsking|isOnlyAsked) != 0 || h.note.Flags&kind != o.note.Flags&kind || o.vec != nil && o.features[fSure] < 0.5 || !h.note.form.sketch.mayBeLike(o.note.form.sketch, sameForm) {
				return false
			}
			all := hasAll(q.terms, o.place, h.place)
			return o.place > h.place && all && h.note.form.copies(&o.note.form) || all && otherRow(h, o, q.terms)
		}
		if h.note.Flags&isFact != 0 || h.note.isNamed() || q.dates.month || q.dates.former || len(q.dates.spans) > 0 || !slices.ContainsFunc(hits, better) {
			out = append(out, h)
		}
	}
	return out
}

// Candidate is a possible answer, for fitting the weights.
type Candidate struct {
	graphiti.Fact
	Features
	Vec       []int8 // nil without one
	Statement bool   // Features has a gate of it
}

// Candidates returns the possible answers to a query with their features, and the query's vector.
func (e *Store) Candidates(ctx context.Context, group, query string) (all []Candidate, vec []int8, err error) {
	g, err := e.index.Get(ctx, group)
	if err != nil || g.groupNumber() == 0 {
		return nil, nil, err
	}
	q := e.askedOf(query)
	v := e.understood(ctx, g, q)
	q.vectors, q.keys = v, g.keysIn(q.text)
	hits, err := e.byWords(ctx, g, q, mostSearched)
	if err != nil || v == nil {
		return nil, nil, err
	}
	if hits, err = e.rated(ctx, q, g, v, hits); err != nil {
		return nil, nil, err
	}
	if err := e.load(ctx, g.groupNumber(), hits); err != nil {
		return nil, nil, err
	}
	for _, h := range hits {
		if h.row != nil {
			all = append(all, Candidate{h.fact(group), h.features, h.vec, h.exchange == nil && h.vec != nil && h.note.Flags&(isFact|isModels) == 0})
		}
	}
	return all, q.vec, nil
}

// mostSearched is the number of results that a chat asks for.
const mostSearched = 24

// Compares reports whether everything has its vector.
func (e *Store) Compares() bool {
	e.mean.mu.Lock()
	defer e.mean.mu.Unlock()
	return len(e.mean.todo) == 0
}

// hasAll reports whether the message at a place has all the terms of another one.
func hasAll(terms []term, place, of int64) bool {
	return !slices.ContainsFunc(terms, func(t term) bool {
		_, there := slices.BinarySearch(t.places, of)
		_, here := slices.BinarySearch(t.places, place)
		return there && !here
	})
}
