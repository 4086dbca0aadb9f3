package embedded

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

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
	mayCorrect   = 12  // possible corrections to read
	saidInReturn = 300 // bytes of a person's reply to an answer
)

// correct puts later corrections before the best hits. A correction need not share a word
// with the question, nor with the message that it corrects: people read the answer from the
// memory, and reply with the current state. So a person's next statement after a question
// that an old message answers may correct that message. So may a later
// message that shares rare words with it. The old message remains, so that two true statements are both shown.
func (e *Store) correct(ctx context.Context, g *groupIndex, hits []*hit, q *asked) ([]*hit, error) {
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
			asked, err := e.answeredBy(ctx, g, old, said, q)
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
		if l.row == nil || l.note.Flags&(isModels|isAsking|isOnlyAsked|isFact|isDistilled) != 0 || l.note.Length > shownMax {
			continue
		}
		if x := old.exchange; x != nil && x.choice != nil && x.choice.place == l.place { // shown with the answer
			continue
		}
		if c.question != nil && !e.replies(l, q) || c.question == nil && otherRow(l, old, q.terms) {
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

// replies reports whether a person's next message after an answered question may correct the
// answer: it is a statement, by its gate, or without a vector it has a word of change.
func (e *Store) replies(l *hit, q *asked) bool {
	if v := q.vectors.at(l.place); v != nil {
		return e.fit.States.Of(v) >= maybeStates
	}
	return words.Changes(l.content)
}

// maybeStates is the gate of a reply that may be a statement: replies are short, and in any
// language.
const maybeStates = -0.1

// otherRow reports whether a message has nearly the form of an old one without a word of the
// question that the old one has, like another row of a table.
func otherRow(newer, old *hit, terms []term) bool {
	return newer.note.form.like(&old.note.form) >= sameForm && !hasAll(terms, newer.place, old.place)
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

// answeredBy returns later questions that a message answers, the newest first. Without a mark or a word
// of a question, the gate of statements knows it.
func (e *Store) answeredBy(ctx context.Context, g *groupIndex, old *hit, said []string, q *asked) ([]*hit, error) {
	all := make([]term, 0, len(said))
	for _, w := range said {
		all = append(all, termOf(g, w, newestShared))
	}
	slices.SortStableFunc(all, func(a, b term) int { return cmp.Compare(b.idf, a.idf) })
	shared := make(map[int64]float64)
	for i := range all[:min(len(all), rarestOfOld)] {
		for _, p := range all[i].places {
			if p > old.place {
				shared[p] += all[i].idf
			}
		}
	}
	var newer []*hit
	for p := range shared {
		if n, ok := g.note(p); ok && n.Flags&(isModels|isFact) == 0 {
			newer = append(newer, &hit{place: p, note: n, score: shared[p]})
		}
	}
	order(newer)
	gates := 0
	newer = slices.DeleteFunc(newer, func(h *hit) bool {
		if h.note.Flags&isAsking != 0 && h.note.Flags&isOnlyAsked != 0 {
			return false
		}
		vec := q.vectors.at(h.place)
		gates++
		return vec == nil || !e.ownModel() || gates > newestShared || e.fit.States.Of(vec) >= surelyAsked
	})
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
		weights := questionsOf(&e.numbers, all, nil, &asked{}, g.messageCount())[0]
		own := uint32(0)
		for i := range all {
			if i < 32 && !all[i].kin && slices.Contains(said, all[i].word) {
				own |= 1 << i
			}
		}
		if weights.of(own) >= answersFrom {
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
		if n, there := g.note(p); there && n.Flags&isModels == 0 {
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

const (
	fewNew    = 2 // most words of a replacement that are not in the replaced statement
	mayChange = 8 // possible replacements to read
)

// current puts the newest statement that replaces a hit in its place, unless the question is about the
// past: Graphiti may not have ended its fact yet.
func (e *Store) current(ctx context.Context, g *groupIndex, hits []*hit, q *asked) ([]*hit, error) {
	if q.dates.past(time.Now()) {
		return hits, nil
	}
	out := hits[:0:0]
	for _, old := range hits {
		h, err := e.replacement(ctx, g, old, q)
		if err != nil {
			return nil, err
		}
		h = cmp.Or(h, old)
		if h.score, h.strength, h.meant = old.score, old.strength, old.meant; !hasPlace(out, h.place) {
			out = append(out, h)
		}
	}
	return out, nil
}

// replacement returns the newest statement that only changes a value of an old one, or nil. A
// replacement has a word of change, the names of the question that the old statement has, most of its
// other words, and few others.
func (e *Store) replacement(ctx context.Context, g *groupIndex, old *hit, q *asked) (*hit, error) {
	said := slices.DeleteFunc(words.Of(old.shown(), wordsOfOld), words.IsLight)
	names := slices.DeleteFunc(namesIn(q.text), func(w string) bool { return !slices.Contains(said, w) })
	if old.note.isNamed() || old.note.Flags&isAsking != 0 {
		return nil, nil
	}
	shared, since := make(map[int64]int), g.saidAt(old.place)
	var all []*hit
	for _, w := range said {
		at, _ := g.find(w, newestShared)
		for _, p := range at {
			if shared[p]++; shared[p] == len(said)/2+1 && g.saidAt(p) > since {
				all = append(all, hitAt(g, nil, p))
			}
		}
	}
	slices.SortFunc(all, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(g.saidAt(b.place), g.saidAt(a.place)), cmp.Compare(b.place, a.place)) // a fact before its message
	})
	all = all[:min(len(all), mayChange)]
	if err := e.load(ctx, g.groupNumber(), all); err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.row == nil || h.note.isNamed() || h.note.Flags&(isModels|isAsking) != 0 || h.note.Length > saidInReturn || g.isOver(h.place) || !words.Changes(h.content) {
			continue
		}
		now := words.Of(h.content, wordsOfOld)
		isOther := slices.ContainsFunc(names, func(w string) bool { return !slices.Contains(now, w) }) // of another person or thing
		others := slices.DeleteFunc(now, func(w string) bool {
			return words.IsLight(w) || slices.Contains(said, w) || words.Changes(w)
		})
		if !isOther && len(others) > 0 && len(others) <= fewNew {
			return h, nil
		}
	}
	return nil, nil
}

// namesIn returns the words of a question with a digit, and its capitalized words but the first.
func namesIn(question string) (names []string) {
	for n, w := range strings.Fields(question) {
		if strings.ContainsFunc(w, unicode.IsDigit) || n > 0 && strings.ContainsFunc(w, unicode.IsUpper) {
			names = append(names, words.Of(w, maxAsked)...)
		}
	}
	return names
}

// saidAt returns the place of a message, or of the last message of a fact.
func (g *groupIndex) saidAt(place int64) int64 {
	if c := g.claimOf(place); c != nil && len(c.sources) > 0 {
		return slices.Max(c.sources)
	}
	return place
}

// isOver reports whether a fact is over, or all facts of a message are.
func (g *groupIndex) isOver(place int64) bool {
	facts, now := g.factsFrom(place), time.Now()
	if c := g.claimOf(place); c != nil {
		return c.isOver(now)
	}
	return len(facts) > 0 && !slices.ContainsFunc(facts, func(p int64) bool { c := g.claimOf(p); return c == nil || !c.isOver(now) })
}
