package embedded

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// meant is the strength of a message found by meaning. It is shown in its own place,
	// but is too weak for the person's own memory in a project.
	meant = 0.25

	// meantOfUser is the strength of a fact that matters in all of the person's projects, if
	// its likeness to the question is at least ofUserFloor.
	meantOfUser = 0.4
	ofUserFloor = 0.3

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

// A short text whose likeness to a routine request is at least routineFrom is one too: only
// a result of at least this strength answers it.
const (
	longestRoutine = 80 // bytes
	routineFrom    = 0.5
	sureOfRoutine  = 0.5

	// routineSaid is the likeness from which a short message is a routine request of another
	// time.
	routineSaid = 0.5
)

// routineLikeness returns the likeness of a text to the nearest routine request, by the model
// of this program; 0 without the model.
func (e *Store) routineLikeness(ctx context.Context, text string) float64 {
	if !e.ownModel() {
		return 0
	}
	vec, err := e.mean.question(ctx, text)
	if err != nil {
		return 0
	}
	return nearestOf(e.mean.encoder.routine, vec)
}

// ownModel reports whether the model of this program measures meaning.
func (e *Store) ownModel() bool { return e.mean != nil && e.mean.floor > 0 && !e.mean.paused.Load() }

// unlessRoutine returns the hits that are worth showing if the question, or one of them, is a
// routine request.
func (e *Store) unlessRoutine(ctx context.Context, g *groupIndex, q *asked, hits []*hit) ([]*hit, error) {
	if len(hits) == 0 || !e.ownModel() {
		return hits, nil
	}
	sure := slices.ContainsFunc(hits, func(h *hit) bool { return h.strength >= sureOfRoutine })
	if !sure && len(q.text) <= longestRoutine && e.routineLikeness(ctx, q.text) >= routineFrom {
		return nil, nil
	}
	var out []*hit
	for _, h := range hits {
		like := 0.0
		if h.note.Flags&(isFact|isModels) == 0 && h.note.Length <= longestRoutine {
			var vec []byte
			err := e.db.QueryRow(ctx, "SELECT vec FROM vectors WHERE id = ?", []any{g.groupNumber()<<placeBits | h.place}, &vec)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, fmt.Errorf("read a vector: %w", err)
			}
			like = nearestOf(e.mean.encoder.routine, int8sOf(vec))
		}
		if like < routineSaid {
			out = append(out, h)
		}
	}
	return out, nil
}

// routineRequests are requests of everyday work, which no memory answers. Models of
// embeddings differ in the likeness of unrelated texts, and so do memories. A question finds
// a statement only if it is nearer to it than each of these requests, and than most of the
// other statements are to them.
var routineRequests = []string{
	"run the tests", "why is this so slow?", "what did you just change?", "go on", "fix the typo in the header", "can you split this function?",
	"is that our bug or theirs?", "commit and push", "how do I run only one test?", "rename it to something better", "do we still need this file?",
	"write a haiku about autumn", "what is the capital of Peru?", "explain this error", "shorter please", "thanks, looks good",
	"mach weiter", "warum läuft das zweimal?", "kannst du das kürzer schreiben?", "pourquoi ce test échoue ?", "relance les tests", "¿por qué falla esto?",
	"roda os testes de novo", "次お願いします", "なぜ失敗したの？", "帮我看看这个错误", "테스트 다시 돌려줘", "почему тест падает?",
}

// byMeaning returns the hits, or statements that are like the question in meaning if the
// words of a question found nothing strong. Without an answer of the encoder in time, it
// returns the hits.
func (e *Store) byMeaning(ctx context.Context, g *groupIndex, q *asked, hits []*hit, most int) ([]*hit, error) {
	if e.mean == nil || e.mean.paused.Load() || q.mayAsk || slices.ContainsFunc(hits, func(h *hit) bool { return h.strength >= meant }) {
		return hits, nil
	}
	var found []*hit
	states := func(place int64) bool {
		note, ok := g.note(place)
		return ok && note.Flags&isNoStatement == 0 && !routine(g, &hit{place: place, note: note}, meant)
	}
	near := e.mean.near(ctx, g.groupNumber(), q.text, states)
	for _, n := range near {
		if note, ok := g.note(n.place); ok {
			if !q.asks && (!q.personal || !note.tellsOfPerson()) && (note.Flags&isFact == 0 || n.score < 0.3) {
				continue
			}
			found = append(found, &hit{place: n.place, note: note, ranked: &ranked{place: n.place}, strength: n.strength(&note), score: 1 / float64(1+len(found))})
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

// strength returns the strength of a statement that is as likely as this.
func (l *likely) strength(n *messageNote) float64 {
	if n.Flags&isOfUser != 0 && l.score >= ofUserFloor {
		return meantOfUser
	}
	return max(meant, l.score)
}

// tellsOfPerson reports whether a statement may be what a request needs to know of the
// person: a fact about them, or a message with a value.
func (n *messageNote) tellsOfPerson() bool {
	return n.Flags&isOfUser != 0 || n.Flags&isFact == 0 && n.kinds != 0
}

// near returns the places of the statements of a group that are nearest to a question in
// meaning, the nearest first; none if the encoder fails.
func (v *vectors) near(ctx context.Context, group int64, question string, states func(place int64) bool) []likely {
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
	slices.SortFunc(all, func(a, b likely) int { return cmp.Compare(b.score, a.score) })
	n := 0
	for n < min(len(all), nearest) && all[n].score >= secondShare*all[0].score {
		n++
	}
	return all[:n]
}

// question returns the vector of a question. It embeds one question at a time.
func (v *vectors) question(ctx context.Context, text string) ([]int8, error) {
	select {
	case v.asking <- struct{}{}:
		defer func() { <-v.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	vecs, err := v.embed(ctx, []string{text})
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

// learnRoutine embeds the routine requests once.
func (v *vectors) learnRoutine(ctx context.Context) error {
	v.mu.Lock()
	known := v.routine != nil
	v.mu.Unlock()
	if known {
		return nil
	}
	vecs, err := v.embed(ctx, slices.Clone(routineRequests))
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.routine = vecs
	clear(v.groups)
	v.held = 0
	return nil
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
