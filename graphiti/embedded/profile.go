package embedded

import (
	"context"
	"slices"
)

// mostOfProfile is how many of a person's newest statements about themselves are found for
// a question about them.
const mostOfProfile = 8

// profile adds a person's newest statements about themselves to the hits for a question
// about its author: "In which town do I live?" shares no word with "I have moved to Graz",
// nor does a question in another language.
func (e *Store) profile(ctx context.Context, g *groupIndex, hits []*hit, q *asked, most int) ([]*hit, error) {
	if !q.self {
		return hits, nil
	}
	var some []*hit
	for _, place := range g.newestWith(mostOfProfile, isSelf) {
		if len(hits)+len(some) < most && !slices.ContainsFunc(hits, func(h *hit) bool { return h.place == place }) {
			some = append(some, &hit{place: place, profile: true, ranked: &ranked{place: place}})
		}
	}
	if err := e.load(ctx, g.groupNumber(), some); err != nil {
		return nil, err
	}
	for _, h := range some {
		if h.row != nil {
			hits = append(hits, h)
		}
	}
	return hits, nil
}
