// Package strength measures how strongly a message answers a question, on a
// scale that does not depend on what else was found: whether anything is worth
// showing at all.
//
// It owns the measure and the table of words that tell little. It must not know
// where messages are kept.
package strength

import (
	_ "embed"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The numbers are flat: half or twice of each changes little (docs/recall.md).
const (
	// otherMessages are added to a group's size: in a small one every word
	// would be common.
	otherMessages = 200

	// unsaid is in how many of those messages a word is that the group does not
	// have.
	unsaid = 0.15

	// tellsNothing is the part of the messages from which a word does not
	// tell them apart.
	tellsNothing = 1.0 / 7

	// commonPart is how much of a word counts that every conversation has, in
	// a question that has others.
	commonPart = 0.15

	// enough is the weight that is proof: that of one rare word.
	enough = 3

	// mostWords are the words of a question, the heaviest ones, that must be
	// found: nobody repeats a long text.
	mostWords = 8
)

// Word is a word of a question.
type Word struct {
	Text     string
	Messages int  // of the group, that have it
	Speaker  bool // somebody who speaks there has this name
}

// Question is what the words of a question weigh. The zero value has none.
type Question struct {
	weights []float64
	whole   float64
}

// NewQuestion weighs the words of a question to a group of so many messages: a
// word weighs the more the fewer messages have it. The name of a speaker weighs
// as a word that the group does not have: elsewhere nobody says it. A number
// that the group does not have weighs nothing, because dates are not written
// as they are asked for; nor does an empty text.
func NewQuestion(words []Word, size int) Question {
	q := Question{weights: make([]float64, len(words))}
	plain := !slices.ContainsFunc(words, func(w Word) bool { return w.Text != "" && !Common(w.Text) })
	for i, w := range words {
		has := float64(w.Messages)
		switch r, _ := utf8.DecodeRuneInString(w.Text); {
		case w.Text == "":
			continue
		case w.Speaker:
			has = 0
		case w.Messages == 0 && unicode.IsNumber(r):
			continue
		}
		part := (has + unsaid) / (float64(size) + otherMessages)
		q.weights[i] = max(0, math.Log(tellsNothing/part))
		if !plain && Common(w.Text) {
			q.weights[i] *= commonPart
		}
	}
	heaviest := slices.Sorted(slices.Values(q.weights))
	for _, w := range heaviest[max(0, len(heaviest)-mostWords):] {
		q.whole += w
	}
	return q
}

// Of is how strongly a message answers, from 0 to 1: the part of the question's
// weight that it has, less where that weight is no proof. has says how much of
// the word with this number the message has, from 0 to 1.
func (q *Question) Of(has func(n int) float64) float64 {
	if q.whole == 0 {
		return 0
	}
	sum := 0.0
	for i, w := range q.weights {
		if w > 0 {
			sum += w * min(1, has(i))
		}
	}
	return min(1, sum/q.whole) * min(1, sum/enough)
}

// Common reports whether a word, in lower case, tells little in any memory.
func Common(word string) bool {
	_, ok := common[fold(word)]
	return ok
}

// Tells reports whether a text has a word that says what it is about.
func Tells(text string) bool {
	// Mostly the first words tell: the others are not even looked at.
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}) {
		w = strings.ToLower(w)
		if says, ok := common[fold(w)]; len(w) > 1 && (!ok || says) {
			return true
		}
	}
	return false
}

//go:embed common.txt
var list string

// common are the words of the table, true for those that say something.
var common = func() map[string]bool {
	m, says := make(map[string]bool), false
	for line := range strings.Lines(list) {
		switch line[0] {
		case '#':
		case '-', '+':
			says = line[0] == '+'
		default:
			for w := range strings.FieldsSeq(line) {
				if _, listed := m[fold(w)]; !listed {
					m[fold(w)] = says
				}
			}
		}
	}
	return m
}()

// accents and plainLetters are what people leave out when they type fast.
var (
	accents      = []rune("áàâäãåéèêëíìîïóòôöõúùûüñç")
	plainLetters = []rune("aaaaaaeeeeiiiiooooouuuunc")
)

// fold is a word without accents.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII {
			return r
		}
		if i := slices.Index(accents, r); i >= 0 {
			return plainLetters[i]
		}
		return r
	}, word)
}
