package embedded

import (
	"cmp"
	"context"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	mayBeOld     = 3   // number of best hits to find corrections for
	wordsOfOld   = 24  // words of such a hit to look up
	rarestOfOld  = 16  // rarest of these words, to find later questions with
	newestShared = 64  // messages of each word
	askedAgain   = 4   // later questions to read for each hit
	sharedByFew  = 8   // most messages with a word that may identify a correction
	spokenOf     = 2   // later messages with the words of a hit
	sameSubjects = 2   // words that a change shares with the old statement
	mayCorrect   = 12  // possible corrections to read
	saidInReturn = 300 // bytes of a person's reply to an answer
	meantWithin  = 200 // messages after a value that may refer to it without its name
)

// correct puts later corrections before the best hits. A correction need not share a word
// with the question, nor with the message that it corrects: people read the answer from the
// memory, and reply with the current state. So a person's next statement after a question
// that an old message answers may correct that message (see corrects). So may a later
// message that shares rare words with it, or a message that only reports a change of its
// value (see takenUp). The old message remains, so that two true statements are both shown.
func (e *Store) correct(ctx context.Context, g *groupIndex, hits []*hit) ([]*hit, error) {
	type correction struct{ newer, old, question *hit }
	var all []correction
	add := func(old, question *hit, place int64) {
		if place > old.place && len(all) < mayCorrect && !slices.ContainsFunc(all, func(c correction) bool { return c.newer.place == place }) {
			all = append(all, correction{hitAt(g, hits, place), old, question})
		}
	}
	for _, old := range e.strongest(hits, mayBeOld) {
		switch {
		case old.row == nil || old.note.isNamed() || old.note.Flags&(isModels|isFact) != 0:
		case old.note.Flags&isAsking != 0:
			if p, ok := inReturn(g, old.place); ok {
				add(old, old, p)
			}
		default:
			said := slices.DeleteFunc(words.Of(old.shown(), wordsOfOld), words.IsLight)
			asked, err := e.answeredBy(ctx, g, old, said)
			if err != nil {
				return nil, err
			}
			for _, q := range asked {
				if p, ok := inReturn(g, q.place); ok {
					add(old, q, p)
				}
			}
			for _, p := range alsoSpeakOf(g, old, said) {
				add(old, nil, p)
			}
			if p, ok := takenUp(g, old.place); ok {
				add(old, nil, p)
			}
		}
	}
	last, err := e.newestOf(ctx, g, hits)
	if err != nil {
		return nil, err
	}
	for _, l := range last {
		for _, old := range e.strongest(hits, mayBeOld) {
			if changesValue(l, old) {
				add(old, nil, l.place)
			}
		}
	}
	newer := make([]*hit, len(all))
	for i := range all {
		newer[i] = all[i].newer
	}
	if err := e.load(ctx, g.groupNumber(), newer); err != nil {
		return nil, err
	}
	for _, c := range all {
		l, old := c.newer, c.old
		if l.row == nil || l.note.Flags&(isModels|isAsking|isOnlyAsked|isFact|isDistilled) != 0 || l.note.Length > shownMax || saidAgain(g, l, hits[0].strength) {
			continue
		}
		if c.question != nil && !corrects(g, l.content, c.question.content, old.shown()) {
			continue
		}
		if !slices.Contains(hits, l) {
			hits = append(hits, l)
		}
		if old.note.Flags&isAsking != 0 && old.strength >= sameStrength*hits[0].strength {
			old = hits[0] // it answers the current question
		}
		l.score, l.strength = max(l.score, old.score), max(l.strength, old.strength)
	}
	return hits, nil
}

// corrects reports whether a reply to an answered question may correct the answer: it
// reports a change, or shares a kind of value or a rare word with the question or the
// answer. The next statement in a conversation need not be about its last answer.
func corrects(g *groupIndex, statement, question, answer string) bool {
	has, _ := kindsOf(statement)
	asked, _ := kindsOf(question)
	known, _ := kindsOf(answer)
	if words.Changes(statement) || has&(asked|known) != 0 {
		return true
	}
	about := append(words.Of(question, wordsOfOld), words.Of(answer, wordsOfOld)...)
	return slices.ContainsFunc(words.Of(statement, wordsOfOld), func(w string) bool {
		_, messages := g.find(w, 1)
		return messages <= sharedByFew && !words.IsLight(w) && slices.Contains(about, w)
	})
}

// takenUp returns the place of the newest message that reports only a changed value, and so
// refers to the last earlier value of its kind, if that is the value of the message at old:
// "no, we moved to Postgres 16 yesterday", in a conversation of its own.
func takenUp(g *groupIndex, old int64) (place int64, ok bool) {
	of, _ := g.note(old)
	g.mu.RLock()
	defer g.mu.RUnlock()
	at, _ := g.noteAt(old + 1)
	for i := at; i < len(g.notes) && int64(g.notes[i].place) <= old+meantWithin; i++ {
		switch n := &g.notes[i]; {
		case n.kinds&of.kinds&telling == 0:
		case n.Flags&isElliptic == 0:
			return place, ok // later messages refer to this value
		default:
			place, ok = int64(n.place), true
		}
	}
	return place, ok
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

// newestOf reads and returns the hits that state an update and are the newest of several nearly
// equal statements. Their words are no longer rare, so they are weak, and alsoSpeakOf does
// not find them.
func (e *Store) newestOf(ctx context.Context, g *groupIndex, hits []*hit) ([]*hit, error) {
	var list []*hit
	for _, h := range hits {
		if n, newest := saidAlike(g, &h.note); n > 1 && newest == h.place && len(list) < mayCorrect {
			list = append(list, h)
		}
	}
	if err := e.load(ctx, g.groupNumber(), list); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(h *hit) bool { return !h.updates(hits[0].strength) }), nil
}

// changesValue reports whether the newest of several changes may be about an old message: it
// has a value of the same kind, and shares several content words.
func changesValue(newest, old *hit) bool {
	if old.row == nil || old.note.isNamed() || old.note.Flags&(isModels|isAsking) != 0 || old.note.kinds&newest.note.kinds == 0 {
		return false
	}
	shared, of := 0, words.Of(newest.content, wordsOfOld)
	for _, w := range words.Of(old.shown(), wordsOfOld) {
		if !words.IsLight(w) && slices.Contains(of, w) {
			shared++
		}
	}
	return shared >= sameSubjects
}

// saidAgain reports whether a person made nearly the same statement more than once, except for
// the newest of several updates.
func saidAgain(g *groupIndex, h *hit, strongest float64) bool {
	n, newest := saidAlike(g, &h.note)
	return n > 1 && (newest != h.place || !h.updates(strongest))
}

// saidAlike returns how often a person made nearly the same statement, and the place of the
// newest.
func saidAlike(g *groupIndex, n *messageNote) (times int, newest int64) {
	return g.alike(n.formOf(), sameForm, routineSeen, isModels, 0)
}

// alsoSpeakOf returns the places of a person's later messages that share rare words with an
// old one, the greatest shared weight first. That weight is at least the weight of a word
// in two messages.
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

// shown returns the visible part of a message.
func (h *hit) shown() string {
	if h.passage != "" {
		return h.passage
	}
	return plain(h.content)
}

// answeredBy returns later questions that a message answers, the newest first.
func (e *Store) answeredBy(ctx context.Context, g *groupIndex, old *hit, said []string) ([]*hit, error) {
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
	var out []*hit
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
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *hit) int { return cmp.Compare(b.place, a.place) })
	return out, nil
}

// answersFrom is the least strength of an answer to a question.
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
