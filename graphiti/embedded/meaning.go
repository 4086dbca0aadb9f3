package embedded

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

const (
	// meant is the strength of a message found by meaning. It is shown in its own place,
	// but is too weak for the person's own memory in a project.
	meant = 0.25

	// requestFloor is the least likeness of a fact to a request. A fact with it that matters in
	// all of the person's projects has the strength meantOfUser, which suffices in each.
	requestFloor = 0.3
	meantOfUser  = 0.4

	// mostMeant is the number of messages that one question finds by meaning, and nearest
	// the number of candidates.
	mostMeant = 2
	nearest   = 16

	// floorShare is the share of a group's statements whose likeness to every routine
	// request is at most the floor, measured in sampled of its newest messages.
	floorShare = 0.75
	sampled    = 500

	// secondShare is the share of the best likeness that a second message must have.
	secondShare = 0.85

	// routineShare is the share of a question's likeness to a routine request that a message
	// must have, in the model of this program.
	routineShare = 0.8

	// queryPart is the part of a search's time that the embedding of its question may
	// take.
	queryPart = 0.5
)

// byMeaning returns the hits, or statements that are like the question in meaning if its
// words found nothing strong. Without an answer of the encoder in time, it returns the hits.
// A foreign model gets questions only: each call costs.
func (e *Store) byMeaning(ctx context.Context, g *groupIndex, q *asked, hits []*hit, most int) ([]*hit, error) {
	if e.mean == nil || e.mean.paused.Load() || q.mayAsk || !q.asks && !e.ownModel() || slices.ContainsFunc(hits, func(h *hit) bool { return h.strength >= meant }) {
		return hits, nil
	}
	if !q.asks && !g.mayAnswerRequest(q.personal) {
		return hits, nil
	}
	var found []*hit
	states := func(place int64) bool {
		note, ok := g.note(place)
		return ok && note.Flags&isNoStatement == 0 && !routine(g, &hit{place: place, note: note}, meant)
	}
	byWords := make(map[int64]float64)
	for _, h := range hits {
		if h.note.Flags&isFact != 0 {
			byWords[h.place] = h.strength
		}
	}
	for _, l := range e.mean.near(ctx, g.groupNumber(), q.text, states, byWords) {
		if note, ok := g.note(l.place); ok && (q.asks || byWords[l.place] > 0 || l.answersRequest(&note, q.personal)) {
			found = append(found, &hit{
				place: l.place, note: note, ranked: &ranked{place: l.place}, strength: e.mean.strength(&note, l.score), score: 1 / float64(1+len(found)),
			})
		}
	}
	if len(found) == 0 {
		return hits, nil
	}
	if err := e.load(ctx, g.groupNumber(), found); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(h *hit) bool { return h.row == nil || repeats(h.content, q.words) })
	found = g.settle(found[:min(len(found), mostMeant)], q)
	if err := e.load(ctx, g.groupNumber(), found); err != nil { // the facts of messages
		return nil, err
	}
	for _, h := range hits {
		if len(found) < most && h.strength >= sameStrength*meant && !slices.ContainsFunc(found, func(f *hit) bool { return f.place == h.place }) {
			found = append(found, h)
		}
	}
	return found[:min(len(found), most)], nil
}

// likely is a statement that may answer a question, with its likeness to it.
type likely struct {
	place int64
	score float64
}

// mayAnswerRequest reports whether answersRequest may hold for any statement of the group.
func (g *groupIndex) mayAnswerRequest(personal bool) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.claims) > 0 || personal && slices.ContainsFunc(g.notes, func(n messageNote) bool { return n.kinds != 0 })
}

// answersRequest reports whether a request may need a statement: a fact that is near enough,
// or, in a request about the person, a fact about them or a message with a value.
func (l *likely) answersRequest(n *messageNote, personal bool) bool {
	if n.Flags&isFact != 0 {
		return l.score >= requestFloor || personal && n.Flags&isOfUser != 0
	}
	return personal && n.kinds != 0
}

// strength returns the strength of a statement with this likeness to a question. The
// likenesses of different models cannot be compared: a foreign model's count as the least.
func (v *vectors) strength(n *messageNote, like float64) float64 {
	switch {
	case v.floor == 0:
		return meant
	case n.Flags&isOfUser != 0 && like >= requestFloor:
		return meantOfUser
	}
	return max(meant, like)
}

// near returns the places of the statements of a group that are nearest to a question in
// meaning, the nearest first; none if the encoder fails. If no statement is near enough, it
// returns the nearest one, provided that the question's words found it too: its strength by words
// makes up for the lack of likeness.
func (v *vectors) near(ctx context.Context, group int64, question string, states func(place int64) bool, byWords map[int64]float64) []likely {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(queryPart*float64(time.Until(deadline))))
		defer cancel()
	}
	g, err := v.of(ctx, group)
	if err != nil || len(g.places) == 0 {
		return nil
	}
	q, err := v.question(ctx, question)
	if err != nil {
		v.log.Debug("embed a question failed", "error", err)
		return nil
	}
	scores := make([]float64, len(g.vecs))
	for i, vec := range g.vecs {
		scores[i] = likeness(q, vec)
	}
	v.mu.Lock()
	routine := v.routine
	v.mu.Unlock()
	if len(routine) == 0 {
		return nil
	}
	least := outstanding(scores)
	if v.floor > 0 {
		least = max(least, v.floor, routineShare*nearestOf(routine, q))
	} else {
		g.measure.Do(func() { g.floor = g.floorFor(routine, states) })
		least = max(least, g.floor)
	}
	var all []likely
	for i, s := range scores {
		if s >= least && (v.floor > 0 || s > nearestOf(routine, g.vecs[i])) && states(g.places[i]) {
			all = append(all, likely{g.places[i], s})
		}
	}
	if len(all) == 0 && v.floor > 0 && len(byWords) > 0 {
		return agreed(g.places, scores, states, byWords, v.floor, routineShare*nearestOf(routine, q))
	}
	slices.SortFunc(all, func(a, b likely) int { return cmp.Compare(b.score, a.score) })
	n := 0
	for n < min(len(all), nearest) && all[n].score >= secondShare*all[0].score {
		n++
	}
	return all[:n]
}

// agreed returns the statement with the greatest likeness, if it is at least least and reaches the
// floor together with the statement's strength by words, and else none.
func agreed(places []int64, scores []float64, states func(place int64) bool, byWords map[int64]float64, floor, least float64) []likely {
	best := likely{score: -1}
	for i, s := range scores {
		if s > best.score && states(places[i]) {
			best = likely{places[i], s}
		}
	}
	if w := byWords[best.place]; w == 0 || best.score < least || best.score+w < floor {
		return nil
	}
	return []likely{best}
}

// question returns the vector of a question. It embeds one question at a time.
func (v *vectors) question(ctx context.Context, text string) ([]int8, error) {
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

// outstanding returns the least likeness that is more than chance among those of a group. In
// a language that the model does not know, all texts are alike, and in a large group some are
// alike by chance. The lower half shows the spread: those texts are about other subjects.
func outstanding(scores []float64) float64 {
	scores = slices.Sorted(slices.Values(scores))
	n := (len(scores) + 1) / 2
	median, squares := scores[n-1], 0.0
	for _, s := range scores[:n] {
		squares += (median - s) * (median - s)
	}
	return median + math.Sqrt(2*math.Log(float64(len(scores)))*squares/float64(n))
}

// floorFor returns the likeness that a statement of the group must exceed.
func (g *groupVectors) floorFor(routine [][]int8, states func(place int64) bool) float64 {
	var all []float64
	for i, vec := range g.vecs[:min(len(g.vecs), sampled)] {
		if states(g.places[i]) {
			all = append(all, nearestOf(routine, vec))
		}
	}
	if len(all) == 0 {
		return 1
	}
	slices.Sort(all)
	return all[int(floorShare*float64(len(all)-1))]
}

// nearestOf returns the greatest likeness of vectors to one vector.
func nearestOf(all [][]int8, vec []int8) (most float64) {
	for _, v := range all {
		most = max(most, likeness(v, vec))
	}
	return most
}
