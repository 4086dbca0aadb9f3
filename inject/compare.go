package inject

import (
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// asked is a question to a service that measures no strength.
type asked struct {
	terms map[string]bool
	asks  bool // not a request, or possibly none
}

// askedOf returns the question of a query, or nil if the question depends on an earlier one:
// its own words do not name its subject.
func askedOf(query string) *asked {
	question, _, leaning := strings.Cut(query, graphiti.Earlier)
	if leaning {
		return nil
	}
	return &asked{terms(question, maxQuery), words.Asks(question) || words.MayAsk(question)}
}

// muchLess is the part of the best fact's terms below which another fact is dismissed, and the
// part of the question's terms that the best fact must have.
const muchLess = 0.5

// nowhere is the weight of a term without a fact: the facts may use another word.
const nowhere = 0.5

// byMeaning is the number of first facts that need no term of the question.
const byMeaning = 3

// compare dismisses facts of unknown strength that have much less of the question than the best
// one: a service that measures nothing shows a small memory whole. A term counts the less,
// the more facts have it, as the name of a project. If no fact has enough terms, or the
// question has only one, the service has found the answer by meaning: the first facts stay,
// and those that share a term. For a request, a fact must share a term with it.
//
// A message that asks the question again is often the best, with the answer beside it: facts of
// the best one's messages that share a term stay if they add more than they repeat. So does a
// newer fact that shares most of the best one's terms: it may correct it in other words.
//
// Facts of the past are compared after the valid ones and dismiss none of those. They are never
// found by meaning alone.
func (ch *chooser) compare(all []Candidate, past bool) {
	if ch.asked == nil {
		return
	}
	with, has := make(map[string]int), make([]map[string]bool, len(all))
	for i := range all {
		if c := &all[i]; c.Verdict == Shown && !c.Fact.Weighed && (past || !c.past) {
			has[i] = terms(c.Fact.Text, maxQuery)
			for t := range has[i] {
				with[t]++
			}
		}
	}
	sum, share, shared := 0.0, make([]float64, len(all)), make([]int, len(all))
	for t := range ch.asked.terms {
		worth := nowhere
		if n := with[t]; n > 0 {
			worth = 1 / float64(n)
		}
		sum += worth
		for i := range all {
			if has[i][t] {
				share[i] += worth
				shared[i]++
			}
		}
	}
	best, first := 0.0, -1
	for i := range all {
		if shared[i] < len(has[i]) && share[i] > best { // others only repeat the question
			best, first = share[i], i
		}
	}
	completes := func(i int) bool { // the best fact
		if first < 0 || share[i] == 0 {
			return false
		}
		f, o := all[i].Fact, all[first].Fact
		if newer(f, o) && 2*shared[i] > shared[first] {
			return true
		}
		repeats := 0
		for t := range has[i] {
			if has[first][t] {
				repeats++
			}
		}
		return len(has[i]) > 2*repeats && slices.ContainsFunc(f.Episodes, func(e string) bool { return slices.Contains(o.Episodes, e) })
	}
	answered, rank := len(ch.asked.terms) > 1 && best >= muchLess*sum, 0
	for i := range all {
		if has[i] == nil || all[i].past != past {
			continue
		}
		unlike := share[i] == 0 && (!ch.asked.asks || past || rank >= byMeaning)
		if unlike || (past || answered && rank > 0) && share[i] < muchLess*best && !completes(i) {
			all[i].Verdict = Weak
		}
		rank++
	}
}
