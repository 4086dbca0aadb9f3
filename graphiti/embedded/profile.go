package embedded

import (
	"context"
	"slices"
)

// mostOfProfile are the newest statements of a person about themselves that are found
// for a question about them.
const mostOfProfile = 8

// profile adds to what was found for a question about who asks it what they said last of
// themselves: "In which town do I live?" has no word of "I have moved to Graz", nor a
// question in another language.
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
