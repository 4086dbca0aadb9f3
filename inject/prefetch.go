package inject

import (
	"cmp"
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

	// heaviest is the number of prefetched terms compared with a question. An answer has too
	// many terms to resemble any question.
	heaviest = 8

	// answerPart is the number of bytes of an answer in a prefetch query.
	answerPart = 1000

	// saidCounts is the weight of a person's word in counting terms.
	saidCounts = 3
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
	w := warm{generation: generation, terms: terms(query, heaviest), groups: m.opts().Reads(who, false)}
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

// terms returns at most most content words of a text, the most frequent first, then by
// position. Words of the first line, which a person wrote, weigh more than an answer's.
func terms(text string, most int) map[string]bool {
	var all []string
	count := make(map[string]int)
	said, answered, _ := strings.Cut(text, "\n")
	for _, part := range []struct {
		text   string
		counts int
	}{{said, saidCounts}, {answered, 1}} {
		words.Each(part.text, func(w []byte, k words.Significance) bool {
			if k == words.Content {
				if count[string(w)] == 0 {
					all = append(all, string(w))
				}
				count[string(w)] += part.counts
			}
			return true
		})
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	out := make(map[string]bool)
	for _, w := range all[:min(len(all), most)] {
		out[w] = true
	}
	return out
}
