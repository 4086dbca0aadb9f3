package embedded

import (
	"cmp"
	"context"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	mayBeOld     = 3   // of the best hits, for which a correction is looked for
	wordsOfOld   = 24  // words of one of them that are looked up
	rarestOfOld  = 16  // of those words, by which later questions are looked for
	newestShared = 64  // messages of each
	askedAgain   = 4   // questions, of those that one of them answers, that are read
	sharedByFew  = 8   // messages that may have a word by which a correction is known
	spokenOf     = 2   // later messages with the words of one of them
	mayCorrect   = 12  // messages that are read
	saidInReturn = 300 // bytes of what a person says to an answer
)

// correct puts later corrections before the best hits. A correction need not share a word
// with the question, nor with the message that it corrects: people read what the memory
// holds, and answer how it is now. So a person's next statement after a question that an
// old message answers corrects that message; and so may a later message that shares a rare
// word with it. The old message stays, so that of two true statements both are shown.
func (e *Store) correct(ctx context.Context, g *groupIndex, hits []*hit) ([]*hit, error) {
	of := make(map[int64]*hit) // what a message may correct, by its place
	var newer []*hit
	add := func(old *hit, place int64) {
		if of[place] == nil && place > old.place && len(newer) < mayCorrect {
			of[place] = old
			newer = append(newer, hitAt(g, hits, place))
		}
	}
	for _, old := range e.strongest(hits, mayBeOld) {
		switch {
		case old.row == nil || old.note.isNamed() || old.note.Flags&isModels != 0:
		case old.note.Flags&isAsking != 0:
			if p, ok := inReturn(g, old.place); ok {
				add(old, p)
			}
		default:
			said := slices.DeleteFunc(words.Of(old.shown(), wordsOfOld), words.IsLight)
			asked, err := e.answeredBy(ctx, g, old, said)
			if err != nil {
				return nil, err
			}
			for _, q := range asked {
				if p, ok := inReturn(g, q); ok {
					add(old, p)
				}
			}
			for _, p := range alsoSpeakOf(g, old, said) {
				add(old, p)
			}
		}
	}
	if err := e.load(ctx, g.groupNumber(), newer); err != nil {
		return nil, err
	}
	for _, l := range newer {
		if l.row == nil || l.note.Flags&(isModels|isAsking|isOnlyAsked) != 0 || l.note.Length > shownMax || saidBefore(g, &l.note) {
			continue
		}
		if !slices.Contains(hits, l) {
			hits = append(hits, l)
		}
		old := of[l.place]
		if old.note.Flags&isAsking != 0 && old.strength >= sameStrength*hits[0].strength {
			old = hits[0] // it answers what is asked now
		}
		l.score, l.strength = max(l.score, old.score), max(l.strength, old.strength)
	}
	return hits, nil
}

// strongest returns the first most hits that are strong enough to be shown.
func (e *Store) strongest(hits []*hit, most int) (some []*hit) {
	best := 0.0
	for _, h := range hits {
		best = max(best, h.strength)
	}
	for _, h := range hits {
		if h.strength >= e.numbers.Weakest*best && len(some) < most {
			some = append(some, h)
		}
	}
	return some
}

// saidBefore reports whether a person has said nearly the same before: a correction is said
// once.
func saidBefore(g *groupIndex, n *messageNote) bool {
	return g.alike(n.formOf(), sameForm, routineSeen, isModels, 0) > 1
}

// alsoSpeakOf returns the places of the messages of a person that were said later and
// have most of the rare words of an old one.
func alsoSpeakOf(g *groupIndex, old *hit, said []string) (places []int64) {
	shared, size := make(map[int64]float64), g.messageCount()
	for _, w := range said {
		at, messages := g.find(w, sharedByFew)
		if messages > sharedByFew {
			continue
		}
		for _, p := range at {
			if n, ok := g.note(p); ok && p > old.place && n.Flags&(isModels|isAsking) == 0 {
				shared[p] += idf(messages, size)
			}
		}
	}
	for p, w := range shared {
		if w >= idf(2, size) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b int64) int { return cmp.Or(cmp.Compare(shared[b], shared[a]), cmp.Compare(b, a)) })
	return places[:min(len(places), spokenOf)]
}

// shown returns the part of a message that is shown.
func (h *hit) shown() string {
	if h.passage != "" {
		return h.passage
	}
	return plain(h.content)
}

// answeredBy returns the places of later questions that a message answers, the newest
// first.
func (e *Store) answeredBy(ctx context.Context, g *groupIndex, old *hit, said []string) ([]int64, error) {
	all := make([]term, 0, len(said))
	for _, w := range said {
		all = append(all, termOf(g, w, newestShared))
	}
	slices.SortStableFunc(all, func(a, b term) int { return cmp.Compare(b.idf, a.idf) })
	shared := make(map[int64]float64)
	for i := range all[:min(len(all), rarestOfOld)] {
		for _, p := range g.onlyAsking(all[i].places) {
			if p > old.place {
				shared[p] += all[i].idf
			}
		}
	}
	var newer []*hit
	for p := range shared {
		if n, ok := g.note(p); ok && n.Flags&isModels == 0 {
			newer = append(newer, &hit{place: p, note: n, score: shared[p]})
		}
	}
	order(newer)
	newer = newer[:min(len(newer), askedAgain)]
	if err := e.load(ctx, g.groupNumber(), newer); err != nil {
		return nil, err
	}
	var out []int64
	for _, a := range newer {
		if a.row == nil {
			continue
		}
		theirs := words.Of(plain(a.content), maxAsked)
		all := lookUp(g, theirs, len(theirs))
		q := questionsOf(&e.numbers, all, nil, &asked{}, g.messageCount())[0]
		own := uint32(0)
		for i := range all {
			if i < 32 && !all[i].kin && slices.Contains(said, all[i].word) {
				own |= 1 << i
			}
		}
		if q.of(own) >= answersFrom {
			out = append(out, a.place)
		}
	}
	slices.SortFunc(out, func(a, b int64) int { return cmp.Compare(b, a) })
	return out, nil
}

// answersFrom is the strength from which a message answers a question.
const answersFrom = 0.15

// inReturn returns the place of a person's next message after a question, if that is a
// short statement.
func inReturn(g *groupIndex, question int64) (place int64, ok bool) {
	for p := question + 1; p <= question+2; p++ {
		n, there := g.note(p)
		if there && n.Flags&isModels == 0 {
			return p, n.Flags&isAsking == 0 && n.Length <= saidInReturn
		}
	}
	return 0, false
}

// hitAt returns the hit at a place, or a new one.
func hitAt(g *groupIndex, hits []*hit, place int64) *hit {
	if n := slices.IndexFunc(hits, func(h *hit) bool { return h.place == place }); n >= 0 {
		return hits[n]
	}
	h := &hit{place: place, ranked: &ranked{place: place}}
	h.note, _ = g.note(place)
	return h
}
