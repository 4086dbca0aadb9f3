package embedded

import (
	"math"
	"slices"
	"sort"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Ranking of messages without a model: a message seldom repeats its question, so the words
// of its neighbors count for it too, with less weight at a greater distance. A conversation
// with all words of the question near each other is more likely to have the answer.
const (
	sameConversation = 12 // number of messages before and after in the same conversation

	// fewMessages is added to a group's size, since every word is common in a small group.
	fewMessages = 10
)

// term is a word of a question.
type term struct {
	word     string
	places   []int64 // of the newest messages with it, ascending
	messages int     // number of messages with it, in all
	idf      float64
	name     bool // a speaker's name
	light    bool // a word of grammar
	kin      bool // its places are the places of similar words
	earlier  bool // from an earlier question
}

// idf returns the inverse document frequency of a word in this many of a group's messages.
func idf(messages, size int) float64 {
	return math.Log(1 + float64(max(size-messages, 0)+fewMessages)/(float64(messages)+0.5))
}

// chooseTerms returns the rarest maxTerms words. Two forms of one word count once.
func chooseTerms(all []term) []term {
	sort.SliceStable(all, func(i, j int) bool {
		if all[i].light != all[j].light {
			return all[j].light
		}
		return len(all[i].places) < len(all[j].places)
	})
	var out []term
	visits := 0
	for _, t := range all {
		if len(t.places) == 0 {
			continue
		}
		if slices.ContainsFunc(out, func(o term) bool { return o.kin == t.kin && alike(o.word, t.word) && slices.Equal(o.places, t.places) }) {
			continue
		}
		if visits += len(t.places); len(out) == maxTerms || len(out) > 0 && visits > mostVisits {
			break
		}
		out = append(out, t)
	}
	return out
}

// alike reports whether two words may be forms of one.
func alike(a, b string) bool { return len(a) > 2 && len(b) > 2 && a[:3] == b[:3] }

func (t *term) weight(n *Numbers) float64 {
	w := t.idf
	if t.name {
		w *= n.Name
	}
	if t.light {
		w *= n.Light
	}
	if t.kin {
		w *= n.Kin
	}
	if t.earlier {
		w *= n.Earlier
	}
	return w
}

// hit is a message that a search found.
type hit struct {
	place   int64
	note    messageNote
	repeats bool // it adds little to the question
	score   float64
	ranked  *ranked

	strength float64 // of its answer: see judge
	covers   float64 // the same, if the message asks for something
	passage  string  // the best part of a long message; "" for the whole message
	over     bool    // it is a fact that is no longer valid
	meant    bool    // no word in common with the question, or the message asks for nothing
	ofSelf   bool    // a statement about the person that answers a request
	vec      []int8  // nil without one
	features Features
	exchange *exchange // that the message stands for

	*row // nil until it is read
}

// asked describes a question.
type asked struct {
	text     string
	words    []string
	sketch   sketch   // of the words
	form     form     // of the question
	asks     bool     // it asks something, by its gate or its form; otherwise it is a request
	marked   bool     // it has the form of a question
	personal bool     // it has a word of the first person
	named    []string // speakers
	names    []string // the words that are part of a speaker's name
	dates    dates

	own     int           // number of words of the current question: the first ones
	vec     []int8        // nil without the model
	answer  []int8        // vec as Answers maps it; nil without the model
	vectors *groupVectors // of the group, or nil
	terms   []term        // its words
	keys    []term        // keys of facts in it
	level   float64       // likeness from which on likeness counts
	numbers *Numbers
	gate    float64              // whether it asks for something that may be remembered
	states  func(h *hit) float64 // gate of a message
	score   *Weights
}

// weigh sets the scores of hits by their notes.
func weigh(numbers *Numbers, g *groupIndex, hits []*hit, terms []term, q *asked) {
	length := 0
	for _, h := range hits {
		length += min(int(h.note.Length), shownMax)
	}
	mean := float64(length)/float64(max(1, len(hits))) + 1
	for _, h := range hits {
		// The first ranking, adjusted to the message's length.
		flat, long := 0.0, 0.0
		norm := numbers.Saturation * (1 - numbers.Length + numbers.Length*float64(min(h.note.Length, shownMax))/mean)
		for n := range terms {
			if f := float64(h.ranked.has[n]); f > 0 {
				flat += terms[n].weight(numbers) * f / (f + numbers.Saturation)
				long += terms[n].weight(numbers) * f / (f + norm)
			}
		}
		h.score = h.ranked.score
		if flat > 0 {
			h.score *= long / flat
		}
		is := h.note.Flags
		switch {
		case h.repeats, is&isOnlyAsked != 0:
			h.score *= numbers.OnlyAsks
		case is&isAsking != 0:
			h.score *= numbers.AsksToo
		}
		if len(q.named) == 1 && g.spoke(q.named[0], &h.note) {
			h.score *= numbers.Named
		}
		if is&isModels != 0 {
			h.score *= numbers.Model
		}
		if is&isCurated != 0 {
			h.score *= numbers.Curated
		}
		h.score *= q.dates.fit(numbers, h.note.Day)
	}
}

// newPart is the share of new words below which a message repeats the question.
const newPart = 0.2

// repeats reports whether a message adds little to the question, because it is the same
// question from before.
func repeats(content string, asked []string) bool {
	said, others := 0, 0
	for _, w := range words.Of(content, sketched) {
		said++
		if !slices.Contains(asked, w) {
			others++
		}
	}
	return said > 2 && float64(others) < newPart*float64(said)
}
