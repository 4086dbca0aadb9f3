package embedded

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// exchange is a problem or a question of a person with the model's answer to it. Days later people
// ask in words of the problem ("busy exception again"), and want the answer, which has other words.
// So it is one candidate, as like a question as the most similar of its messages, and is shown with
// the answer that names something to type, or with the answer and the person's choice from it.
type exchange struct {
	problem, answer *hit
	choice          *hit // nil unless the person chose from the answer
}

const (
	maxReported = 2000 // bytes of a problem, such as an error message
	maxAnswer   = 280  // characters of an answer shown with its problem
	maxChoice   = 80   // bytes of a choice

	// surelyStates is the gate of a surely stated problem, which offers no choice.
	surelyStates = 2.0 / gateUnit
)

// messages returns the messages of an exchange.
func (x *exchange) messages() []*hit {
	if x.choice == nil {
		return []*hit{x.problem, x.answer}
	}
	return []*hit{x.problem, x.answer, x.choice}
}

// joined returns candidates with each exchange as one of them, in place of its messages.
func (e *Store) joined(ctx context.Context, g *groupIndex, q *asked, v *groupVectors, all []*hit) ([]*hit, error) {
	var found []*exchange
	var toRead []*hit
	begun := make(map[int64]bool)
	for _, h := range all {
		for first := h.place - 2; first <= h.place; first++ {
			x := g.exchangeFrom(first, q, v, all)
			if x == nil || begun[first] || x.choice == nil && first < h.place { // its words alone find an answer
				continue
			}
			begun[first] = true
			found, toRead = append(found, x), append(toRead, x.messages()...)
		}
	}
	if err := e.load(ctx, g.groupNumber(), toRead); err != nil {
		return nil, err
	}
	in := make(map[int64]bool) // messages of exchanges
	for _, x := range found {
		if x.problem.row == nil || x.answer.row == nil { // just deleted
			continue
		}
		if c := x.choice; c != nil && (c.row == nil || !chooses(c.content, x.answer.content)) {
			if x.choice = nil; x.answer.note.Flags&isSpecific == 0 {
				continue
			}
		}
		h := *x.problem
		h.exchange = x
		for _, m := range x.messages() {
			in[m.place] = true
			h.strength, h.covers = max(h.strength, m.strength), max(h.covers, m.covers)
		}
		all = append(all, &h)
	}
	return slices.DeleteFunc(all, func(h *hit) bool { return h.exchange == nil && in[h.place] }), nil
}

// exchangeFrom returns the exchange that may begin at a place, or nil. The person replied to the
// answer, which may have helped. A problem in the form of the question with other words is about
// another thing: "why is the parser called twice".
func (g *groupIndex) exchangeFrom(place int64, q *asked, v *groupVectors, all []*hit) *exchange {
	const others = isFact | isCurated
	if n, ok := g.note(place); !ok || n.isNamed() || n.Length > maxReported || n.Flags&(isModels|others) != 0 || q.repeatedBy(g, place, &n) {
		return nil
	}
	x := &exchange{problem: hitAt(g, all, place), answer: hitAt(g, all, place+1)}
	if others, _ := x.problem.note.otherWords(q.sketch); others > 0 && x.problem.note.form.like(&q.form) >= sameForm {
		return nil
	}
	reply, replied := g.note(place + 2)
	if x.answer.note.Flags&(isModels|isAsking|others) != isModels || !replied || reply.Flags&(isModels|others) != 0 {
		return nil
	}
	x.problem.vec = v.at(place)
	if x.problem.vec != nil && q.states(x.problem) < surelyStates && reply.Flags&(isAsking|isOnlyAsked) == 0 && reply.Length <= maxChoice {
		x.choice = hitAt(g, all, place+2)
	}
	if x.choice == nil && x.answer.note.Flags&isSpecific == 0 {
		return nil
	}
	return x
}

// chooses reports whether a reply takes up a word of an answer.
func chooses(reply, answer string) bool {
	offered := words.Of(answer, maxAsked)
	return slices.ContainsFunc(words.Of(reply, maxAsked), func(w string) bool {
		return !words.IsLight(w) && slices.ContainsFunc(offered, func(o string) bool { return o == w || sameStart(o, w) >= formsFrom })
	})
}

// formsFrom is the number of letters with which two forms of one word begin alike.
const formsFrom = 5

// context returns the rest of an exchange, in parentheses, to show after its hit.
func (x *exchange) context() string {
	if x == nil {
		return ""
	}
	text := " (answer: " + graphiti.Shorten(window(plain(x.answer.content)), "…", maxAnswer)
	if x.choice != nil {
		text += "; reply: " + window(plain(x.choice.content))
	}
	return text + ")"
}

// specific reports whether a text names something to type: a command in backticks, or a word
// with a sign that prose does not have within a word or before it.
func specific(text string) bool {
	if strings.Contains(text, "`") {
		return true
	}
	for w := range strings.FieldsSeq(text) {
		w = strings.TrimRightFunc(strings.TrimLeft(w, `"'([“„«`), func(r rune) bool { return unicode.IsPunct(r) && r != '/' && r != '-' })
		if len(w) > 2 && w[0] == '-' || strings.ContainsAny(w, `_=\[{<$@`) {
			return true
		}
		if i := strings.IndexAny(w, "./:"); i >= 0 && i+1 < len(w) && strings.ContainsFunc(w, unicode.IsLetter) && !unicode.IsNumber(rune(w[0])) {
			return true
		}
	}
	return false
}
