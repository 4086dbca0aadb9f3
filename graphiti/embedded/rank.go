package embedded

import (
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded/index"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/strength"
)

// How messages are ranked, without a model. A message seldom repeats what it
// answers, so that what stands beside it counts as if it were said in it, less
// the farther away; and a conversation that has all the words of a question
// somewhere near is more likely to be the one that is meant. The numbers were
// found by trying, on conversations between people; they are flat, and none of
// them matters alone.
const (
	saturation  = 0.8 // how soon a word that is said again adds nothing (BM25's k1)
	lengthPart  = 0.5 // how much a long message is held against (BM25's b)
	nameWeight  = 0.4 // of a speaker's name: most of what they say does not have it
	lightPart   = 0.2 // of a verb that says little, such as "done"
	earlierPart = 0.3 // of a word that only what was asked before has
	sameTalk    = 12  // messages before and after that are the same talk
	talkWeight  = 0.8 // of a talk that has all the words
	byNamed     = 2.4 // what is said by the one who is asked about
	onDate      = 2.5 // what was said in the month, or on the day, that is asked for
	inSpan      = 2.0 // what was said in the week that is asked for, or the like
	tellsWhen   = 1.3 // what speaks of a time, to who asks when
	asksToo     = 0.9 // what ends with a question
	onlyAsks    = 0.2 // what is nothing but a question, and states nothing
	modelSays   = 0.7 // what a model said
	recallSays  = 1.2 // what somebody found worth promoting

	// fewMessages is added to a group's size: in a small one every word would
	// be common.
	fewMessages = 10

	// marginal is the part of the best one's worth below which a message is
	// not shown: it would cost more than it tells.
	marginal = 0.15
)

// term is a word of a question.
type term struct {
	word     string
	places   []int64 // of the newest messages that have it, ascending
	messages int     // that have it, in all
	idf      float64
	name     bool // a speaker's
	light    bool // a verb that says little
	earlier  bool // of what was asked before
}

// idf is how much a word tells that so many of a group's messages have.
func idf(messages, size int) float64 {
	return math.Log(1 + float64(max(size-messages, 0)+fewMessages)/(float64(messages)+0.5))
}

// chooseTerms leaves the rarest words that fit. Two forms of one word are one.
func chooseTerms(all []term) []term {
	sort.SliceStable(all, func(i, j int) bool { return len(all[i].places) < len(all[j].places) })
	var out []term
	visits := 0
	for _, t := range all {
		if t.messages == 0 {
			continue
		}
		if slices.ContainsFunc(out, func(o term) bool { return alike(o.word, t.word) && slices.Equal(o.places, t.places) }) {
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

func (t *term) weight() float64 {
	w := t.idf
	if t.name {
		w *= nameWeight
	}
	if t.light {
		w *= lightPart
	}
	if t.earlier {
		w *= earlierPart
	}
	return w
}

// hit is a message that was found.
type hit struct {
	place   int64
	note    index.Note
	repeats bool // it says little but what is asked
	score   float64
	ranked  *ranked

	strength float64 // of its answer: see measure

	*row // nil until it is read
}

// asked is what a question tells beside its words.
type asked struct {
	text   string
	words  []string
	sketch index.Sketch // of the words
	named  []string     // speakers
	names  []string     // those of the words that are part of a speaker's name
	dates  dates
}

// weigh says what hits are worth, by their notes.
func weigh(g *index.Group, hits []*hit, terms []term, q *asked) {
	length := 0
	for _, h := range hits {
		length += int(h.note.Length)
	}
	mean := float64(length)/float64(max(1, len(hits))) + 1
	for _, h := range hits {
		// The first ranking, with what a message's length does to it.
		flat, long := 0.0, 0.0
		norm := saturation * (1 - lengthPart + lengthPart*float64(h.note.Length)/mean)
		for n := range terms {
			if f := float64(h.ranked.has[n]); f > 0 {
				flat += terms[n].weight() * f / (f + saturation)
				long += terms[n].weight() * f / (f + norm)
			}
		}
		h.score = h.ranked.score
		if flat > 0 {
			h.score *= long / flat
		}
		is := h.note.Flags
		switch {
		case h.repeats, is&isOnlyAsked != 0:
			h.score *= onlyAsks
		case is&isAsking != 0:
			h.score *= asksToo
		}
		if len(q.named) == 1 && g.Spoke(q.named[0], &h.note) {
			h.score *= byNamed
		}
		if is&isModels != 0 {
			h.score *= modelSays
		}
		if is&isCurated != 0 {
			h.score *= recallSays
		}
		h.score *= q.dates.fit(h.note.Day)
	}
	q.dates.raise(hits)
}

// withNear adds the places that were found by what they mean.
func withNear(places []ranked, near map[int64]float64) []ranked {
	there := make(map[int64]bool, len(places))
	for i := range places {
		there[places[i].place] = true
	}
	for p := range near {
		if !there[p] {
			places = append(places, ranked{place: p})
		}
	}
	return places
}

// meaning is what the message nearest in meaning is worth, beside the one that
// is best by its words. With a small model (all-MiniLM-L6-v2) and LoCoMo's
// questions as much as words shows less of the evidence than words alone
// (0.733 against 0.778), 0.3 shows 0.783 and this 0.787.
const meaning = 0.15

// blend adds to what hits are worth by their words what they are worth by what
// they mean, each on a scale of its own.
func blend(hits []*hit, near map[int64]float64) {
	if len(near) == 0 {
		return
	}
	most, least, words := 0.0, 1.0, 0.0
	for _, s := range near {
		most, least = max(most, s), min(least, s)
	}
	for _, h := range hits {
		words = max(words, h.score)
	}
	for _, h := range hits {
		if words > 0 {
			h.score /= words
		}
		if s, ok := near[h.place]; ok && most > least {
			worth := meaning * (s - least) / (most - least)
			if h.note.Flags&isOnlyAsked != 0 {
				worth *= onlyAsks
			}
			h.score += worth
		} else if ok {
			h.score += meaning
		}
	}
}

// newPart is the part of a message's words that must not be the question's own.
const newPart = 0.2

// repeats reports whether a message says little but what is asked: the same
// question, asked before.
func repeats(content string, asked []string) bool {
	words, others := 0, 0
	index.EachWord(content, index.Sketched, func(w []byte) bool {
		words++
		if !slices.ContainsFunc(asked, func(a string) bool { return a == string(w) }) {
			others++
		}
		return float64(others) < newPart*index.Sketched // with so many it does not, whatever follows
	})
	return words > 2 && float64(others) < newPart*float64(words)
}

func isQuestion(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\'' })
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// statesNothing reports whether a text asks, and does nothing else: each of its
// sentences is a question, or has no word that says anything.
func statesNothing(s string) bool {
	if !isQuestion(s) {
		return false
	}
	for from, i := 0, 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '?':
			from = i + 1
		case c == '\n', (c == '.' || c == '!') && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\n'):
			if strength.Tells(s[from:i]) {
				return false
			}
			from = i + 1
		}
	}
	return true
}
