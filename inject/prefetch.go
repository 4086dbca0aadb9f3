package inject

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// warmMax bounds each of two generations of sessions whose next recall was
	// prepared.
	warmMax = 2048

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
	words  map[string]bool
	groups []graphiti.Target
	facts  [][]graphiti.Fact
}

// warmed holds what was found for sessions. It is safe for concurrent use.
type warmed struct {
	mu       sync.Mutex // guards what follows
	new, old map[string]*warm
	busy     int
}

func (w *warmed) get(session string) *warm {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.new[session]; found != nil {
		return found
	}
	return w.old[session]
}

func (w *warmed) put(session string, found *warm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.new == nil || len(w.new) >= warmMax {
		w.old, w.new = w.new, make(map[string]*warm)
	}
	w.new[session] = found
}

func (w *warmed) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.new, w.old = nil, nil
}

// begin reports whether another prefetch may begin.
func (w *warmed) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy >= prefetches {
		return false
	}
	w.busy++
	return true
}

func (w *warmed) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
}

// Prefetch looks up, in the background, what a turn was about, so that the next
// one of its session need not wait: a question that speaks of the same is
// answered at once, and another one if the memory does not answer in time. It
// does not wait.
func (m *Memory) Prefetch(who graphiti.Who, said, answered string) {
	if !m.opts().Prefetch || who.Session == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || !m.warm.begin() {
		return
	}
	m.running.Add(1)
	query := string(cutWord([]byte(said), maxQuery-answerPart)) + "\n" + string(cutWord([]byte(answered), answerPart))
	// Ends with its searches, which Background bounds and Close cancels.
	go m.prefetch(who, query)
}

func (m *Memory) prefetch(who graphiti.Who, query string) {
	defer m.running.Done()
	defer m.warm.end()
	defer func() {
		if r := recover(); r != nil {
			m.opts().Log.Error("preparing a turn panicked", "error", fmt.Sprint(r))
		}
	}()
	forgets := m.forgets.Load()
	query, ok := m.question(query, time.Now().Add(m.opts().Background))
	if !ok {
		return
	}
	w := &warm{words: wordSet(normal(query)), groups: m.opts().Reads(who, false)}
	for _, t := range w.groups {
		f := m.fly(flightKey{t.Group, query})
		<-f.done
		if f.err != nil {
			return
		}
		w.facts = append(w.facts, f.facts)
	}
	if forgets == m.forgets.Load() {
		m.warm.put(snapshotKey(who), w)
	}
}

// prepared is what was found for the session before, if it is of these groups.
// atOnce says that the question speaks of the same.
func (m *Memory) prepared(session, query string, reads []graphiti.Target) (facts [][]graphiti.Fact, atOnce bool) {
	w := m.warm.get(session)
	if w == nil || !slices.Equal(w.groups, reads) {
		return nil, false
	}
	question, _, _ := strings.Cut(query, "\n") // what was asked before stands behind
	words, n := wordSet(normal(question)), 0
	for word := range words {
		if w.words[word] {
			n++
		}
	}
	return w.facts, len(words) > 0 && float64(n) >= covered*float64(len(words))
}
