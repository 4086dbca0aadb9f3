package inject

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	// prefetches is the maximum number of concurrent prefetches. Excess ones are skipped.
	prefetches = 8

	// firsts is the number of prefetched terms compared with a question. An answer has too
	// many terms to resemble any question.
	firsts = 8

	// answerPart is the number of bytes of an answer in a prefetch query.
	answerPart = 1000
)

// warm is a session's prefetch.
type warm struct {
	generation int64           // of the turn
	terms      map[string]bool // terms of the prefetch query
	groups     []graphiti.Target
	facts      [][]graphiti.Fact
}

func (w *warm) size() (n int) {
	for t := range w.terms {
		n += 48 + len(t)
	}
	for _, g := range w.groups {
		n += 32 + len(g.Group)
	}
	for _, facts := range w.facts {
		n += costOf(facts)
	}
	return n
}

// Prefetch starts a background search about a finished turn, for the next turn of its
// session. The results answer a similar question at once, and any other question if the
// backend is late.
func (m *Planner) Prefetch(who graphiti.Who, generation int64, said, answered string) {
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

func (m *Planner) prefetch(who graphiti.Who, generation int64, query string) {
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("prefetch panicked", "error", fmt.Sprint(r))
		}
		<-m.warming
		m.running.Done()
	}()
	query, ok := m.question(query, time.Now().Add(m.opts().Background))
	if !ok {
		return
	}
	w := warm{generation: generation, terms: terms(query, firsts), groups: m.opts().Reads(who, false)}
	for _, t := range w.groups {
		if !m.opts().Prefetch { // the setting may change at any time, for example without consent
			return
		}
		f := (<-m.fly(flightKey{t.Group, query, generation})).Val.(*flight) //nolint:forcetypeassert // what run returns
		if f.err != nil {
			return
		}
		w.facts = append(w.facts, f.facts)
	}
	m.change(snapshotID(who), func(s *sessionMemo) { s.warm = w })
}

// prepared returns the session's prefetch, if its generation and groups match. atOnce
// reports whether the question's terms resemble those of the prefetch.
func (m *Planner) prepared(session TurnKey, query string, generation int64, reads []graphiti.Target) (facts [][]graphiti.Fact, atOnce bool) {
	w := &m.session(session).warm
	if w.facts == nil || w.generation != generation || !slices.Equal(w.groups, reads) {
		return nil, false
	}
	question, _, _ := strings.Cut(query, graphiti.Earlier)
	asked := terms(question, maxQuery)
	return w.facts, len(asked) > 0 && likeness(asked, w.terms) >= m.opts().Similar
}

// terms returns the first most content words of a text: those of a person precede an answer's.
func terms(text string, most int) map[string]bool {
	out := make(map[string]bool)
	words.Each(text, func(w []byte, k words.Significance) bool {
		if k == words.Content {
			out[string(w)] = true
		}
		return len(out) < most
	})
	return out
}
