package embedded

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	// judged is the number of best hits that get a strength.
	judged = 64

	// otherMessages is added to a group's size, since every word is common in a small
	// group.
	otherMessages = 200

	// tellsNothing is the share of messages with a word at which the word has no weight.
	tellsNothing = 1.0 / 7

	// mostWords is the number of the heaviest words of a question that a full answer must
	// have: an answer does not repeat a long question.
	mostWords = 8

	// maxParts bounds the parts of a question that are judged separately.
	maxParts = 6
)

// judge sets the strength of the best hits as answers by themselves, from 0 to 1, and
// returns the hits with a part of the answer. hits is sorted, the best first.
//
// The strength of a message is the share of the question's weight in its words, or less if
// that is no proof. A rarer word has more weight. The neighbors of a message help to find
// it, but do not count here, except in a conversation between people: see besideStrength.
func (e *Store) judge(ctx context.Context, g *groupIndex, hits []*hit, terms, all []term, q *asked) ([]*hit, error) {
	hits = hits[:min(len(hits), judged)]
	var long []*hit
	for _, h := range hits {
		if h.note.Length > shownMax && h.row == nil {
			long = append(long, h)
		}
	}
	if err := e.load(ctx, g.groupNumber(), long); err != nil {
		return nil, err
	}
	questions := questionsOf(&e.numbers, terms, all, q, g.messageCount())
	names := uint32(0) // names of speakers count for every message
	for i := range terms {
		if terms[i].name {
			names |= 1 << i
		}
	}
	at := make(map[int64]*hit, len(hits))
	for _, h := range hits {
		at[h.place] = h
		own := h.ranked.own
		if h.row != nil && h.note.Length > shownMax {
			whole := questions[0].weightOf(own)
			h.passage, own = bestPassage(plain(h.content), terms, &questions[0])
			if whole > 0 {
				h.score *= questions[0].weightOf(own) / whole
			}
			h.ranked.own = own
		}
		for n := range questions {
			h.strength = max(h.strength, questions[n].answeredBy(h, own|names))
		}
		h.covers = h.strength
		h.strength *= e.speaks(h, q)
	}
	var out []*hit
	for _, h := range hits {
		if h.ranked.own == 0 {
			if before, ok := g.note(h.place - 1); h.note.wordCount() <= 1 && (!ok || before.Flags&isAsking == 0) {
				continue // "Nice!"
			}
			h.strength = max(h.strength, besideStrength(at, h))
			if h.strength == 0 {
				continue
			}
		}
		if h.note.Flags&(isModels|isAsking) == isModels|isAsking { // a model's question to the person
			continue
		}
		if q.repeatedBy(g, h.place, &h.note) || h.repeats && h.row != nil && words.Asks(h.content) == q.asks {
			continue
		}
		out = append(out, h)
	}
	return out, nil
}

// speaks returns the factor of a message's strength for its speaker, and for a question or
// a request.
func (e *Store) speaks(h *hit, q *asked) float64 {
	f := 1.0
	switch {
	case q.asks:
	case h.note.Flags&isOfUser != 0 && q.personal: // "Put my name into the licence"
	case h.note.Flags&isNeeded != 0:
		f *= neededFact
	case h.note.Flags&isFact != 0:
		f *= factRequest
	default:
		f *= e.numbers.Request
	}
	if h.note.Flags&isModels != 0 {
		f *= e.numbers.Hearsay
	}
	return f
}

// besideStrength returns the strength that a message without a word of the question gets
// from its neighbors. It is for conversations between people, who answer each other's
// questions. The neighbor of a message to a model is only the model's answer, or another
// request.
func besideStrength(at map[int64]*hit, h *hit) (most float64) {
	if !h.note.isNamed() {
		return 0
	}
	for d := int64(-reach); d <= reach; d++ {
		if o := at[h.place+d]; o != nil && o.ranked.own != 0 {
			most = max(most, o.strength*beside[d+reach])
		}
	}
	return most
}

// sameForm is the least likeness of the forms of nearly equal messages.
const sameForm = 0.5

// repeatedBy reports whether a message only repeats the current question or request, or is
// a model's answer to the same one. In an unknown language a question without a mark and a
// statement look alike, so other words make the message another one.
func (q *asked) repeatedBy(g *groupIndex, place int64, n *messageNote) bool {
	if n.Flags&isModels != 0 {
		before, ok := g.note(place - 1)
		return ok && before.Flags&isModels == 0 && q.repeatedBy(g, place-1, &before)
	}
	form := n.form
	like, asking := form.like(&q.form), n.Flags&isAsking != 0
	others, _ := n.otherWords(q.sketch)
	return asking == q.asks && like >= sameForm && (q.marked || others == 0) || asking == q.marked && like >= copyFrom
}

// question has the weights of the words of a question, or of a part of it.
type question struct {
	weights []float64 // of the terms
	given   float64   // weight of speakers' names that no message has, given to all
	whole   float64   // of all words, or of the heaviest mostWords
	proof   float64
}

// questionsOf returns the weights of a question, and of its parts. A word that the group
// does not have has slightly more weight than a word in one message, and so does the name
// of a speaker. A missing number has no weight, because people write dates and ask for them
// in different ways, and neither has a missing word of request, such as "give".
func questionsOf(numbers *Numbers, terms, all []term, q *asked, size int) []question {
	weigh := func(within map[string]bool) question {
		out := question{weights: make([]float64, len(terms)), proof: numbers.Proof * math.Log(tellsNothing*(float64(size)+otherMessages))}
		var every []float64
		add := func(t *term) (w float64) {
			if within != nil && !within[t.word] || t.earlier {
				return 0
			}
			has := float64(t.messages)
			if t.name {
				has = 0
			}
			if r, _ := utf8.DecodeRuneInString(t.word); has == 0 && (unicode.IsNumber(r) || words.Requests(t.word)) {
				return 0
			}
			w = max(0, math.Log(tellsNothing*(float64(size)+otherMessages)/max(has, numbers.Unsaid)))
			if t.light {
				w *= numbers.Light
			}
			if !t.kin {
				every = append(every, w)
			}
			return w
		}
		for i := range terms {
			out.weights[i] = add(&terms[i])
			if terms[i].kin {
				out.weights[i] *= numbers.Kin
			}
		}
		for i := range all {
			if len(all[i].places) == 0 {
				if all[i].name = slices.Contains(q.names, all[i].word); all[i].name {
					out.given += add(&all[i])
				} else {
					add(&all[i])
				}
			}
		}
		slices.Sort(every)
		for _, w := range every[max(0, len(every)-mostWords):] {
			out.whole += w
		}
		return out
	}
	out := []question{weigh(nil)}
	for _, part := range partsOf(q.text) {
		has := make(map[string]bool)
		for _, w := range words.Of(part, maxAsked) {
			has[w] = true
		}
		out = append(out, weigh(has))
	}
	return out
}

// weightOf returns the weight of the terms whose bits are set.
func (q *question) weightOf(own uint32) (sum float64) {
	for i, w := range q.weights {
		if own>>i&1 != 0 {
			sum += w
		}
	}
	return sum
}

// of returns the strength of a message with these terms.
func (q *question) of(own uint32) float64 {
	if q.whole == 0 {
		return 0
	}
	sum := q.weightOf(own) + q.given
	return min(1, sum/q.whole) * min(1, sum/q.proof)
}

// partsOf returns the parts of a text of several sentences that can be answered by
// themselves: people often ask, and then add a request.
func partsOf(text string) (parts []string) {
	for s := range words.Sentences(text) {
		if parts = append(parts, s); len(parts) == maxParts {
			break
		}
	}
	if len(parts) == 1 && len(parts[0]) == len(strings.TrimSpace(text)) {
		return nil
	}
	return parts
}

// sentenceEnd matches the end of a sentence. The dot in a number, a file name or an address
// does not match, because no white space follows.
var sentenceEnd = regexp.MustCompile(`[.?!]+(?:\s|$)|[。？！]|\n`)

const (
	passageMax  = 300 // approximate bytes of a passage
	maxPassages = 400 // sentences of one message to compare
)

// bestPassage returns the part of a long text with the heaviest words, and a bit for each
// of its terms. It begins on the line of its first term: the text above may be pasted.
func bestPassage(text string, terms []term, q *question) (best string, own uint32) {
	number := make(map[string]int, len(terms))
	for i := range terms {
		if !terms[i].kin {
			number[terms[i].word] = i
		}
	}
	type sentence struct {
		from, to int
		own      uint32
	}
	var all []sentence
	from := 0
	for from < len(text) && len(all) < maxPassages {
		to := len(text)
		if end := sentenceEnd.FindStringIndex(text[from:]); end != nil {
			to = from + end[1]
		}
		to = min(to, from+passageMax)
		for to < len(text) && !utf8.RuneStart(text[to]) {
			to++
		}
		s := sentence{from: from, to: to}
		words.Each(text[from:to], func(w []byte, _ words.Significance) bool {
			if i, ok := number[string(w)]; ok {
				s.own |= 1 << i
			}
			return true
		})
		all, from = append(all, s), to
	}
	most := -1.0
	for i := range all {
		if all[i].own == 0 && i < len(all)-1 { // the last one counts if no sentence has a term
			continue
		}
		first := i
		for first > 0 && text[all[first].from-1] != '\n' && all[i].to-all[first-1].from <= passageMax {
			first--
		}
		has, to := uint32(0), all[i].to
		for _, s := range all[first:] {
			if s.to-all[first].from > passageMax && s.from > all[first].from {
				break
			}
			has, to = has|s.own, s.to
		}
		if w := q.weightOf(has); w > most {
			most, best, own = w, text[all[first].from:to], has
		}
	}
	return strings.TrimSpace(best), own
}
