package inject

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// warmMax bounds the sessions whose next recall is prepared.
	warmMax = 4096

	// prefetches is how many go on at the same time; more are left out.
	prefetches = 8

	// covered is the part of a question's words that must have been spoken of
	// in the turn before: then what was found for that turn answers at once.
	covered = 0.6

	// answerPart is how much of an answer, in bytes, is looked up with what it
	// answers.
	answerPart = 1000
)

// warm is what was found for a session after its last turn.
type warm struct {
	generation int64 // of the turn
	words      map[string]bool
	groups     []graphiti.Target
	facts      [][]graphiti.Fact
}

// Prefetch looks up, in the background, what a turn was about, so that the next
// one of its session need not wait: a question that speaks of the same is
// answered at once, and another one if the memory does not answer in time. It
// does not wait.
func (m *Memory) Prefetch(who graphiti.Who, generation int64, said, answered string) {
	if !m.opts().Prefetch || who.Session == "" {
		return
	}
	select {
	case m.warming <- struct{}{}:
	default:
		return
	}
	if !m.begin() {
		<-m.warming
		return
	}
	query := string(paragraph([]byte(string(cutWord([]byte(said), maxQuery-answerPart)) + "\n" + string(cutWord([]byte(answered), answerPart)))))
	// Ends with its searches, which Background bounds and Close cancels.
	go m.prefetch(who, generation, query)
}

func (m *Memory) prefetch(who graphiti.Who, generation int64, query string) {
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("preparing a turn panicked", "error", fmt.Sprint(r))
		}
		<-m.warming
		m.running.Done()
	}()
	query, ok := m.question(query, time.Now().Add(m.opts().Background))
	if !ok {
		return
	}
	w := warm{generation: generation, words: wordSet(normal(query)), groups: m.opts().Reads(who, false)}
	for _, t := range w.groups {
		f := (<-m.fly(flightKey{t.Group, query, generation})).Val.(*flight) //nolint:forcetypeassert // what run returns
		if f.err != nil {
			return
		}
		w.facts = append(w.facts, f.facts)
	}
	m.warm.Add(snapshotKey(who), w)
}

// prepared is what was found for the session before, if it is of this generation
// and these groups. atOnce says that the question speaks of the same.
func (m *Memory) prepared(session, query string, generation int64, reads []graphiti.Target) (facts [][]graphiti.Fact, atOnce bool) {
	w, ok := m.warm.Get(session)
	if !ok || w.generation != generation || !slices.Equal(w.groups, reads) {
		return nil, false
	}
	question, _, _ := strings.Cut(query, graphiti.Earlier)
	words, n := wordSet(normal(question)), 0
	for word := range words {
		if w.words[word] {
			n++
		}
	}
	return w.facts, len(words) > 0 && float64(n) >= covered*float64(len(words))
}
