package embedded

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// exchange is a problem of a person with the model's answer to it. Days later people ask in
// words of the problem ("busy exception again"), and want the answer, which has other words.
// So both are judged together, by the words of both. There are two forms: a statement, such as
// an error message, is shown with the answer that names something to type; the answer to a
// question is shown with the question and the person's choice ("the former").
type exchange struct {
	answer          *hit
	problem, choice *hit // nil if the problem is the hit itself
	strength, score float64
	own             uint32
	names           bool // the answer names something to type, or shares two words with the question
}

const (
	// accepted is the factor of strength of an answer to a question, if the person then chose
	// from it. It replaces Numbers.Hearsay.
	accepted = 0.6

	// namedAgain is the factor for a statement with an answer that names something to type, in
	// place of Numbers.Request: a problem that returns is often only named.
	namedAgain = 0.5

	maxReported  = 2000 // bytes of a problem, such as an error message
	maxExchanges = 4    // exchanges of one search to read
	maxProblem   = 140  // characters of a problem shown with its answer
	maxAnswer    = 280  // characters of an answer shown with its problem
	maxChoice    = 80   // bytes of a choice
)

// exchanges rates problems and answers by the words of both. It adds answers without a word
// of the question to hits.
func (e *Store) exchanges(ctx context.Context, g *groupIndex, hits []*hit, questions []question, q *asked) ([]*hit, error) {
	var all []*exchange
	var toRead []*hit
	for _, h := range hits {
		if x := g.exchangeOf(&e.numbers, hits, h, questions, q); x != nil {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *exchange) int { return cmp.Compare(b.strength, a.strength) })
	all = all[:min(len(all), maxExchanges)]
	for _, x := range all {
		toRead = append(toRead, x.answer)
		if x.problem != nil {
			toRead = append(toRead, x.problem)
		}
		if x.choice != nil {
			toRead = append(toRead, x.choice)
		}
	}
	if err := e.load(ctx, g.groupNumber(), toRead); err != nil {
		return nil, err
	}
	for _, x := range all {
		h := x.answer
		if x.problem == nil {
			h = hitAt(g, hits, x.answer.place-1)
		} else if h.row == nil || x.problem.row == nil {
			continue
		}
		if c := x.choice; c != nil && (c.row == nil || !chooses(c.content, x.answer.content)) {
			if x.choice = nil; !x.names {
				continue
			}
		}
		if x.problem != nil && h.strength >= x.strength {
			continue
		}
		if !slices.Contains(hits, h) {
			hits = append(hits, h)
		}
		h.exchange, h.strength, h.score, h.ranked.own = x, max(h.strength, x.strength), max(h.score, x.score), x.own
	}
	return hits, nil
}

// exchangeOf returns the exchange that a hit begins, or nil.
func (g *groupIndex) exchangeOf(numbers *Numbers, hits []*hit, h *hit, questions []question, q *asked) *exchange {
	const others = isFact | isCurated
	if h.ranked.own == 0 || !h.rare || h.note.isNamed() || h.note.Length > maxReported || h.note.Flags&(isModels|others) != 0 || q.repeatedBy(g, h.place, &h.note) {
		return nil
	}
	answer := hitAt(g, hits, h.place+1)
	reply, replied := g.note(h.place + 2)
	if answer.note.Flags&(isModels|isAsking|others) != isModels || !replied || reply.Flags&(isModels|others) != 0 {
		return nil
	}
	long := h.note.Length > saidInReturn
	x := &exchange{answer: answer, own: h.ranked.own | answer.ranked.own, score: h.score}
	names := answer.note.Flags&isSpecific != 0 || bits.OnesCount32(h.ranked.own&answer.ranked.own) > 1
	f := 1.0
	switch {
	case h.note.Flags&isOnlyAsked == 0 && names && long: // found by its own words alone
		x.own, x.names = h.ranked.own, names
		return x
	case long:
		return nil
	case h.note.Flags&isOnlyAsked == 0 && names:
		if !q.asks {
			f = namedAgain
		}
	case !q.asks || h.note.Flags&isAsking == 0:
		return nil
	default:
		x.problem, x.score, f = h, x.score*accepted/numbers.OnlyAsks, accepted
		if reply.Flags&(isAsking|isOnlyAsked) == 0 && reply.Length <= maxChoice {
			x.choice = &hit{place: h.place + 2, note: reply}
		} else if !names {
			return nil
		}
	}
	for n := range questions {
		x.strength = max(x.strength, f*questions[n].of(x.own))
	}
	if 2*questions[0].weightOf(h.ranked.own) < questions[0].weightOf(x.own) {
		return nil
	}
	x.names = names
	return x
}

// chooses reports whether a reply takes up a word of an answer.
func chooses(reply, answer string) bool {
	offered := words.Of(answer, maxAsked)
	return slices.ContainsFunc(words.Of(reply, maxAsked), func(w string) bool {
		return !words.IsLight(w) && slices.ContainsFunc(offered, func(o string) bool { return o == w || beginAlike(o, w) })
	})
}

// formsFrom is the number of characters with which two forms of one word begin alike.
const formsFrom = 5

// beginAlike reports whether two words may be forms of one, in a language without a stemmer.
func beginAlike(a, b string) bool {
	r := []rune(a)
	return len(r) >= formsFrom && strings.HasPrefix(b, string(r[:formsFrom]))
}

// context returns the rest of an exchange, in parentheses, to show after its hit.
func (x *exchange) context() string {
	switch {
	case x == nil || x.answer.row == nil:
		return ""
	case x.problem == nil:
		return " (answer: " + graphiti.Shorten(window(plain(x.answer.content)), "…", maxAnswer) + ")"
	}
	text := " (asked: " + graphiti.Shorten(window(plain(x.problem.content)), "…", maxProblem)
	if x.choice != nil {
		text += "; reply: " + window(plain(x.choice.content))
	}
	return text + ")"
}

// specific reports whether a text names something to type: a command in backticks, or a word
// with a sign that prose does not have within a word.
func specific(text string) bool {
	if strings.Contains(text, "`") {
		return true
	}
	for w := range strings.FieldsSeq(text) {
		w = strings.TrimFunc(w, func(r rune) bool { return unicode.IsPunct(r) && r != '/' && r != '-' })
		if len(w) > 2 && w[0] == '-' || strings.ContainsAny(w, `_=\[{<$@`) {
			return true
		}
		if i := strings.IndexAny(w, "./:"); i > 0 && i+1 < len(w) && strings.ContainsFunc(w, unicode.IsLetter) && !unicode.IsNumber(rune(w[0])) {
			return true
		}
	}
	return false
}
