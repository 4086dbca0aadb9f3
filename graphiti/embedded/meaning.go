package embedded

import (
	"context"
	"errors"
	"slices"
	"time"
)

// queryPart is the part of a search's time that the embedding of its question may take.
const queryPart = 0.8

// mostWaiting bounds the questions that wait for the encoder. Further ones are searched for by their words.
const mostWaiting = 4

var errBusy = errors.New("other questions are being embedded")

// question returns the vector of a question. It embeds one question at a time.
func (v *vectors) question(ctx context.Context, text string) ([]int8, error) {
	defer v.waiting.Add(-1)
	if v.waiting.Add(1) > mostWaiting {
		return nil, errBusy
	}
	select {
	case v.asking <- struct{}{}:
		defer func() { <-v.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	vecs, err := v.recent.embed(ctx, []string{text}, &v.encoder)
	if err != nil {
		return nil, err
	}
	return vecs[0], nil
}

// compared returns the vectors of a group, and that of a question. Without an answer of the
// encoder in time, the search does without them.
func (v *vectors) compared(ctx context.Context, group int64, question string) (*groupVectors, []int8) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(queryPart*float64(time.Until(deadline))))
		defer cancel()
	}
	g, err := v.of(ctx, group)
	if err != nil {
		return nil, nil
	}
	q, err := v.question(ctx, question)
	if err != nil {
		v.log.Debug("embed a question failed", "error", err)
		return g, nil
	}
	return g, q
}

// nearest returns the most places whose vectors are most like one.
func (g *groupVectors) nearest(vec []int8, most int) []scored {
	if g == nil || vec == nil {
		return nil
	}
	all := make([]scored, 0, len(g.vecs))
	for i, o := range g.vecs {
		all = append(all, scored{g.places[i], likeness(vec, o)})
	}
	var scores []float64
	return bestOf(all, most, &scores)
}

// at returns the vector of the message or fact at a place, or nil.
func (g *groupVectors) at(place int64) []int8 {
	if g == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(g.places, place, func(a, b int64) int { return int(b - a) }) // descending
	if !ok {
		return nil
	}
	return g.vecs[i]
}

// level returns how much more than unrelated texts usually are the texts of a group are like a
// question: half of them are about other subjects. Of few texts, it is unknown.
func (g *groupVectors) level(vec []int8) float64 {
	const few = 8
	all := make([]float64, 0, len(g.vecs))
	for _, o := range g.vecs {
		all = append(all, likeness(vec, o))
	}
	if len(all) < few {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2] - usualLike
}
